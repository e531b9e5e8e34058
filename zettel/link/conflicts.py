"""Finds pairs of notes that contradict each other and are both still valid."""

from __future__ import annotations

from zettel.core.paging import pages
from zettel.model import Conflict, LinkType, Scope
from zettel.ports import GraphStore

PAGE = 500
"""Notes per page."""


async def conflicts(store: GraphStore, scope: Scope) -> list[Conflict]:
    """Return every undecided pair linked by CONTRADICTS, in order of arrival of the later note."""
    pairs: list[Conflict] = []
    async for page in pages(store, scope, PAGE):
        notes = {note.id: note for note in page}
        links = await store.links(scope, sorted(notes))
        made = [link for link in links if link.type is LinkType.CONTRADICTS and link.source in notes]
        others = await store.notes(scope, sorted({link.target for link in made}))
        made = [link for link in made if link.target in others]  # one may have been deleted meanwhile
        for link in sorted(made, key=lambda link: (notes[link.source].seq, others[link.target].seq)):
            note, other = notes[link.source], others[link.target]
            if note.valid_to is None and other.valid_to is None and not other.archived:
                pairs.append(Conflict(note=note, other=other, reason=link.reason, recorded_at=link.recorded_at))
    return pairs
