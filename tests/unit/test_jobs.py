"""Jobs: one spec per kind, a loop that waits for events, and errors that quote no texts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any, cast

import pytest

from zettel.core.follow_ups import UnfinishedJobs
from zettel.core.privacy import SecretGuard
from zettel.errors import FlushTimeout
from zettel.jobs.counters import Counters
from zettel.jobs.in_process import InProcessRunner
from zettel.jobs.loop import JobLoop
from zettel.jobs.registry import JOBS
from zettel.jobs.spec import JobContext, JobHandler, JobSpec, Models
from zettel.jobs.work import Work
from zettel.model import Evolved, Job, JobKind, Scope

MERGE = Job(id="j_1", scope=Scope(), kind=JobKind.MERGE, run_at=datetime.now(timezone.utc), attempts=1)


class Queue:
    """A store with only a job queue, which counts the polls of a drain."""

    def __init__(self, *jobs: Job, leased_elsewhere: int = 0) -> None:
        self.due = list(jobs)
        self.leased_elsewhere = leased_elsewhere
        self.looks = 0
        self.errors: list[str] = []

    async def claim(self, kinds: Sequence[JobKind], *_: Any) -> list[Job]:
        claimed, self.due = [job for job in self.due if job.kind in kinds][:1], self.due[1:]
        return claimed

    async def pending(self, *_: Any) -> int:
        self.looks += 1
        return len(self.due) + self.leased_elsewhere

    async def fail(self, jobs: Sequence[Job], error: str, *_: Any, **__: Any) -> None:
        self.errors.append(error)

    async def jobs(self, *_: Any) -> list[Job]:
        return []

    async def purge_due(self) -> bool:
        return False

    purge = renew = purge_due


# A toy job: everything that a new job kind requires.


class Toy(JobHandler):
    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs]:
        self._counters.count(scope, merged=len(jobs))
        return [UnfinishedJobs(list(jobs), ValueError("a private text"))]


TOY = JobSpec(
    JobKind.MERGE, lambda context: Toy(context.counters), round=0, quotes_texts=True
)


def context(store: Queue, batch: int | None = None) -> JobContext:
    """A context with nothing but a queue, and a model annotator if ``batch`` is given."""
    parts: dict[str, Any] = dict.fromkeys(
        ("commits", "extractive", "vectors", "follow_ups", "searcher", "ask_about")
    )
    models = Models() if batch is None else Models(annotator=cast(Any, SimpleNamespace(batch=batch)))
    return JobContext(store=cast(Any, store), counters=Counters(), models=models, guard=SecretGuard("report"), **parts)


def test_a_job_kind_requires_one_module_and_one_registration() -> None:
    async def work() -> None:
        store = Queue(MERGE)
        parts = context(store, batch=5)
        work = Work(parts, [TOY])
        assert work.round == [JobKind.MERGE]
        assert [lane.kinds for lane in work.lanes()] == [(JobKind.MERGE,)]
        runner = InProcessRunner(cast(Any, store), work, parts.counters)
        assert await runner.do([MERGE]) == Evolved(0, 1, 0)
        assert store.errors == ["ValueError"], "an error that may quote texts stores only its class"

    asyncio.run(work())


def test_each_kind_is_declared_once() -> None:
    assert sorted(job.kind for job in JOBS) == sorted(JobKind)
    positions = [job.round for job in JOBS if job.round is not None]
    assert len(positions) == len(set(positions))
    assert {kind for kind in JobKind if kind.order_free} == {JobKind.EMBED, JobKind.ANNOTATE}
    assert JobKind("evolve") is JobKind.EVOLVE


def loop_of(store: Queue, runner: Any = None) -> JobLoop:
    parts = context(store)
    work = Work(parts, [TOY])
    local = InProcessRunner(cast(Any, store), work, parts.counters)
    return JobLoop(cast(Any, store), work, local, runner or local, Counters())


def test_a_drain_backs_off_while_other_workers_hold_the_jobs() -> None:
    async def work() -> None:
        store = Queue(leased_elsewhere=1)
        loop = loop_of(store)
        loop.start()
        with pytest.raises(FlushTimeout):
            await loop.drain(None, asyncio.get_running_loop().time() + 1.5)
        await loop.close()
        assert store.looks <= 10

    asyncio.run(work())


def test_a_drain_waits_for_its_own_batches_without_polling() -> None:
    class Slow(InProcessRunner):
        def __init__(self) -> None: ...

        async def do(self, jobs: Sequence[Job]) -> Evolved:
            await asyncio.sleep(0.3)
            return Evolved(0, 0, 0)

    async def work() -> None:
        store = Queue(MERGE, MERGE)
        loop = loop_of(store, Slow())
        loop.start()
        start = asyncio.get_running_loop().time()
        await loop.drain(None, start + 10)
        assert asyncio.get_running_loop().time() - start < 2
        await loop.close()
        assert store.looks <= 4

    asyncio.run(work())
