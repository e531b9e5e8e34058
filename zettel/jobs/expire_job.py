"""The expire job: deletes or archives the notes of a scope whose time is over, and plans the sweep of the next day."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta

from zettel.core.commit import Clock, Commits
from zettel.core.erase import Eraser
from zettel.core.follow_ups import UnfinishedJobs, finish, purge_job
from zettel.core.retention import Sweeper
from zettel.jobs.spec import JobContext, JobHandler, JobSpec, Pause
from zettel.model import Job, JobKind, Scope
from zettel.ports import ScopeState
from zettel.ports.operations import Op

RUN_SECONDS = 2.0
"""Seconds after which a long sweep lets other jobs run for as long."""
MORE = Pause(timedelta(seconds=RUN_SECONDS), "pending: more notes expired")
"""The result of a sweep that continues after other jobs."""


class ExpireJob(JobHandler):
    """Sweeps the scopes of a store."""

    def __init__(self, commits: Commits, sweeper: Sweeper) -> None:
        self._commits = commits
        self._sweeper = sweeper

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs] | Pause:
        """Sweep the scope of these jobs, for at most ``RUN_SECONDS`` and one page."""
        end = time.monotonic() + RUN_SECONDS
        deleted = any(job.attempts > 1 or job.error is not None for job in jobs)  # an earlier run may have deleted
        async for swept in self._sweeper.sweep(scope, purges=False):
            deleted |= swept.deleted > 0
            if time.monotonic() > end:
                return MORE

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            purge = [purge_job(scope, clock)] if deleted else []  # one for all pages: it rewrites the whole store
            return [*purge, *await self._sweeper.next_sweep(scope), *finish(jobs)]

        await self._commits.commit(scope, plan)
        return []


def _make(context: JobContext) -> ExpireJob:
    parts = context.store, context.commits, context.vectors, context.follow_ups
    return ExpireJob(context.commits, Sweeper(*parts, Eraser(*parts, context.searcher.log)))


JOB = JobSpec(JobKind.EXPIRE, _make)
