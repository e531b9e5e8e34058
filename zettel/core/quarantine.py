"""Archives a note and reverts all its effects until it is released.

Only searches of the archive find a quarantined note, and jobs skip it. The same transaction reverts everything that
``delete`` would destroy: derived notes are archived, and other notes lose the revisions based on it. Each quarantine
adds revisions of its own, so overlapping ones can be released one by one. Changes by people remain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zettel.core.authority import require_authority, require_full_trust
from zettel.core.commit import Clock, Commits
from zettel.core.decisions import BY_PEOPLE
from zettel.core.fold import fold, live_revisions
from zettel.core.follow_ups import FollowUps
from zettel.core.merges import followers, histories_after, merge_versions, rests_on
from zettel.core.provenance import consequences
from zettel.core.reindex import reindexed
from zettel.core.revise import revised
from zettel.core.vectors import Vectors
from zettel.errors import InvalidInput, NotFound
from zettel.model import CallKind, Cause, JobKind, Kind, Note, Revision, Scope
from zettel.ports import GraphStore, NoteHistory, ScopeState
from zettel.ports.operations import Op, PutRevision

"""Causes of revisions."""


class Quarantiner:
    """Quarantines and releases notes of a store."""

    def __init__(self, store: GraphStore, commits: Commits, vectors: Vectors, follow_ups: FollowUps) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._follow_ups = follow_ups

    async def quarantine(self, scope: Scope, note_id: str, reason: str) -> list[Note]:
        """Quarantine a note with all parts of its event, and return the changed notes.

        Raises ``NotFound``, and ``InvalidInput`` if it is in quarantine already; then nothing was changed.
        """
        changed: list[Note] = []

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            own = await self._own(scope, note_id)
            for history in own.values():
                require_authority(fold(*history)[0])
            if fold(*own[note_id])[0].quarantined is not None:
                raise InvalidInput(f"{note_id} is in quarantine already")
            cause = Cause(by=CallKind.QUARANTINE, note=next(iter(own)))
            puts: list[PutRevision] = []
            for history in own.values():
                change = {"archived": True, "quarantined": reason}
                put = revised(history, clock, cause, change, undoes=merge_versions(history))
                puts += [put, *await followers(self._store, scope, history, put, clock, puts)]
            reworded = await self._revert_effects(scope, own, cause, clock, puts)
            return await self._done(scope, puts, clock, changed, reworded)

        await self._commits.commit(scope, plan)
        return changed

    async def release(self, scope: Scope, note_id: str) -> list[Note]:
        """Release a note, restore the effects that its quarantine reverted, and return the changed notes.

        The next round merges equal notes again. Raises ``NotFound``, and ``InvalidInput`` if it is not in quarantine.
        """
        changed: list[Note] = []
        require_full_trust("releases a note from quarantine")

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            own = await self._own(scope, note_id)
            if fold(*own[note_id])[0].quarantined is None:
                raise InvalidInput(f"{note_id} is not in quarantine")
            head = next(iter(own))
            cited = await self._store.citing(scope, [head])
            quarantined = {r.note for r in cited if (r.cause.by, r.cause.note) == (CallKind.QUARANTINE, head)}
            touched = sorted(quarantined | own.keys())
            puts: list[PutRevision] = []
            for history in (await self._store.histories(scope, touched)).values():
                lifted = [r for r in live_revisions(history.revisions, CallKind.QUARANTINE) if r.cause.note == head]
                if lifted:
                    undoes = tuple(sorted({r.version for r in lifted} | _merges_among(history, lifted)))
                    puts.append(revised(history, clock, Cause(by=CallKind.RELEASE, note=head), {}, undoes=undoes))
            unread = {put.note.id for put in puts if put.note.id in own and "context" not in put.note.authored}
            return await self._done(scope, puts, clock, changed, unread)

        await self._commits.commit(scope, plan)
        return changed

    async def _own(self, scope: Scope, note_id: str) -> dict[str, NoteHistory]:
        """Return the histories of a note and of the other parts of its event, the head first."""
        histories = await self._store.histories(scope, [note_id])
        if note_id not in histories:
            raise NotFound(scope, [note_id])
        base = histories[note_id].base
        if base.kind is not Kind.EPISODIC:
            return histories
        events = set(await self._store.events_like(scope, base.event_ids))
        histories = await self._store.histories(scope, await self._store.notes_of(scope, sorted(events)))
        parts = [part for part in histories.values() if part.base.kind is Kind.EPISODIC and rests_on(part, events)]
        return {part.base.id: part for part in sorted(parts, key=lambda part: (part.base.part, part.base.seq))}

    async def _revert_effects(
        self, scope: Scope, own: Mapping[str, NoteHistory], cause: Cause, clock: Clock, puts: list[PutRevision]
    ) -> set[str]:
        """Add to ``puts`` the reverts of all effects, and return the ids of the notes that lose wording."""
        derived, versions = await consequences(self._store, scope, own.keys())
        others = sorted((derived | versions.keys()) - own.keys())
        reworded: set[str] = set()
        for id in others:
            history = (await histories_after(self._store, scope, [id], puts)).get(id)
            if history is None:
                continue
            if id in derived:
                puts.append(revised(history, clock, cause, {"archived": True}))
                continue
            decided = [r for r in history.revisions if r.version in versions[id] and _is_decision(r)]
            if decided:
                put = revised(history, clock, cause, {}, undoes=tuple(r.version for r in decided))
                puts += [put, *await followers(self._store, scope, history, put, clock, puts)]
                reworded |= {id} if any(r.cause.by.rewords for r in decided) else set()
        return reworded

    async def _done(
        self, scope: Scope, puts: list[PutRevision], clock: Clock, changed: list[Note], reworded: set[str]
    ) -> list[Op]:
        """Return all operations, with the jobs of the notes to link again; sets ``changed``."""
        last = {put.note.id: put.note for put in puts}
        changed[:] = sorted(last.values(), key=lambda note: note.seq)
        follow = await reindexed(self._store, self._vectors, self._follow_ups, scope, puts, clock, reworded)
        indexed = {put.note.id for put in puts if put.index is not None}
        for note in changed:
            if not note.archived and note.id not in indexed:
                follow += self._follow_ups.of_index(scope, note, clock.now, self._vectors.later)
        return [*puts, *follow]


def _is_decision(revision: Revision) -> bool:
    return bool(revision.change or revision.links) and revision.cause.by not in {*BY_PEOPLE, CallKind.QUARANTINE}


def _merges_among(history: NoteHistory, lifted: Sequence[Revision]) -> set[int]:
    """Return the versions of merges that these revisions reverted; their other notes may have changed since."""
    undone = {version for revision in lifted for version in revision.undoes}
    return {r.version for r in history.revisions if r.version in undone and r.cause.by == JobKind.MERGE}
