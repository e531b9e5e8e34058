"""Decisions by people that jobs respect: no job repeats a reverted decision or changes a field that a person set."""

from __future__ import annotations

from zettel.core.fold import live_revisions
from zettel.core.revise import BY_HAND
from zettel.ports import NoteHistory


def is_reverted(history: NoteHistory, by: str) -> bool:
    """Return whether a person reverted a decision of this kind of job about the note. Jobs must not repeat it."""
    decided = {revision.version for revision in history.revisions if revision.cause.by == by}
    by_hand = live_revisions(history.revisions, BY_HAND.by)
    return any(r.cause == BY_HAND and not decided.isdisjoint(r.undoes) for r in by_hand)


def set_by_people(history: NoteHistory) -> set[str]:
    """Return the fields of a note that a person wrote; extracted fields do not count."""
    revisions = live_revisions(history.revisions, BY_HAND.by)
    return {name for revision in revisions for name in revision.change.keys() - set(revision.extracted)}
