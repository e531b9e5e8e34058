"""The background loop of a memory: one task per lane claims due jobs and gives them to the runner.

In one process a lane runs one batch at a time, so jobs run in the order of arrival. If a runner runs several batches at
once, a job that builds on others waits until no batch of its scope is running.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone

import anyio

from zettel.core import telemetry
from zettel.errors import FlushTimeout, JobFailed, StoreBusy, StoreError, StoreUnreachable
from zettel.jobs.counters import Counters
from zettel.jobs.work import Lane, Work
from zettel.model import Job, JobKind, JobState, Scope
from zettel.ports import GraphStore, Runner

GRACE_SECONDS = 1.0
"""Seconds that ``close`` gives a batch to finish."""
REQUEUE_SECONDS = 5.0
"""The most seconds for ``close`` to requeue unfinished jobs; if the store is unreachable, their leases expire."""
IDLE_SECONDS = 2.0
"""Seconds between two polls of the queue for jobs of other processes and jobs whose pause has ended."""
POLL_SECONDS = 1.0
"""Seconds between two polls of a ``drain`` while other jobs run."""
FIRST_BACKOFF, LONGEST_BACKOFF = 0.02, 0.5
"""Seconds between two polls of a ``drain`` when other workers lease all remaining jobs, or the jobs are not due.
The pause doubles each time, and resets when this memory claims or finishes a batch."""

MEASURE_SECONDS = 15.0
"""Seconds between two counts of the waiting and failed jobs, for metrics."""
RENEWALS = 3
"""Renewals of a lease before it would expire."""
SOON = timedelta(minutes=2)
"""A ``drain`` waits for jobs due within this time: longer than the pauses between attempts, shorter than a day."""
PAUSED = timedelta(seconds=3)
"""A ``drain`` waits for planned jobs due within this time: longer than the pauses of a long sweep."""

STOPPED = "stopped before it finished"
"""The message of a requeued job."""


class _LaneTask:
    """The task of one lane and the batches that it has started."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.woken = asyncio.Event()
        self.idle = asyncio.Event()
        self.running: dict[asyncio.Task[None], list[Job]] = {}
        self.task: asyncio.Task[None] | None = None
        self.error: StoreError | None = None
        """The error of the last poll of the queue."""


class JobLoop:
    """Gives a store's jobs to a runner. ``counters`` count the notes that the jobs change."""

    def __init__(self, store: GraphStore, work: Work, local: Runner, runner: Runner, counters: Counters) -> None:
        """``local`` runs the jobs that concern the whole store; ``runner`` runs the others."""
        self._store = store
        self._work = work
        self._local = local
        self._runner = runner
        self._counters = counters
        self._lanes = [_LaneTask(lane) for lane in work.lanes()]
        self._hurried = asyncio.Event()
        self._claiming = asyncio.Lock()  # so that each claim sees the running batches of all lanes
        self._progress = asyncio.Event()  # set, and replaced, when a batch is claimed or finished
        self._draining = 0
        self._closing = False
        self._ending = asyncio.Event()
        self._reported: set[str] = set()
        self._measuring: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the background tasks. The caller has started the runner."""
        for lane in self._lanes:
            lane.task = asyncio.create_task(self._loop(lane), name=f"zettel jobs: {', '.join(lane.lane.kinds)}")
        self._measuring = asyncio.create_task(self._measure(), name="zettel metrics")

    def wake(self) -> None:
        """Poll the queue now."""
        for lane in self._lanes:
            lane.woken.set()

    async def close(self) -> None:
        """Stop. Batches that do not finish within GRACE_SECONDS are cancelled and requeued."""
        self._closing = True
        self._ending.set()
        self._hurried.set()
        self.wake()
        tasks = [*(lane.task for lane in self._lanes), self._measuring]
        lanes = [task for task in tasks if task is not None]
        await _end(lanes, [task for lane in self._lanes for task in lane.running])
        await _end([task for lane in self._lanes for task in lane.running])  # batches that started meanwhile
        try:
            with anyio.move_on_after(REQUEUE_SECONDS), suppress(StoreError):
                for task, jobs in [batch for lane in self._lanes for batch in lane.running.items()]:
                    if task.cancelled():
                        await self._store.fail(jobs, STOPPED, datetime.now(timezone.utc), counts=False)
        finally:
            await self._runner.close()

    async def drain(self, scope: Scope | None, deadline: float | None) -> None:
        """``wait_until_idle``, then raise ``JobFailed`` if jobs failed that no drain has reported yet."""
        await self.wait_until_idle(scope, deadline)
        failed = [job for job in await self._store.jobs(scope, JobState.FAILED) if job.id not in self._reported]
        if failed:
            self._reported.update(job.id for job in failed)
            raise JobFailed(
                f"{len(failed)} jobs failed, the first with: {failed[0].error}; `zettel jobs` shows all, "
                "`zettel jobs retry` runs them again"
            )

    async def wait_until_idle(self, scope: Scope | None, deadline: float | None) -> None:
        """Wait until all jobs that this memory can run in a scope (None: in all) are done, retries due soon included.

        Raises ``FlushTimeout`` after the deadline (in seconds of the event loop's clock), and the errors of the lanes.
        """
        self._draining += 1
        self._hurried.set()
        try:
            await self._until_done(scope, deadline)
        finally:
            self._draining -= 1
            if not self._draining and not self._closing:
                self._hurried.clear()

    async def _until_done(self, scope: Scope | None, deadline: float | None) -> None:
        kinds = [kind for lane in self._lanes for kind in lane.lane.kinds]
        backoff = FIRST_BACKOFF
        while True:
            progress = self._progress
            for lane in self._lanes:
                if lane.task is not None and lane.task.done():
                    lane.task.result()
                lane.idle.clear()
            self.wake()
            with anyio.move_on_after(_at_most(POLL_SECONDS, deadline)):
                for lane in self._lanes:
                    await lane.idle.wait()
            if errors := [lane.error for lane in self._lanes if lane.error is not None]:
                raise errors[0]
            soon = datetime.now(timezone.utc) + SOON
            before = self._progress
            pending = await self._store.pending(scope, [kind for kind in kinds if not kind.planned], soon)
            if planned := [kind for kind in kinds if kind.planned]:
                pending += await self._store.pending(scope, planned, datetime.now(timezone.utc) + PAUSED)
            # A server may count while a batch replaces its jobs by others, and then see neither.
            is_certain = not before.is_set() and not self._is_running(scope)
            if not pending and is_certain and not await self._store.purge_due():
                return
            if deadline is not None and anyio.current_time() >= deadline:
                raise FlushTimeout(f"{pending} jobs are still pending; they continue in the background")
            if progress.is_set():
                backoff = FIRST_BACKOFF
                continue
            with anyio.move_on_after(_at_most(backoff, deadline)):
                await progress.wait()
            backoff = min(2 * backoff, LONGEST_BACKOFF)

    def _is_running(self, scope: Scope | None) -> bool:
        """Return whether a batch of the scope (None: of any) is running here."""
        batches = (batch for lane in self._lanes for batch in lane.running.items())
        return any(not task.done() and scope in (None, jobs[0].scope) for task, jobs in batches)

    def _report_progress(self) -> None:
        progress, self._progress = self._progress, asyncio.Event()
        progress.set()

    async def _run_batch(self, lane: _LaneTask) -> int:
        """Claim and start a batch, and return its size; 0 if no job is left to run.

        Returns when the runner can take another batch.
        """
        async with self._claiming:
            jobs = await self._claim(lane)
            if jobs:
                lane.running[asyncio.create_task(self._run_jobs(jobs, lane.lane.lease))] = jobs
                self._report_progress()
        if lane.running and not (jobs and len(lane.running) < self._runner.at_once):
            await self._wait(lane, for_work=not jobs)
            return len(jobs) or 1
        return len(jobs)

    async def _claim(self, lane: _LaneTask) -> list[Job]:
        kinds = [kind for kind in await self._work.kinds() if kind in lane.lane.kinds]
        if not kinds or len(lane.running) >= self._runner.at_once:
            return []
        busy: dict[str, Scope] = {}
        if self._runner.at_once > 1:
            batches = (jobs for task in self._lanes for jobs in task.running.values())
            busy = {jobs[0].scope.key: jobs[0].scope for jobs in batches}
        jobs = await self._store.claim(kinds, lane.lane.claim, lane.lane.lease, None, tuple(busy.values()))
        self._reported.difference_update(job.id for job in jobs)
        return jobs

    async def _wait(self, lane: _LaneTask, *, for_work: bool) -> None:
        """Wait until a batch ends or, with ``for_work``, new jobs arrive."""
        woken = asyncio.create_task(lane.woken.wait())
        try:
            tasks = {*lane.running, woken} if for_work else {*lane.running}
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            woken.cancel()
        for task in [task for task in lane.running if task.done()]:
            del lane.running[task]
            task.result()

    async def _run_jobs(self, jobs: list[Job], lease: float) -> None:
        """Give a batch to its runner, renew its lease while it runs, and store its error if it fails."""
        runner = self._local if self._work.is_store_wide(jobs[0].kind) else self._runner
        renewing = asyncio.create_task(self._renew(jobs, lease))
        try:
            # Errors of all types are stored with the jobs, and the loop continues.
            (outcome,) = await asyncio.gather(runner.do(jobs), return_exceptions=True)
        finally:
            renewing.cancel()
        if isinstance(outcome, BaseException):
            await self._work.fail(jobs, outcome)
        else:
            self._counters.count(jobs[0].scope, **outcome._asdict())
        self._report_progress()

    async def _renew(self, jobs: list[Job], lease: float) -> None:
        """Renew a lease until cancelled, so that no other worker starts the batch again."""
        while True:
            await asyncio.sleep(lease / RENEWALS)
            with suppress(StoreError):
                await self._store.renew(jobs, lease)

    async def _measure(self) -> None:
        """Report the numbers of waiting and failed jobs, if the program uses the metrics of OpenTelemetry."""
        while not self._closing:
            if telemetry.measures():
                with suppress(StoreError):
                    waiting = await self._store.pending(None)
                    failed = len(await self._store.jobs(None, JobState.FAILED))
                    for state, count in (("waiting", waiting), ("failed", failed)):
                        telemetry.measure(telemetry.JOBS, count, {"zettel.job.state": state})
            with anyio.move_on_after(MEASURE_SECONDS):
                await self._ending.wait()

    async def _loop(self, lane: _LaneTask) -> None:
        while not self._closing:
            lane.woken.clear()
            worked = 0
            lane.error = None
            try:
                worked = await self._run_batch(lane)
                if JobKind.PURGE in lane.lane.kinds and await self._store.purge_due():
                    await self._store.purge()
            except (StoreBusy, StoreUnreachable):
                pass  # another process writes, or the server restarts
            except StoreError as error:  # for example a full disk: drain raises it, and the loop continues
                lane.error = error
            if not worked:
                lane.idle.set()
                with anyio.move_on_after(IDLE_SECONDS):
                    await lane.woken.wait()
            if worked < lane.lane.claim:
                with anyio.move_on_after(lane.lane.linger):
                    await self._hurried.wait()


def _at_most(seconds: float, deadline: float | None) -> float:
    return seconds if deadline is None else min(seconds, deadline - anyio.current_time())


async def _end(*groups: Sequence[asyncio.Task[None]]) -> None:
    """Give tasks GRACE_SECONDS to finish, then cancel them."""
    tasks = [task for group in groups for task in group]
    if tasks:
        await asyncio.wait(tasks, timeout=GRACE_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
