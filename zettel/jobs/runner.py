"""The in-process runner: a task that claims due jobs and does them until there are none, then sleeps until woken.

One batch at a time, so that linking keeps the order of arrival; ``drain`` only waits.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta, timezone

import anyio

from zettel.batch import StaleLease
from zettel.errors import FlushTimeout, JobFailed, StoreBusy, StoreUnreachable
from zettel.jobs.queue import next_attempt
from zettel.jobs.work import Work
from zettel.model import Job, JobState, Scope
from zettel.ports import GraphStore

CLAIM = 1024
"""Jobs taken at once: enough to share reads among them, few enough to be done well inside the lease."""
LEASE_SECONDS = 30.0
"""How long a claimed batch is left to its worker before another may take it: what a killed worker delays. One that is
only slow loses nothing but its effort, for effects are written once."""
GRACE_SECONDS = 1.0
"""What ``close`` gives a batch to end by itself."""
GIVE_BACK_SECONDS = 5.0
"""What ``close`` takes at most to give back what was not done: if the store cannot be reached, the leases run out."""
IDLE_SECONDS = 2.0
"""Between two looks at the queue for work that others left or that a pause has ended for."""
LINGER_SECONDS = 0.1
"""What a batch waits for more to join it while nobody waits for it: a job costs far less in company, and writers that
add one event at a time get out of each other's way."""
LOOK_SECONDS = 1.0
"""Between two looks of a ``drain`` whether its scope is done, while other work goes on."""
WAIT_SECONDS = 0.02
"""The same while there is nothing to do here but jobs that another worker holds or that wait for their time."""

GONE = "another job of its batch was taken over or deleted meanwhile; it is done again"
"""What a job says of itself that was dropped because of another one."""
STOPPED = "stopped before it was done"
"""What stands with a job that was given back, until it is done."""
STILL_READ = "pending: another reader still holds the old pages"
"""What a purge says of itself while it waits."""


class InProcessRunner:
    """Runs a store's jobs in the event loop of its memory."""

    def __init__(self, store: GraphStore, work: Work) -> None:
        self._store = store
        self._work = work
        self._woken = asyncio.Event()
        self._idle = asyncio.Event()
        self._hurried = asyncio.Event()
        self._draining = 0
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self._purge_due = False
        self._told: set[str] = set()
        self._held: list[Job] = []

    async def start(self) -> None:
        """Begin to work in the background."""
        self._task = asyncio.create_task(self._loop(), name="zettel jobs")

    def wake(self) -> None:
        """There is new work."""
        self._woken.set()

    def purge_later(self) -> None:
        """Purge the store as soon as other readers let it."""
        self._purge_due = True
        self.wake()

    async def close(self) -> None:
        """Stop. A batch that does not end in a moment is given back: nothing of it is written."""
        self._closing = True
        self._hurried.set()
        self.wake()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=GRACE_SECONDS)
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        with anyio.move_on_after(GIVE_BACK_SECONDS), suppress(StoreBusy, StoreUnreachable):
            for job in self._held:
                await self._store.fail(job, STOPPED, datetime.now(timezone.utc))

    async def drain(self, scope: Scope | None, deadline: float | None) -> None:
        """Wait until all jobs of a scope (None: of all) are done, also those waiting for another attempt.

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
        while True:
            if self._task is not None and self._task.done():
                self._task.result()
            self._idle.clear()
            self.wake()
            left = LOOK_SECONDS if deadline is None else min(LOOK_SECONDS, deadline - anyio.current_time())
            with anyio.move_on_after(left):
                await self._idle.wait()
            waiting = await self._store.pending(scope)
            if not waiting and not self._purge_due:
                return
            if deadline is not None and anyio.current_time() >= deadline:
                raise FlushTimeout(f"{waiting} jobs are still pending; they go on in the background")
            await asyncio.sleep(WAIT_SECONDS)

    async def _run_batch(self) -> bool:
        """Claim one batch and do it; whether there was one."""
        jobs = await self._store.claim(await self._work.kinds(), CLAIM, LEASE_SECONDS, None)
        if not jobs:
            return False
        self._held = jobs
        # Whatever goes wrong belongs to the job: it is kept with it, and the runner goes on.
        (outcome,) = await asyncio.gather(self._work.do(jobs), return_exceptions=True)
        if isinstance(outcome, asyncio.CancelledError):
            raise outcome
        if isinstance(outcome, StaleLease):  # one job is somebody else's now, or was deleted: the others are still ours
            await self._later(jobs, timedelta(0), GONE)
        elif isinstance(outcome, BaseException):
            await self._failed(jobs, outcome)
        elif isinstance(outcome, timedelta):
            await self._later(jobs, outcome, STILL_READ)
        self._held = []
        return True

    async def _failed(self, jobs: list[Job], error: BaseException) -> None:
        now = datetime.now(timezone.utc)
        self._told.difference_update(job.id for job in jobs)
        for job in jobs:
            await self._store.fail(job, f"{type(error).__name__}: {error}", next_attempt(error, job.attempts, now))

    async def _later(self, jobs: list[Job], pause: timedelta, why: str) -> None:
        for job in jobs:
            await self._store.fail(job, why, datetime.now(timezone.utc) + pause)

    async def _loop(self) -> None:
        while not self._closing:
            self._woken.clear()
            try:
                worked = await self._run_batch()
                self._purge_due = self._purge_due and not await self._store.purge()
            except (StoreBusy, StoreUnreachable):  # another process writes, or the server restarts: the queue stays
                worked = False
            if not worked:
                self._idle.set()
                with anyio.move_on_after(IDLE_SECONDS):
                    await self._woken.wait()
            with anyio.move_on_after(LINGER_SECONDS):
                await self._hurried.wait()
