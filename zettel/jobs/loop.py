"""The loop that has jobs done: for each lane a task that claims due jobs and gives them to the runner until there are
none, then sleeps until woken.

In this process there is one batch at a time in a lane, and so the order of arrival is kept; where a runner does several
at once, what builds on other jobs waits until its scope is at rest. ``drain`` only waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone

import anyio

from zettel.errors import FlushTimeout, JobFailed, StoreBusy, StoreError, StoreUnreachable
from zettel.jobs.in_process import keep
from zettel.jobs.tally import Tally
from zettel.jobs.work import Lane, Work
from zettel.model import Job, JobKind, JobState, Scope
from zettel.ports import GraphStore, Runner

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

STOPPED = "stopped before it was done"
"""What stands with a job that was given back, until it is done."""


STORE_WIDE = frozenset({JobKind.REEMBED, JobKind.PURGE})
"""Jobs about a whole store: one process is enough for them, and somebody may be waiting there."""


class _Lane:
    """A task that works at one lane."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.woken = asyncio.Event()
        self.idle = asyncio.Event()
        self.under_way: dict[asyncio.Task[None], list[Job]] = {}
        self.task: asyncio.Task[None] | None = None
        self.error: StoreError | None = None
        """What was in the way of the last look at the queue."""


class JobLoop:
    """Has a store's jobs done by a runner. ``tally`` counts what they change."""

    def __init__(self, store: GraphStore, work: Work, here: Runner, runner: Runner, tally: Tally) -> None:
        """``here``: does what is about the whole store, whatever the runner is."""
        self._store = store
        self._work = work
        self._here = here
        self._runner = runner
        self._tally = tally
        self._lanes = [_Lane(lane) for lane in work.lanes()]
        self._hurried = asyncio.Event()
        self._claiming = asyncio.Lock()  # who claims sees what the others have under way
        self._draining = 0
        self._closing = False
        self._told: set[str] = set()

    def start(self) -> None:
        """Begin to work in the background, with a runner that has started."""
        for lane in self._lanes:
            lane.task = asyncio.create_task(self._loop(lane), name=f"zettel jobs: {', '.join(lane.lane.kinds)}")

    def wake(self) -> None:
        """There is new work."""
        for lane in self._lanes:
            lane.woken.set()

    async def close(self) -> None:
        """Stop. A batch that does not end in a moment is given back: nothing of it is written."""
        self._closing = True
        self._hurried.set()
        self.wake()
        lanes = [lane.task for lane in self._lanes if lane.task is not None]
        await _end(lanes, [task for lane in self._lanes for task in lane.under_way])
        await _end([task for lane in self._lanes for task in lane.under_way])  # one may have begun meanwhile
        try:
            with anyio.move_on_after(GIVE_BACK_SECONDS), suppress(StoreError):
                for task, jobs in [each for lane in self._lanes for each in lane.under_way.items()]:
                    if task.cancelled():
                        await self._store.fail(jobs, STOPPED, datetime.now(timezone.utc), counts=False)
        finally:
            await self._runner.close()

    async def drain(self, scope: Scope | None, deadline: float | None) -> None:
        """The same as ``rest``, and then ``JobFailed`` if any job has ended in an error, once for each; the error is
        kept with it.
        """
        await self.rest(scope, deadline)
        failed = [job for job in await self._store.jobs(scope, JobState.FAILED) if job.id not in self._told]
        if failed:
            self._told.update(job.id for job in failed)
            raise JobFailed(
                f"{len(failed)} jobs failed, the first with: {failed[0].error}; `zettel jobs` shows all, "
                "`zettel jobs retry` runs them again"
            )

    async def rest(self, scope: Scope | None, deadline: float | None) -> None:
        """Wait until all jobs of a scope (None: of all) are done that can be done here, also those waiting for another
        attempt soon.

        Raises ``FlushTimeout`` past the deadline (seconds of the event loop's clock). What ended the runner itself is
        raised here too.
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
            if errors := [lane.error for lane in self._lanes if lane.error is not None]:
                raise errors[0]
            soon = datetime.now(timezone.utc) + SOON
            waiting = await self._store.pending(scope, kinds, soon)
            if not waiting and not await self._store.purge_due():
                return
            if deadline is not None and anyio.current_time() >= deadline:
                raise FlushTimeout(f"{waiting} jobs are still pending; they go on in the background")
            await asyncio.sleep(WAIT_SECONDS)

    async def _run_batch(self, at: _Lane) -> int:
        """Claim a batch and set it going; how many jobs there were, 0 if nothing is to be done any more.

        Returns when there is room for another one.
        """
        async with self._claiming:
            jobs = await self._claim(at)
            if jobs:
                at.under_way[asyncio.create_task(self._see_through(jobs, at.lane.lease))] = jobs
        if at.under_way and not (jobs and len(at.under_way) < self._runner.at_once):
            await self._wait(at, for_work=not jobs)
            return len(jobs) or 1
        return len(jobs)

    async def _claim(self, at: _Lane) -> list[Job]:
        kinds = [kind for kind in await self._work.kinds() if kind in at.lane.kinds]
        if not kinds or len(at.under_way) >= self._runner.at_once:
            return []
        busy: dict[str, Scope] = {}
        if self._runner.at_once > 1:
            every = (jobs for lane in self._lanes for jobs in lane.under_way.values())
            busy = {jobs[0].scope.key: jobs[0].scope for jobs in every}
        jobs = await self._store.claim(kinds, at.lane.claim, at.lane.lease, None, tuple(busy.values()))
        self._told.difference_update(job.id for job in jobs)
        return jobs

    async def _wait(self, at: _Lane, *, for_work: bool) -> None:
        """Wait until one of the batches has ended, or new work has come."""
        woken = asyncio.create_task(at.woken.wait())
        try:
            waited = {*at.under_way, woken} if for_work else {*at.under_way}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            woken.cancel()
        for task in [task for task in at.under_way if task.done()]:
            del at.under_way[task]
            task.result()

    async def _see_through(self, jobs: list[Job], lease: float) -> None:
        """Hold a batch while the runner is at it, and keep with it why it was not done."""
        runner = self._here if jobs[0].kind in STORE_WIDE else self._runner
        renewing = asyncio.create_task(self._renew(jobs, lease))
        try:
            # Whatever goes wrong belongs to the jobs: it is kept with them, and the loop goes on.
            (outcome,) = await asyncio.gather(runner.do(jobs), return_exceptions=True)
        finally:
            renewing.cancel()
        if isinstance(outcome, BaseException):
            await keep(self._store, jobs, outcome)
        else:
            self._tally.count(jobs[0].scope, **outcome._asdict())

    async def _renew(self, jobs: list[Job], lease: float) -> None:
        """Hold a batch as long as it takes, which nobody knows beforehand: another worker would begin it anew."""
        while True:
            await asyncio.sleep(lease / RENEWALS)
            with suppress(StoreError):
                await self._store.renew(jobs, lease)

    async def _loop(self, at: _Lane) -> None:
        while not self._closing:
            at.woken.clear()
            worked = 0
            at.error = None
            try:
                worked = await self._run_batch(at)
                if JobKind.PURGE in at.lane.kinds and await self._store.purge_due():
                    await self._store.purge()
            except (StoreBusy, StoreUnreachable):
                pass  # another process writes, or the server restarts
            except StoreError as error:  # a full disk, say: told to whoever waits, and tried again
                at.error = error
            if not worked:
                at.idle.set()
                with anyio.move_on_after(IDLE_SECONDS):
                    await at.woken.wait()
            if worked < at.lane.claim:
                with anyio.move_on_after(at.lane.linger):
                    await self._hurried.wait()


async def _end(*groups: Sequence[asyncio.Task[None]]) -> None:
    """Give tasks a moment to end by themselves, then cancel them."""
    tasks = [task for group in groups for task in group]
    if tasks:
        await asyncio.wait(tasks, timeout=GRACE_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
