"""Evolution rounds: run the jobs of a whole scope one after another, because each job builds on the one before."""

from __future__ import annotations

from zettel.core.commit import Clock, Commits
from zettel.core.follow_ups import new_job
from zettel.jobs.counters import Counters
from zettel.jobs.loop import JobLoop
from zettel.jobs.work import Work
from zettel.model import Evolved, JobKind, JobState, Scope
from zettel.ports import GraphStore, ScopeState
from zettel.ports.operations import Op


class EvolutionRound:
    """Queues the jobs of a round in the order of ``JobSpec.round``, and waits for them.

    Decay comes first, then duplicates, because a neighbourhood is smaller without them. Reflection comes before
    keywords spread, because insights change the frequency of keywords. So a second round changes nothing.
    """

    def __init__(self, store: GraphStore, commits: Commits, loop: JobLoop, counters: Counters, work: Work) -> None:
        self._store = store
        self._commits = commits
        self._loop = loop
        self._counters = counters
        self._kinds = work.round
        self._queued_at: dict[str, int] = {}

    async def run(self, scope: Scope, deadline: float | None) -> Evolved:
        """Finish the pending jobs, run a round, and return the changes that this memory made.

        Raises what ``JobLoop.drain`` raises; ``JobFailed`` comes last, because no job waits for a failed one.
        """
        await self._loop.wait_until_idle(scope, deadline)
        await self._cancel_failed(scope)
        before = self._counters.total(scope)
        for kind in self._kinds:
            if await self._queue(scope, kind):
                await self._loop.wait_until_idle(scope, deadline)
        await self._loop.drain(scope, deadline)
        after = self._counters.total(scope)
        return Evolved(*(now - then for now, then in zip(after, before, strict=True)))

    async def later(self, scope: Scope) -> bool:
        """Queue a whole round for any worker; return False if nothing was written in the scope since the last one.

        Jobs of single notes run before the jobs of a round.
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
            await self._cancel_failed(scope)
            self._queued_at[scope.key] = at
            self._loop.wake()
        return queued

    async def _queue(self, scope: Scope, kind: JobKind) -> bool:
        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            if not state.seq:  # the scope is empty
                return []
            return [new_job(scope, kind, clock.now, version=clock.next())]

        return await self._commits.commit(scope, plan)

    async def _cancel_failed(self, scope: Scope) -> None:
        """Cancel the failed jobs of earlier rounds: a new round does their work."""
        for job in await self._store.jobs(scope, JobState.FAILED):
            if job.kind in self._kinds:
                await self._store.cancel(scope, job.id)
