"""Finds pairs of notes that contradict each other and are both still valid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from zettel.core.paging import pages
from zettel.core.present import present_micros
from zettel.model import Conflict, EventRecord, LinkType, Note, Scope, Source
from zettel.ports import GraphStore
from zettel.ports.expiry import expired

PAGE = 500
"""Notes per page."""


async def conflicts(store: GraphStore, scope: Scope) -> list[Conflict]:
    """Return every undecided pair linked by CONTRADICTS, in order of arrival of the later note."""
    pairs: list[Conflict] = []
    now = present_micros()
    async for page in pages(store, scope, PAGE):
        notes = {note.id: note for note in page if not expired(note, now)}
        links = await store.links(scope, sorted(notes))
        made = [link for link in links if link.type is LinkType.CONTRADICTS and link.source in notes]
        others = await store.notes(scope, sorted({link.target for link in made}))
        made = [link for link in made if link.target in others]  # one may have been deleted meanwhile
        events = await _first_events(store, scope, [*(notes[link.source] for link in made), *others.values()])
        for link in sorted(made, key=lambda link: (notes[link.source].seq, others[link.target].seq)):
            note, other = notes[link.source], others[link.target]
            if note.valid_to is None and other.valid_to is None and not (other.archived or expired(other, now)):
                pair = Conflict(
                    note=note,
                    other=other,
                    source=_source(note, events),
                    other_source=_source(other, events),
                    reason=link.reason,
                    recorded_at=link.recorded_at,
                )
                pairs.append(pair)
    return pairs


async def _first_events(store: GraphStore, scope: Scope, notes: Iterable[Note]) -> dict[str, EventRecord]:
    ids = sorted({note.event_ids[0] for note in notes})
    return await store.events(scope, ids) if ids else {}


def _source(note: Note, events: Mapping[str, EventRecord]) -> Source | None:
    event = events.get(note.event_ids[0])
    return None if event is None else event.source
