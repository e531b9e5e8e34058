"""Take back: undo all that the jobs did to other notes because of one note.

What a note did is told by the causes of revisions, and by the notes that were derived from it, and from these in turn.
Nothing is destroyed: what was taken back stands in the histories, and ``revert`` brings it back note by note.
"""

from __future__ import annotations

from collections.abc import Collection

from zettel.batch import Op, PutRevision
from zettel.commit import Clock, Commits
from zettel.consequences import derived_from
from zettel.embed.vectors import Vectors
from zettel.errors import NotFound
from zettel.fold import live_versions
from zettel.jobs.queue import FollowUps
from zettel.merged import followers, histories_after
from zettel.model import Note, Scope
from zettel.ports import GraphStore, NoteHistory, ScopeState
from zettel.reindex import reindexed
from zettel.revise import BY_HAND, revised


class TakingBack:
    """Takes back what single notes of a store have caused."""

    def __init__(self, store: GraphStore, commits: Commits, vectors: Vectors, follow_ups: FollowUps) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._follow_ups = follow_ups

    async def take_back(self, scope: Scope, note_id: str) -> list[Note]:
        """The notes that this changed, as they are now, in the order of arrival; none if there is nothing left to do.

        Raises ``NotFound``; then nothing was changed.
        """
        changed: list[Note] = []

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            changed.clear()
            if note_id not in await self._store.notes(scope, [note_id]):
                raise NotFound(scope, [note_id])
            derived = await self._derived(scope, note_id)
            puts = await self._archive(scope, derived, clock)
            puts += await self._undo(scope, {note_id, *derived}, clock, puts)
            last = {put.note.id: put.note for put in puts}
            changed.extend(sorted(last.values(), key=lambda note: note.seq))
            return [*puts, *await reindexed(self._store, self._vectors, self._follow_ups, scope, puts, clock)]

        await self._commits.commit(scope, plan)
        return changed

    async def _derived(self, scope: Scope, note_id: str) -> list[str]:
        """Notes that rest on this one, and those that rest on them."""
        found: dict[str, None] = {}
        fresh = {note_id}
        while fresh:
            fresh = await derived_from(self._store, scope, fresh) - found.keys() - {note_id}
            found.update(dict.fromkeys(sorted(fresh)))
        return list(found)

    async def _archive(self, scope: Scope, derived: list[str], clock: Clock) -> list[PutRevision]:
        notes = await self._store.notes(scope, derived) if derived else {}
        shown = [id for id, note in notes.items() if not note.archived]
        histories = await self._store.histories(scope, shown) if shown else {}
        return [revised(histories[id], clock, BY_HAND, {"archived": True}) for id in shown]

    async def _undo(
        self, scope: Scope, sources: Collection[str], clock: Clock, planned: list[PutRevision]
    ) -> list[PutRevision]:
        """Take back the revisions of other notes that one of ``sources`` is the cause of, with the merges that they
        belong to."""
        cited = await self._store.citing(scope, sorted(sources))
        others = sorted({r.note for r in cited if r.cause.note in sources} - set(sources))
        made: list[PutRevision] = []
        for id in others:
            history = (await histories_after(self._store, scope, [id], [*planned, *made]))[id]
            versions = _caused_by(sources, history)
            if versions:
                put = revised(history, clock, BY_HAND, {}, undoes=versions)
                made.append(put)
                made += await followers(self._store, scope, history, put, clock, [*planned, *made])
        return made


def _caused_by(sources: Collection[str], history: NoteHistory) -> tuple[int, ...]:
    """The versions that jobs wrote because of one of these notes; none if none of them counts any more.

    All of them, for one that counts may have taken the place of another one, which is not to count again.
    """
    live = live_versions(history.revisions)
    caused = [r for r in history.revisions if r.cause.note in sources and r.cause.by != BY_HAND.by]
    counts = any(r.version in live and (r.change or r.links) for r in caused)
    return tuple(r.version for r in caused if r.change or r.links) if counts else ()
