"""Embeds and links notes again after revisions changed their index entries or searched text."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from zettel.core.commit import Clock
from zettel.core.follow_ups import FollowUps
from zettel.core.mentions import mention_ops
from zettel.core.vectors import Vectors
from zettel.model import Scope
from zettel.ports import GraphStore
from zettel.ports.operations import Op, PutRevision


async def reindexed(
    store: GraphStore,
    vectors: Vectors,
    follow_ups: FollowUps,
    scope: Scope,
    puts: Sequence[PutRevision],
    clock: Clock,
    reworded: Collection[str] = (),
) -> list[Op]:
    """Return MENTIONS, vectors and jobs of the notes that these revisions index again.

    A plan adds them to the same batch if a revision may have ``index`` set, as after a change of content or archiving.
    The last revision of a note has its state. A model annotates the ``reworded`` ids again; other notes only get new
    near links.
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
        ops += jobs(scope, note, clock.now, vectors.defers(len(shown)))
    return ops
