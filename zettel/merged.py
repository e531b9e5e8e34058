"""What a merge ties together: a note cannot leave it, or come back to it, alone.

One merge is one decision, written as a revision of each note it is about, all with the same ``inputs``: the note that
stays gets the ``event_ids`` of all, the others become archived with ``merged_into``. Whatever takes back one of these
revisions, or takes back its taking back, has the others follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from zettel.batch import Op, PutRevision
from zettel.commit import Clock
from zettel.fold import fold, live_revisions
from zettel.model import Cause, Input, JobKind, Note, Revision, Scope
from zettel.ports import GraphStore, NoteHistory
from zettel.revise import BY_HAND, revised

MERGER = JobKind.MERGE.value

Decision: TypeAlias = "tuple[Input, ...]"
"""Names a merge: the notes that it is about, each in the version in which it was read."""


def live_merges(history: NoteHistory) -> dict[Decision, tuple[int, ...]]:
    """The merges that count for a note, each with the versions by which it does."""
    found: dict[Decision, tuple[int, ...]] = {}
    for revision in live_revisions(history.revisions, MERGER):
        found[revision.inputs] = (*found.get(revision.inputs, ()), revision.version)
    return found


def undoing(history: NoteHistory) -> tuple[int, ...]:
    """The versions of a note to take back so that it stands alone again."""
    return tuple(sorted(version for versions in live_merges(history).values() for version in versions))


def alone(history: NoteHistory) -> Note:
    """The note as it would be had it never been merged."""
    return fold(history.base, [revision for revision in history.revisions if revision.cause.by != MERGER])[0]


def rests_on(history: NoteHistory, events: set[str]) -> bool:
    """Whether a note rests on one of these events by itself, in any version, and not only for a note it speaks for."""
    if not events.isdisjoint(history.base.event_ids):
        return True
    return any(
        not events.isdisjoint(_events_of(revision)) for revision in history.revisions if revision.cause.by != MERGER
    )


def taken_back(history: NoteHistory, by: str) -> bool:
    """Whether a person took back what a kind of job decided about this very note: it is not to be done again."""
    decided = {revision.version for revision in history.revisions if revision.cause.by == by}
    by_hand = live_revisions(history.revisions, "user")
    return any(r.cause == BY_HAND and not decided.isdisjoint(r.undoes) for r in by_hand)


async def histories_after(
    store: GraphStore, scope: Scope, ids: Sequence[str], planned: Sequence[Op]
) -> dict[str, NoteHistory]:
    """The histories of notes once what is planned is written."""
    if not ids:
        return {}
    return planned_on(await store.histories(scope, ids), planned)


def planned_on(histories: Mapping[str, NoteHistory], planned: Sequence[Op]) -> dict[str, NoteHistory]:
    """The histories, as they were read, once what is planned is written; in the same order."""
    found = dict(histories)
    for op in planned:
        if isinstance(op, PutRevision) and op.note.id in found:
            base, revisions = found[op.note.id]
            found[op.note.id] = NoteHistory(base, (*revisions, op.revision))
    return found


async def followers(
    store: GraphStore, scope: Scope, history: NoteHistory, put: PutRevision, clock: Clock, planned: Sequence[Op] = ()
) -> list[PutRevision]:
    """Revisions of the notes that were merged with one, once a revision takes it out of a merge or back into it."""
    before = live_merges(history)
    after = live_merges(NoteHistory(history.base, (*history.revisions, put.revision)))
    if before.keys() == after.keys():
        return []
    others = sorted({read.note for decision in before.keys() ^ after.keys() for read in decision} - {history.base.id})
    cause = put.revision.cause.model_copy(update={"note": history.base.id})
    found = await histories_after(store, scope, others, planned)
    made = [_follow(found[id], before.keys() - after.keys(), after.keys() - before.keys(), cause, clock)
            for id in others if id in found]  # fmt: skip
    return [put for put in made if put is not None]


def _follow(
    history: NoteHistory, left: set[Decision], back: set[Decision], cause: Cause, clock: Clock
) -> PutRevision | None:
    live = live_merges(history)
    undoes = tuple(sorted(version for decision in left & live.keys() for version in live[decision]))
    again = [r for r in history.revisions if r.cause.by == MERGER and r.inputs in back - live.keys() and r.change]
    if again:  # said anew, for what took it back may have taken back more
        last = again[-1]
        return revised(history, clock, last.cause, last.change, undoes=undoes, inputs=last.inputs)
    return revised(history, clock, cause, {}, undoes=undoes) if undoes else None


def _events_of(revision: Revision) -> list[str]:
    told = revision.change.get("event_ids")
    return [str(event) for event in told] if isinstance(told, list) else []
