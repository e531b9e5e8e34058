"""Quarantine: a note is taken out of play with all that it has brought about, until it is released.

It goes to the archive, where only a search that asks for it finds it, and no job looks. What rests on it, which is what
``delete`` would destroy, is taken back in the same transaction: notes made from it go to the archive too, and others
fall back to what they were without it. Each quarantine adds revisions of its own, so that two of them on one matter can
be lifted one by one. What people changed is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zettel.batch import Op, PutRevision
from zettel.commit import Clock, Commits
from zettel.consequences import consequences
from zettel.embed.vectors import Vectors
from zettel.errors import InvalidInput, NotFound
from zettel.fold import WORDLESS, fold, live_revisions
from zettel.jobs.queue import FollowUps
from zettel.merged import MERGER, followers, histories_after, rests_on, undoing
from zettel.model import Cause, Kind, Note, Revision, Scope
from zettel.ports import GraphStore, NoteHistory, ScopeState
from zettel.reindex import reindexed
from zettel.revise import revised
from zettel.search.slots import erased

QUARANTINE, RELEASE = "quarantine", "release"
"""Causes of revisions."""


class Quarantining:
    """Quarantines and releases notes of a store."""

    def __init__(self, store: GraphStore, commits: Commits, vectors: Vectors, follow_ups: FollowUps) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._follow_ups = follow_ups

    async def quarantine(self, scope: Scope, note_id: str, reason: str) -> list[Note]:
        """Take a note, with all parts of its event, out of play; the notes that this changed, as they are now.

        Raises ``NotFound``, and ``InvalidInput`` if it is in quarantine already; then nothing was changed.
        """
        changed: list[Note] = []

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            own = await self._own(scope, note_id)
            if fold(*own[note_id])[0].quarantined is not None:
                raise InvalidInput(f"{note_id} is in quarantine already")
            cause = Cause(by=QUARANTINE, note=next(iter(own)))
            puts: list[PutRevision] = []
            for history in own.values():
                change = {"archived": True, "quarantined": reason}
                put = revised(history, clock, cause, change, undoes=undoing(history))
                puts += [put, *await followers(self._store, scope, history, put, clock, puts)]
            reworded = await self._take_back(scope, own, cause, clock, puts)
            return [*await self._done(scope, puts, clock, changed, reworded), *await erased(self._store, scope)]

        await self._commits.commit(scope, plan)
        return changed

    async def release(self, scope: Scope, note_id: str) -> list[Note]:
        """Bring a note back, with what its quarantine took back; the notes that this changed, as they are now.

        What it was merged with is merged again by the next round, if it still says the same. Raises ``NotFound``, and
        ``InvalidInput`` if it is not in quarantine.
        """
        changed: list[Note] = []

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            own = await self._own(scope, note_id)
            if fold(*own[note_id])[0].quarantined is None:
                raise InvalidInput(f"{note_id} is not in quarantine")
            head = next(iter(own))
            cited = await self._store.citing(scope, [head])
            touched = sorted({r.note for r in cited if (r.cause.by, r.cause.note) == (QUARANTINE, head)} | own.keys())
            puts: list[PutRevision] = []
            for history in (await self._store.histories(scope, touched)).values():
                lifted = [r for r in live_revisions(history.revisions, QUARANTINE) if r.cause.note == head]
                if lifted:
                    undoes = tuple(sorted({r.version for r in lifted} | _merges_among(history, lifted)))
                    puts.append(revised(history, clock, Cause(by=RELEASE, note=head), {}, undoes=undoes))
            unread = {put.note.id for put in puts if put.note.id in own and "context" not in put.note.authored}
            return await self._done(scope, puts, clock, changed, unread)

        await self._commits.commit(scope, plan)
        return changed

    async def _own(self, scope: Scope, note_id: str) -> dict[str, NoteHistory]:
        """The histories of a note and, if an event was made into it, of the event's other parts; the head first."""
        histories = await self._store.histories(scope, [note_id])
        if note_id not in histories:
            raise NotFound(scope, [note_id])
        base = histories[note_id].base
        if base.kind is not Kind.EPISODIC:
            return histories
        events = set(await self._store.events_like(scope, base.event_ids))
        resting = await self._store.histories(scope, await self._store.notes_of(scope, sorted(events)))
        parts = [one for one in resting.values() if one.base.kind is Kind.EPISODIC and rests_on(one, events)]
        return {one.base.id: one for one in sorted(parts, key=lambda one: (one.base.part, one.base.seq))}

    async def _take_back(
        self, scope: Scope, own: Mapping[str, NoteHistory], cause: Cause, clock: Clock, puts: list[PutRevision]
    ) -> set[str]:
        """Add to ``puts`` what takes back all that rests on these notes; the ids of those that lose wording."""
        derived, versions = await consequences(self._store, scope, own.keys())
        others = sorted((derived | versions.keys()) - own.keys())
        reworded: set[str] = set()
        for id in others:
            found = await histories_after(self._store, scope, [id], puts)
            if id not in found:
                continue
            history = found[id]
            if id in derived:
                puts.append(revised(history, clock, cause, {"archived": True}))
                continue
            decided = [r for r in history.revisions if r.version in versions[id] and _is_decision(r)]
            if decided:
                put = revised(history, clock, cause, {}, undoes=tuple(r.version for r in decided))
                puts += [put, *await followers(self._store, scope, history, put, clock, puts)]
                reworded |= {id} if any(r.cause.by not in WORDLESS for r in decided) else set()
        return reworded

    async def _done(
        self, scope: Scope, puts: list[PutRevision], clock: Clock, changed: list[Note], reworded: set[str]
    ) -> list[Op]:
        """The operations that these revisions come to, with the jobs of those that are to be linked anew."""
        last = {put.note.id: put.note for put in puts}
        changed[:] = sorted(last.values(), key=lambda note: note.seq)
        follow = await reindexed(self._store, self._vectors, self._follow_ups, scope, puts, clock, reworded)
        indexed = {put.note.id for put in puts if put.index is not None}
        for note in changed:
            if not note.archived and note.id not in indexed:
                follow += self._follow_ups.of_index(scope, note, clock.now)
        return [*puts, *follow]


def _is_decision(revision: Revision) -> bool:
    return bool(revision.change or revision.links) and revision.cause.by not in ("user", QUARANTINE)


def _merges_among(history: NoteHistory, lifted: Sequence[Revision]) -> set[int]:
    """The merges that these revisions took back: whom a note was merged with may have gone elsewhere since."""
    undone = {version for revision in lifted for version in revision.undoes}
    return {r.version for r in history.revisions if r.version in undone and r.cause.by == MERGER}
