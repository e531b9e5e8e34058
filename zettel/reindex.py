"""What follows revisions that a person asked for: notes that read differently are embedded and linked anew."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from zettel.batch import Op, PutRevision
from zettel.commit import Clock
from zettel.embed.vectors import Vectors
from zettel.jobs.queue import FollowUps
from zettel.link.mentions import mention_ops
from zettel.model import Scope
from zettel.ports import GraphStore


async def reindexed(
    store: GraphStore,
    vectors: Vectors,
    follow_ups: FollowUps,
    scope: Scope,
    puts: Sequence[PutRevision],
    clock: Clock,
    reworded: Collection[str] = (),
) -> list[Op]:
    """MENTIONS, vectors and jobs of the notes that these revisions index anew; their indexes are in the revisions.

    Of several revisions of a note the last tells how it stands. ``reworded`` are the ids of notes that a model is to
    read again; the others only get their near links anew.
    """
    indexed = {put.note.id for put in puts if put.index is not None}
    if not indexed:
        return []
    last = {put.note.id: put.note for put in puts if put.note.id in indexed}
    shown = [note for note in last.values() if not note.archived]
    ops = await mention_ops(store, scope, shown, again=list(last), recorded_at=clock.recorded_at)
    ops += await vectors.embed_now(shown)
    for note in shown:
        jobs = follow_ups.of if note.id in reworded else follow_ups.of_index
        ops += jobs(scope, note, clock.now)
    return ops
