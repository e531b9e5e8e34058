"""The in-process runner: for each lane a task that claims due jobs and does them until there are none, then sleeps
until woken.

One batch at a time in a lane, so that linking keeps the order of arrival; ``drain`` only waits.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta, timezone

import anyio

from zettel.batch import StaleLease
from zettel.errors import FlushTimeout, JobFailed, StoreBusy, StoreUnreachable, ZettelError
from zettel.jobs.evolution import ROUND
from zettel.jobs.queue import next_attempt
from zettel.jobs.work import Lane, Work
from zettel.model import Job, JobKind, JobState, Scope
from zettel.ports import GraphStore

GRACE_SECONDS = 1.0
"""What ``close`` gives a batch to end by itself."""
GIVE_BACK_SECONDS = 5.0
"""What ``close`` takes at most to give back what was not done: if the store cannot be reached, the leases run out."""
IDLE_SECONDS = 2.0
"""Between two looks at the queue for work that others left or that a pause has ended for."""
LOOK_SECONDS = 1.0
"""Between two looks of a ``drain`` whether its scope is done, while other work goes on."""
WAIT_SECONDS = 0.02
"""The same while there is nothing to do here but jobs that another worker holds or that wait for their time."""

RENEWALS = 3
"""How often a lease is renewed before it would run out."""
SOON = timedelta(minutes=2)
"""What a ``drain`` waits for: longer than the longest pause between two attempts, shorter than a budget's day."""

GONE = "another job of its batch was taken over or deleted meanwhile; it is done again"
"""What a job says of itself that was dropped because of another one."""
STOPPED = "stopped before it was done"
"""What stands with a job that was given back, until it is done."""
QUOTING = frozenset({JobKind.ANNOTATE, JobKind.LINK, JobKind.EVOLVE, JobKind.REFLECT})
"""Jobs that put texts into questions, or write some."""
STILL_READ = "pending: another reader still holds the old pages"
"""What a purge says of itself while it waits."""


class _Lane:
    """A task that works at one lane."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.woken = asyncio.Event()
        self.idle = asyncio.Event()
        self.held: list[Job] = []
        self.task: asyncio.Task[None] | None = None


class InProcessRunner:
    """Runs a store's jobs in the event loop of its memory."""

    def __init__(self, store: GraphStore, work: Work) -> None:
        self._store = store
        self._work = work
        self._lanes = [_Lane(lane) for lane in work.lanes()]
        self._hurried = asyncio.Event()
        self._draining = 0
        self._closing = False
        self._purge_due = False
        self._told: set[str] = set()

    async def start(self) -> None:
        """Begin to work in the background."""
        for lane in self._lanes:
            lane.task = asyncio.create_task(self._loop(lane), name=f"zettel jobs: {', '.join(lane.lane.kinds)}")

    def wake(self) -> None:
        """There is new work."""
        for lane in self._lanes:
            lane.woken.set()

    def purge_later(self) -> None:
        """Purge the store as soon as other readers let it."""
        self._purge_due = True
        self.wake()

    async def close(self) -> None:
        """Stop. A batch that does not end in a moment is given back: nothing of it is written."""
        self._closing = True
        self._hurried.set()
        self.wake()
        tasks = [lane.task for lane in self._lanes if lane.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE_SECONDS)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        with anyio.move_on_after(GIVE_BACK_SECONDS), suppress(StoreBusy, StoreUnreachable):
            for lane in self._lanes:
                if lane.held:
                    await self._store.fail(lane.held, STOPPED, datetime.now(timezone.utc))

    async def drain(self, scope: Scope | None, deadline: float | None) -> None:
        """Wait until all jobs of a scope (None: of all) are done that can be done here, also those waiting for another
        attempt soon.

        Raises ``FlushTimeout`` past the deadline (seconds of the event loop's clock), ``JobFailed`` if any job has
        ended in an error, once for each; the error is kept with it. What ended the runner itself is raised here too.
        """
        self._draining += 1
        self._hurried.set()
        try:
            await self._until_done(scope, deadline)
        finally:
            self._draining -= 1
            if not self._draining and not self._closing:
                self._hurried.clear()
        failed = [job for job in await self._store.jobs(scope, JobState.FAILED) if job.id not in self._told]
        if failed:
            self._told.update(job.id for job in failed)
            raise JobFailed(
                f"{len(failed)} jobs failed, the first with: {failed[0].error}; `zettel jobs` shows all, "
                "`zettel jobs retry` runs them again"
            )

    async def _until_done(self, scope: Scope | None, deadline: float | None) -> None:
        kinds = [kind for lane in self._lanes for kind in lane.lane.kinds]
        while True:
            for lane in self._lanes:
                if lane.task is not None and lane.task.done():
                    lane.task.result()
                lane.idle.clear()
            self.wake()
            left = LOOK_SECONDS if deadline is None else min(LOOK_SECONDS, deadline - anyio.current_time())
            with anyio.move_on_after(left):
                for lane in self._lanes:
                    await lane.idle.wait()
            soon = datetime.now(timezone.utc) + SOON
            waiting = await self._store.pending(scope, kinds, soon)
            if not waiting and not self._purge_due:
                return
            if deadline is not None and anyio.current_time() >= deadline:
                raise FlushTimeout(f"{waiting} jobs are still pending; they go on in the background")
            await asyncio.sleep(WAIT_SECONDS)

    async def _run_batch(self, at: _Lane) -> int:
        """Claim one batch and do it; how many jobs there were."""
        lane = at.lane
        kinds = [kind for kind in await self._work.kinds() if kind in lane.kinds]
        jobs = await self._store.claim(kinds, lane.claim, lane.lease, None) if kinds else []
        if not jobs:
            return 0
        at.held = jobs
        renewing = asyncio.create_task(self._renew(jobs, lane.lease)) if jobs[0].kind in ROUND else None
        try:
            # Whatever goes wrong belongs to the jobs: it is kept with them, and the runner goes on.
            (outcome,) = await asyncio.gather(self._work.do(jobs), return_exceptions=True)
        finally:
            if renewing is not None:
                renewing.cancel()
        if isinstance(outcome, timedelta):
            await self._later(jobs, outcome, STILL_READ)
        elif isinstance(outcome, BaseException):
            await self._left(jobs, outcome)
        else:
            for left in outcome:
                await self._left(left.jobs, left.error)
        at.held = []
        return len(jobs)

    async def _renew(self, jobs: list[Job], lease: float) -> None:
        """Hold what concerns a whole scope as long as it takes, which nobody knows beforehand."""
        while True:
            await asyncio.sleep(lease / RENEWALS)
            with suppress(StoreBusy, StoreUnreachable):
                await self._store.renew(jobs, lease)

    async def _left(self, jobs: list[Job], error: BaseException) -> None:
        """Keep with jobs why they were not done."""
        if isinstance(error, asyncio.CancelledError):
            raise error
        if isinstance(error, StaleLease):  # one job is somebody else's now, or was deleted: the others are still ours
            await self._later(jobs, timedelta(0), GONE)
            return
        now = datetime.now(timezone.utc)
        self._told.difference_update(job.id for job in jobs)
        # What is not ours may quote what a model was asked: a text that would outlive its deletion.
        quotes = jobs[0].kind in QUOTING and not isinstance(error, ZettelError)
        told = type(error).__name__ + ("" if quotes else f": {error}")
        for attempts in sorted({job.attempts for job in jobs}):
            alike = [job for job in jobs if job.attempts == attempts]
            await self._store.fail(alike, told, next_attempt(error, attempts, now))

    async def _later(self, jobs: list[Job], pause: timedelta, why: str) -> None:
        await self._store.fail(jobs, why, datetime.now(timezone.utc) + pause)

    async def _loop(self, at: _Lane) -> None:
        while not self._closing:
            at.woken.clear()
            worked = 0
            with suppress(StoreBusy, StoreUnreachable):  # another process writes, or the server restarts
                worked = await self._run_batch(at)
                if self._purge_due and JobKind.PURGE in at.lane.kinds:
                    self._purge_due = not await self._store.purge()
            if not worked:
                at.idle.set()
                with anyio.move_on_after(IDLE_SECONDS):
                    await at.woken.wait()
            if worked < at.lane.claim:
                with anyio.move_on_after(at.lane.linger):
                    await self._hurried.wait()
