"""Doing jobs here: the work itself, and what becomes of a batch that went wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from zettel.batch import StaleLease
from zettel.errors import BudgetSpent, ZettelError
from zettel.jobs.queue import next_attempt
from zettel.jobs.tally import Tally
from zettel.jobs.work import Work
from zettel.model import Evolved, Job, JobKind
from zettel.opening import Opening
from zettel.ports import GraphStore

GONE = "another job of its batch was taken over or deleted meanwhile; it is done again"
"""What a job says of itself that was dropped because of another one."""
QUOTING = frozenset({JobKind.ANNOTATE, JobKind.LINK, JobKind.EVOLVE, JobKind.REFLECT})
"""Jobs that put texts into questions, or write some."""
STILL_READ = "pending: another reader still holds the old pages"
"""What a purge says of itself while it waits."""


class InProcessRunner:
    """Does jobs in the event loop it is called in. ``tally`` is where its work counts what it changes."""

    at_once = 1
    away = False

    def __init__(self, store: GraphStore, work: Work, tally: Tally) -> None:
        self._store = store
        self._work = work
        self._tally = tally

    async def start(self, opening: Opening) -> None:
        """Nothing has to be made ready."""

    async def do(self, jobs: Sequence[Job]) -> Evolved:
        """Do jobs of one scope and kind, and keep with them what went wrong; how many notes that changed."""
        # Whatever goes wrong belongs to the jobs, and whoever gave them goes on.
        (outcome,) = await asyncio.gather(self._work.do(jobs), return_exceptions=True)
        if isinstance(outcome, timedelta):
            await self._store.fail(jobs, STILL_READ, datetime.now(timezone.utc) + outcome)
        elif isinstance(outcome, BaseException):
            await keep(self._store, jobs, outcome)
        else:
            for left in outcome:
                await keep(self._store, left.jobs, left.error)
        return self._tally.take(jobs[0].scope)

    async def close(self) -> None:
        """Nothing is held."""


async def keep(store: GraphStore, jobs: Sequence[Job], error: BaseException) -> None:
    """Keep with jobs why they were not done."""
    if isinstance(error, asyncio.CancelledError):
        raise error
    now = datetime.now(timezone.utc)
    if isinstance(error, StaleLease):  # one job is somebody else's now, or was deleted: the others are still ours
        await store.fail(jobs, GONE, now, counts=False)
        return
    # What is not ours may quote what a model was asked: a text that would outlive its deletion.
    quotes = jobs[0].kind in QUOTING and not isinstance(error, ZettelError)
    told = type(error).__name__ + ("" if quotes else f": {error}")
    for attempts in sorted({job.attempts for job in jobs}):
        alike = [job for job in jobs if job.attempts == attempts]
        await store.fail(alike, told, next_attempt(error, attempts, now), counts=not isinstance(error, BudgetSpent))
