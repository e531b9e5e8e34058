"""Reverts everything that jobs did to other notes because of one note.

The effects are the revisions that name the note as cause, and the notes derived from it, transitively. Nothing is
destroyed: the histories contain the reverted revisions, and ``revert`` restores them note by note.
"""

from __future__ import annotations

from collections.abc import Collection

from zettel.core.commit import Clock, Commits
from zettel.core.decisions import BY_HAND
from zettel.core.fold import live_versions
from zettel.core.follow_ups import FollowUps
from zettel.core.merges import followers, histories_after
from zettel.core.provenance import derived_from
from zettel.core.reindex import reindexed
from zettel.core.revise import revised
from zettel.core.rows import Rows
from zettel.core.vectors import Vectors
from zettel.errors import NotFound
from zettel.model import Note, Scope
from zettel.ports import GraphStore, NoteHistory, ScopeState
from zettel.ports.operations import Op, PutRevision


class EffectReverter:
    """Reverts the effects of single notes of a store."""

    def __init__(self, store: GraphStore, commits: Commits, vectors: Vectors, follow_ups: FollowUps) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._follow_ups = follow_ups

    async def revert_effects(self, scope: Scope, note_id: str) -> list[Note]:
        """Revert the effects of a note, and return the changed notes in order of arrival.

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
        """Return the notes derived from this one, transitively."""
        found: dict[str, None] = {}
        fresh = {note_id}
        while fresh:
            fresh = await derived_from(self._store, scope, fresh) - found.keys() - {note_id}
            found.update(dict.fromkeys(sorted(fresh)))
        return list(found)

    async def _archive(self, scope: Scope, derived: list[str], clock: Clock) -> list[PutRevision]:
        notes = await self._store.notes(scope, derived) if derived else {}
        shown = [id for id, note in notes.items() if not note.archived]
        histories = Rows(await self._store.histories(scope, shown) if shown else {})
        return [revised(histories[id], clock, BY_HAND, {"archived": True}) for id in shown]

    async def _undo(
        self, scope: Scope, sources: Collection[str], clock: Clock, planned: list[PutRevision]
    ) -> list[PutRevision]:
        """Revert the revisions of other notes that ``sources`` caused, with their merges."""
        cited = await self._store.citing(scope, sorted(sources))
        others = sorted({r.note for r in cited if r.cause.note in sources} - set(sources))
        made: list[PutRevision] = []
        for id in others:
            history = Rows(await histories_after(self._store, scope, [id], [*planned, *made]))[id]
            versions = _caused_by(sources, history)
            if versions:
                put = revised(history, clock, BY_HAND, {}, undoes=versions)
                made.append(put)
                made += await followers(self._store, scope, history, put, clock, [*planned, *made])
        return made


def _caused_by(sources: Collection[str], history: NoteHistory) -> tuple[int, ...]:
    """Return the versions that jobs wrote because of these notes; none if none of them is live.

    All versions, because a live one may have replaced another, which must not become live again.
    """
    live = live_versions(history.revisions)
    caused = [r for r in history.revisions if r.cause.note in sources and r.cause.by != BY_HAND.by]
    counts = any(r.version in live and (r.change or r.links) for r in caused)
    return tuple(r.version for r in caused if r.change or r.links) if counts else ()
