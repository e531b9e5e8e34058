"""The purge job: rewrites the store so that deleted text leaves its files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta

from zettel.core.commit import Commits
from zettel.core.follow_ups import UnfinishedJobs, finish_plan
from zettel.jobs.spec import JobHandler, JobSpec, Pause
from zettel.model import Job, JobKind, Scope
from zettel.ports import GraphStore

PURGE_PAUSE = 4.0
"""The pause after a purge, in multiples of its duration: a purge rewrites the whole store, and deletes often follow."""
PURGE_PENDING = Pause(timedelta(seconds=1), "pending: another reader still uses the old pages")
"""The pause after a purge that another reader blocked."""


class PurgeJob(JobHandler):
    """Purges a store."""

    def __init__(self, store: GraphStore, commits: Commits) -> None:
        self._store = store
        self._commits = commits
        self._paused_until = 0.0

    async def is_ready(self) -> bool:
        return time.monotonic() >= self._paused_until

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs] | Pause:
        """Purge the store; return a pause if another reader still uses the old pages."""
        start = time.monotonic()
        if not await self._store.purge():
            return PURGE_PENDING
        end = time.monotonic()
        self._paused_until = end + PURGE_PAUSE * (end - start)
        await self._commits.commit(scope, finish_plan(jobs))
        return []


JOB = JobSpec(JobKind.PURGE, lambda context: PurgeJob(context.store, context.commits), store_wide=True)
