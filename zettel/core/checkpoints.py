"""Checkpoints: shorter histories of notes with many versions.

A checkpoint replaces all revisions up to a version by the few that still decide something. The state of the note, its
links, and the decisions of people are the same, also after later revisions, unless these undo an earlier version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from zettel.core.decisions import BY_PEOPLE, reverted
from zettel.core.fold import live_versions
from zettel.model import CallKind, Checkpoint, JobKind, Revision
from zettel.ports import NoteHistory

EVERY = 32
"""Revisions between two checkpoints of a note: reading them takes about as long as all else in an update."""
LAG = 16
"""The newest revisions, which a checkpoint does not contain: people mostly revert these."""

_COMPLETE = frozenset({JobKind.LINK, JobKind.MERGE, CallKind.QUARANTINE, CallKind.RELEASE})
"""The causes of revisions that are undone as a whole: their fields and inputs stay together."""


def next_checkpoint(history: NoteHistory) -> Checkpoint | None:
    """Return the checkpoint to store with a history, None while the latest one (or the base) is recent enough."""
    later = [revision.version for revision in history.revisions if revision.version > history.since]
    if len(later) <= EVERY + LAG:
        return None
    version = later[-LAG - 1] if is_valid(later[-LAG - 1], history.revisions) else later[-1]
    past = tuple(revision for revision in history.revisions if revision.version <= version)
    decisions = reverted(history._replace(revisions=past))
    return Checkpoint(
        version=version, revisions=_condensed(past), links=sorted(decisions.links), values=sorted(decisions.values)
    )


def is_valid(version: int, revisions: Iterable[Revision]) -> bool:
    """Return whether no revision after ``version`` undoes one before it, apart from earlier near links."""
    return not any(
        undone <= version
        for revision in revisions
        if revision.version > version and revision.cause.by is not JobKind.LINK
        for undone in revision.undoes
    )


def _condensed(revisions: Sequence[Revision]) -> tuple[Revision, ...]:
    """Return the live revisions without values that a later one replaces.

    Of each field remain the last value and the last value that a person wrote, which jobs respect.
    """
    live = live_versions(revisions)
    remaining: list[Revision] = []
    replaced: set[str] = set()
    written: set[str] = set()
    for revision in reversed(revisions):
        if revision.version not in live:
            continue
        if revision.cause.by in _COMPLETE:
            remaining.append(revision)
            continue
        by_hand = revision.change.keys() - set(revision.extracted) if revision.cause.by in BY_PEOPLE else set()
        names = revision.change.keys() - replaced | (by_hand - written)
        replaced |= revision.change.keys()
        written |= by_hand
        # The newest remains, because it has the version of the note.
        if names or revision.links or revision.unlinks or not remaining:
            change = {name: value for name, value in revision.change.items() if name in names}
            extracted = tuple(name for name in revision.extracted if name in names)
            remaining.append(revision.model_copy(update={"change": change, "extracted": extracted, "undoes": ()}))
    return tuple(reversed(remaining))
