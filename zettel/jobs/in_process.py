"""The runner that runs jobs in the process of the memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timezone

from zettel.core.telemetry import ERROR, JOBS_DURATION, observed
from zettel.jobs.counters import Counters
from zettel.jobs.spec import Pause
from zettel.jobs.work import Work
from zettel.model import Evolved, Job
from zettel.ports import GraphStore
from zettel.ports.settings import Settings


class InProcessRunner:
    """Runs jobs in the caller's event loop. ``counters`` are the counters of the handlers of ``work``."""

    at_once = 1
    away = False

    def __init__(self, store: GraphStore, work: Work, counters: Counters) -> None:
        self._store = store
        self._work = work
        self._counters = counters

    async def start(self, settings: Settings) -> None:
        """Do nothing: this process is ready."""

    async def do(self, jobs: Sequence[Job]) -> Evolved:
        """Run jobs of one scope and kind, and store their errors with them; return the numbers of changed notes."""
        kind = jobs[0].kind.value
        with observed(f"zettel.job.{kind}", JOBS_DURATION, {"zettel.job.kind": kind}) as observation:
            observation.attributes["zettel.count"] = len(jobs)
            # Errors of all types are stored with the jobs, and the caller continues.
            (outcome,) = await asyncio.gather(self._work.do(jobs), return_exceptions=True)
            if isinstance(outcome, BaseException):
                observation.measured[ERROR] = type(outcome).__name__
        if isinstance(outcome, Pause):
            await self._store.fail(jobs, outcome.reason, datetime.now(timezone.utc) + outcome.length, counts=False)
        elif isinstance(outcome, BaseException):
            await self._work.fail(jobs, outcome)
        else:
            for unfinished in outcome:
                await self._work.fail(unfinished.jobs, unfinished.error)
        return self._counters.take(jobs[0].scope)

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""
