"""A round of evolution: the jobs about a whole scope, one after the other, for one builds on what another made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zettel.batch import Op
from zettel.commit import Clock, Commits
from zettel.jobs.queue import new_job
from zettel.jobs.tally import Tally
from zettel.model import Evolved, JobKind, JobState, Scope
from zettel.ports import GraphStore, ScopeState

if TYPE_CHECKING:
    from zettel.jobs.loop import JobLoop

ROUND = (JobKind.DECAY, JobKind.MERGE, JobKind.REFLECT, JobKind.EVOLVE)
"""What has faded goes first, then duplicates, for a neighbourhood is smaller without them. What is distilled comes
before words spread: it adds to how often these are said. So one round leaves nothing to do for another."""


class Evolution:
    """Queues the jobs of a round, and waits for them. ``kinds`` are those that can be done here."""

    def __init__(
        self, store: GraphStore, commits: Commits, loop: JobLoop, tally: Tally, kinds: Sequence[JobKind]
    ) -> None:
        self._store = store
        self._commits = commits
        self._loop = loop
        self._tally = tally
        self._kinds = [kind for kind in ROUND if kind in kinds]
        self._queued_at: dict[str, int] = {}

    async def run(self, scope: Scope, deadline: float | None) -> Evolved:
        """All that is pending, then a round; what it changed, as far as this memory had it done.

        Raises what ``JobLoop.drain`` raises, ``JobFailed`` when the round is over: no job waits for one that failed.
        """
        await self._loop.rest(scope, deadline)
        await self._forget_failed(scope)
        before = self._tally.so_far(scope)
        for kind in self._kinds:
            if await self._queue(scope, kind):
                await self._loop.rest(scope, deadline)
        await self._loop.drain(scope, deadline)
        after = self._tally.so_far(scope)
        return Evolved(*(now - then for now, then in zip(after, before, strict=True)))

    async def later(self, scope: Scope) -> bool:
        """Queue a whole round, for whoever works; False if nothing was written in the scope since the last time.

        The jobs of a round are queued in its order, and come after those of single notes.
        """
        at = 0

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            nonlocal at
            if state.seq == self._queued_at.get(scope.key, 0):
                return []
            at = clock.next()
            return [new_job(scope, kind, clock.now, version=at) for kind in self._kinds]

        queued = await self._commits.commit(scope, plan)
        if queued:
            await self._forget_failed(scope)
            self._queued_at[scope.key] = at
            self._loop.wake()
        return queued

    async def _queue(self, scope: Scope, kind: JobKind) -> bool:
        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            if not state.seq:  # nothing was ever written there
                return []
            return [new_job(scope, kind, clock.now, version=clock.next())]

        return await self._commits.commit(scope, plan)

    async def _forget_failed(self, scope: Scope) -> None:
        """Drop the jobs of former rounds that failed: a new round does what they were to do."""
        for job in await self._store.jobs(scope, JobState.FAILED):
            if job.kind in self._kinds:
                await self._store.cancel(scope, job.id)
