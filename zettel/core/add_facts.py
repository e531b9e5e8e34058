"""Writes facts that a caller extracted: an event becomes a semantic note that supersedes the former value.

The event is stored first, as by ``add``. A revision of its note makes it a fact, and another one in the same
transaction supersedes the former values. So a delete of a former value removes only the latter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from zettel.core.authority import derived_trust, may_replace, trust
from zettel.core.commit import Clock
from zettel.core.decisions import BY_HAND
from zettel.core.edit import NoteEditor
from zettel.core.fold import state_of
from zettel.core.principals import acting
from zettel.core.retention import first_expiry
from zettel.core.revise import revised
from zettel.errors import NotFound
from zettel.model import Input, Kind, Link, LinkType, Note, Scope, as_metadata_pairs
from zettel.ports import GraphStore, NoteHistory
from zettel.ports.operations import PutRevision
from zettel.ports.query import Filter
from zettel.text.tokens import phrase_key

FACT = "fact"
"""The metadata field with the normal forms of subject and attribute, by which facts are compared."""
MOST_VALUES = 1000
"""Values of one subject and attribute that are compared."""


def fact_fields(
    subject: str, attribute: str, value: str, valid_from: datetime | None, id: str | None, session: str | None
) -> dict[str, Any]:
    """Return the fields of the event of a fact: "Ann, home: Porto"."""
    metadata = {
        FACT: f"{phrase_key(subject)}/{phrase_key(attribute)}",
        "subject": subject, "attribute": attribute, "value": value,
    }  # fmt: skip
    return {
        "content": f"{subject}, {attribute}: {value}", "id": id, "occurred_at": valid_from, "session": session,
        "metadata": metadata,
    }  # fmt: skip


class FactWriter:
    """Turns notes of fact events into facts."""

    def __init__(self, store: GraphStore, editing: NoteEditor) -> None:
        self._store = store
        self._editing = editing

    async def write(self, scope: Scope, note_id: str, valid_to: datetime | None, sources: Sequence[str]) -> None:
        """Make a note a fact, derived from ``sources``; does nothing if it became one before, even if it was reverted.

        It supersedes earlier facts with the same subject and attribute and another value, or contradicts those of more
        trust. The next later one supersedes it. Raises ``NotFound``.
        """
        histories = await self._store.histories(scope, [note_id])
        if any("kind" in revision.change for revision in histories[note_id].revisions):
            return
        note, _ = state_of(histories[note_id])
        known = await self._store.notes(scope, sources)
        if missing := [id for id in sources if id not in known]:
            raise NotFound(scope, missing)
        pairs = as_metadata_pairs({FACT: note.metadata[FACT]})
        facts = await self._store.page(scope, Filter(kinds=(Kind.SEMANTIC.value,), metadata=pairs), -1, MOST_VALUES)
        others = [fact for fact in facts if fact.id != note_id and _value(fact) != _value(note)]
        change: dict[str, Any] = {"kind": Kind.SEMANTIC} | _bounded(note, known)
        if valid_to is not None:
            change["valid_to"] = valid_to
        earlier = [fact for fact in others if _is_earlier(fact, note)]
        later = [fact for fact in others if not _is_earlier(fact, note)]
        of_trust = note.model_copy(update=change)

        async def revise(history: NoteHistory, clock: Clock) -> list[PutRevision]:
            derived = tuple(
                Link(source=note_id, target=source, type=LinkType.DERIVED_FROM, recorded_at=clock.recorded_at)
                for source in known
            )
            put = revised(history, clock, BY_HAND, change, links=derived, inputs=_inputs(known.values()))
            if not earlier:
                return [put]
            links = tuple(_link(of_trust, fact, clock) for fact in earlier)
            history = history.then(put.revision)
            return [put, revised(history, clock, BY_HAND, {}, links=links, inputs=_inputs(earlier))]

        fact = await self._editing.revise_in_steps(scope, note_id, revise)
        successor = min(later, key=lambda other: (other.valid_from or fact.recorded_at, other.seq), default=None)
        if successor is not None and acting().trust >= trust(successor):
            await self._editing.revise(scope, successor.id, partial(_superseding, successor, fact))


async def _superseding(later: Note, fact: Note, history: NoteHistory, clock: Clock) -> PutRevision:
    """Return the revision of a later fact by which it supersedes one that arrived after it."""
    links = (_link(later, fact, clock),)
    return revised(history, clock, BY_HAND, {}, links=links, inputs=(Input(fact.id, fact.version),))


def _inputs(notes: Iterable[Note]) -> tuple[Input, ...]:
    return tuple(Input(note.id, note.version) for note in notes)


def _value(note: Note) -> str:
    return phrase_key(str(note.metadata.get("value", "")))


def _is_earlier(fact: Note, note: Note) -> bool:
    """Return whether a fact was true before the one of a note: by date if both have one, else by arrival."""
    if fact.valid_from and note.valid_from and fact.valid_from != note.valid_from:
        return fact.valid_from < note.valid_from
    return fact.seq < note.seq


def _bounded(note: Note, sources: Mapping[str, Note]) -> dict[str, Any]:
    """Return the trust of a fact, which is at most the trust in its sources, and its expiry, which is not later."""
    if not sources:
        return {}
    notes = list(sources.values())
    return {
        "trust": min(note.trust, derived_trust(notes, note.flags)),
        "ceiling": min(note.ceiling, *(source.ceiling for source in notes)),
        "expires_at": first_expiry([note, *notes]),
    }


def _link(note: Note, fact: Note, clock: Clock) -> Link:
    replaces = may_replace(note, fact)
    old, new = fact.metadata.get("value"), note.metadata.get("value")
    return Link(
        source=note.id,
        target=fact.id,
        type=LinkType.SUPERSEDES if replaces else LinkType.CONTRADICTS,
        reason=f"{note.metadata.get('subject')}, {note.metadata.get('attribute')}: {old} \u2192 {new}",
        recorded_at=clock.recorded_at,
    )
