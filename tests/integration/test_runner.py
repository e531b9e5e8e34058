"""A custom runner: concurrent batches make the same memory as sequential ones, and dependent jobs wait."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.contract.support import picture
from tests.integration.test_workers import events
from tests.integration.watched import Watched
from zettel import AsyncMemory, Memory, Scope
from zettel.core import follow_ups as queue
from zettel.errors import JobFailed, RunnerUnavailable
from zettel.jobs.work import Work
from zettel.local import worker as worker_process
from zettel.model import Evolved, Job
from zettel.ports.settings import Settings

pytestmark = pytest.mark.integration

SCOPES = [Scope(user="ann"), Scope(user="bob")]
EVENTS = 60
CLAIM = 8  # jobs per batch: small, for several batches


class Threads:
    """Runs each batch in a thread, and records which jobs run concurrently."""

    away = True
    at_once = 4

    def __init__(self) -> None:
        self.running: list[Job] = []
        self.concurrent: list[list[Job]] = []

    async def start(self, opening: Settings) -> None:
        self.opening = opening

    async def do(self, jobs: Sequence[Job]) -> Evolved:
        self.running.append(jobs[0])
        self.concurrent.append([*self.running])
        try:
            return await anyio.to_thread.run_sync(partial(worker_process.do, self.opening, jobs))
        finally:
            self.running.remove(jobs[0])

    async def close(self) -> None:
        worker_process.close()


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    lanes = Work.lanes
    monkeypatch.setattr(Work, "lanes", lambda work: [lane._replace(claim=CLAIM) for lane in lanes(work)])
    yield
    worker_process.close()


def fill_memory(url: Path, runner: Any, log: Path) -> tuple[list[dict[str, Any]], list[Evolved]]:
    """Return the contents of two scopes after all jobs and an evolve round, and the changes of the rounds."""
    with Memory(url, embedder=Watched(log, pause=0.01), runner=runner) as memory:
        for scope in SCOPES:
            memory.add_many(events(0, EVENTS), scope=scope)
        memory.flush()
        evolved = [memory.evolve(scope=scope) for scope in SCOPES]
        assert memory.check() == []
        return [picture(memory, scope) for scope in SCOPES], evolved


def test_concurrent_batches_make_the_same_memory(tmp_path: Path) -> None:
    runner = Threads()
    concurrent, changes = fill_memory(tmp_path / "concurrent.db", runner, tmp_path / "log")
    sequential, sequential_changes = fill_memory(tmp_path / "sequential.db", None, tmp_path / "log")
    assert concurrent == sequential
    assert changes == sequential_changes
    assert max(map(len, runner.concurrent)) > 1
    for jobs in runner.concurrent:
        (*before, job) = jobs
        if not job.kind.order_free:
            assert all(other.scope != job.scope for other in before)


def test_lost_jobs_are_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "FIRST_PAUSE", queue.FIRST_PAUSE / 100)

    class Losing(Threads):
        lost = 0

        async def do(self, jobs: Sequence[Job]) -> Evolved:
            if self.lost < 2:
                self.lost += 1
                raise RunnerUnavailable("the node went")
            return await super().do(jobs)

    with Memory(tmp_path / "m.db", runner=Losing()) as memory:
        memory.add_many(events(0, 4))
        memory.flush()
        assert memory.jobs() == []


def test_a_job_that_no_runner_accepts_fails_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MAX_ATTEMPTS", 1)

    class Unavailable(Threads):
        async def do(self, jobs: Sequence[Job]) -> Evolved:
            raise RunnerUnavailable("no node is left")

    with Memory(tmp_path / "m.db", runner=Unavailable()) as memory:
        memory.add("Snow fell.")
        with pytest.raises(JobFailed, match="RunnerUnavailable: no node is left"):
            memory.flush()


def test_reembed_works_with_a_runner(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as memory:
        memory.add_many(events(0, 9))
        memory.flush()
    with Memory(tmp_path / "m.db", embedder=Watched(tmp_path / "log", 0.0), runner=Threads()) as memory:
        assert memory.reembed() == 9
        memory.add("Snow fell.", wait=True)
        assert memory.check() == []


@pytest.mark.anyio
async def test_a_cancelled_close_ends_the_jobs(tmp_path: Path) -> None:
    class Hanging(Threads):
        is_closed = False

        async def do(self, jobs: Sequence[Job]) -> Evolved:
            started.set()
            await anyio.sleep_forever()
            raise AssertionError

        async def close(self) -> None:
            self.is_closed = True

    async def use() -> None:
        async with AsyncMemory(tmp_path / "m.db", runner=runner) as memory:
            await memory.add("Snow fell.")
            await started.wait()
            closing.set()

    started, closing, runner = asyncio.Event(), asyncio.Event(), Hanging()
    others = asyncio.all_tasks()
    using = asyncio.create_task(use())
    await closing.wait()
    await asyncio.sleep(0.05)  # the close waits a second for the batch
    using.cancel()
    with pytest.raises(asyncio.CancelledError):
        await using
    assert runner.is_closed
    assert asyncio.all_tasks() == others
    with Memory(tmp_path / "m.db") as memory:
        memory.flush()
        assert memory.jobs() == []
