"""Keeps the notes of a merge consistent: reverting it in one note reverts it in all.

A merge is one decision, written as a revision of each of its notes with the same ``inputs``. The remaining note gets
the ``event_ids`` of all, and the others are archived with ``merged_into``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from zettel.core.commit import Clock
from zettel.core.fold import fold, live_revisions
from zettel.core.revise import revised
from zettel.model import Cause, Input, JobKind, Note, Revision, Scope
from zettel.ports import GraphStore, NoteHistory
from zettel.ports.operations import Op, PutRevision

Decision: TypeAlias = "tuple[Input, ...]"
"""Identifies a merge: its notes, each with the version that the decision was based on."""


def live_merges(history: NoteHistory) -> dict[Decision, tuple[int, ...]]:
    """Return the live merges of a note, each with its live versions."""
    merges: dict[Decision, tuple[int, ...]] = {}
    for revision in live_revisions(history.revisions, JobKind.MERGE):
        merges[revision.inputs] = (*merges.get(revision.inputs, ()), revision.version)
    return merges


def merge_versions(history: NoteHistory) -> tuple[int, ...]:
    """Return the versions of a note whose reverting undoes its merges."""
    return tuple(sorted(version for versions in live_merges(history).values() for version in versions))


def without_merges(history: NoteHistory) -> Note:
    """Return the note as if it had never been merged."""
    return fold(history.base, [revision for revision in history.revisions if revision.cause.by != JobKind.MERGE])[0]


def rests_on(history: NoteHistory, events: set[str]) -> bool:
    """Return whether any version of a note is based on one of these events, apart from merges."""
    if not events.isdisjoint(history.base.event_ids):
        return True
    others = (revision for revision in history.revisions if revision.cause.by is not JobKind.MERGE)
    return any(not events.isdisjoint(_events_of(revision)) for revision in others)


async def histories_after(
    store: GraphStore, scope: Scope, ids: Sequence[str], planned: Sequence[Op]
) -> dict[str, NoteHistory]:
    """Return the histories of notes after the planned operations."""
    if not ids:
        return {}
    return apply_planned(await store.histories(scope, ids), planned)


def apply_planned(histories: Mapping[str, NoteHistory], planned: Sequence[Op]) -> dict[str, NoteHistory]:
    """Return the histories after the planned operations, in the same order."""
    after = dict(histories)
    for op in planned if after else ():
        if isinstance(op, PutRevision) and op.note.id in after:
            after[op.note.id] = after[op.note.id].then(op.revision)
    return after


async def followers(
    store: GraphStore, scope: Scope, history: NoteHistory, put: PutRevision, clock: Clock, planned: Sequence[Op] = ()
) -> list[PutRevision]:
    """Return revisions of the other notes of each merge that a revision undoes or redoes."""
    before = live_merges(history)
    after = live_merges(history.then(put.revision))
    if before.keys() == after.keys():
        return []
    others = sorted({read.note for decision in before.keys() ^ after.keys() for read in decision} - {history.base.id})
    cause = put.revision.cause.model_copy(update={"note": history.base.id})
    left, rejoined = before.keys() - after.keys(), after.keys() - before.keys()
    histories = await histories_after(store, scope, others, planned)
    puts = [_follow(histories[id], left, rejoined, cause, clock) for id in others if id in histories]
    return [put for put in puts if put is not None]


def _follow(
    history: NoteHistory, left: set[Decision], rejoined: set[Decision], cause: Cause, clock: Clock
) -> PutRevision | None:
    live = live_merges(history)
    undoes = tuple(sorted(version for decision in left & live.keys() for version in live[decision]))
    merges = [r for r in history.revisions if r.cause.by is JobKind.MERGE and r.change]
    again = [r for r in merges if r.inputs in rejoined - live.keys()]
    if again:  # written again, because the reverting revision may have reverted more
        last = again[-1]
        return revised(history, clock, last.cause, last.change, undoes=undoes, inputs=last.inputs)
    return revised(history, clock, cause, {}, undoes=undoes) if undoes else None


def _events_of(revision: Revision) -> list[str]:
    events = revision.change.get("event_ids")
    return [str(event) for event in events] if isinstance(events, list) else []
