"""A runner of somebody's own: several batches at once end in the same memory as one after the other, and what builds on
other jobs waits for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.contract.support import picture
from tests.integration.test_workers import events
from tests.integration.watched import Watched
from zettel import Memory, Scope
from zettel.core import follow_ups as queue
from zettel.errors import JobFailed, RunnerUnavailable
from zettel.jobs.work import Work
from zettel.local import worker as elsewhere
from zettel.model import Evolved, Job
from zettel.ports.settings import Settings

pytestmark = pytest.mark.integration

SCOPES = [Scope(user="ann"), Scope(user="bob")]
EVENTS = 60
CLAIM = 8  # jobs of a batch, so that there are several


class Threads:
    """Does each batch in a thread, and notes what was under way together."""

    away = True
    at_once = 4

    def __init__(self) -> None:
        self.under_way: list[Job] = []
        self.together: list[list[Job]] = []

    async def start(self, opening: Settings) -> None:
        self.opening = opening

    async def do(self, jobs: Sequence[Job]) -> Evolved:
        self.under_way.append(jobs[0])
        self.together.append([*self.under_way])
        try:
            return await anyio.to_thread.run_sync(partial(elsewhere.do, self.opening, jobs))
        finally:
            self.under_way.remove(jobs[0])

    async def close(self) -> None:
        elsewhere.close()


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    lanes = Work.lanes
    monkeypatch.setattr(Work, "lanes", lambda work: [lane._replace(claim=CLAIM) for lane in lanes(work)])
    yield
    elsewhere.close()


def filled(url: Path, runner: Any, log: Path) -> tuple[list[dict[str, Any]], list[Evolved]]:
    """What two scopes look like after all jobs and a round, and what the rounds changed."""
    with Memory(url, embedder=Watched(log, pause=0.01), runner=runner) as memory:
        for scope in SCOPES:
            memory.add_many(events(0, EVENTS), scope=scope)
        memory.flush()
        evolved = [memory.evolve(scope=scope) for scope in SCOPES]
        assert memory.check() == []
        return [picture(memory, scope) for scope in SCOPES], evolved


def test_several_at_once_make_the_same_memory(tmp_path: Path) -> None:
    runner = Threads()
    at_once, told = filled(tmp_path / "several.db", runner, tmp_path / "log")
    one_by_one, told_then = filled(tmp_path / "one.db", None, tmp_path / "log")
    assert at_once == one_by_one
    assert told == told_then
    assert max(map(len, runner.together)) > 1
    for together in runner.together:
        (*before, job) = together
        if not job.kind.order_free:
            assert all(other.scope != job.scope for other in before)


def test_what_a_runner_loses_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_nobody_can_run_fails_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MAX_ATTEMPTS", 1)

    class Gone(Threads):
        async def do(self, jobs: Sequence[Job]) -> Evolved:
            raise RunnerUnavailable("no node is left")

    with Memory(tmp_path / "m.db", runner=Gone()) as memory:
        memory.add("Snow fell.")
        with pytest.raises(JobFailed, match="RunnerUnavailable: no node is left"):
            memory.flush()


def test_a_store_is_embedded_anew_where_it_was_asked(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as memory:
        memory.add_many(events(0, 9))
        memory.flush()
    with Memory(tmp_path / "m.db", embedder=Watched(tmp_path / "log", 0.0), runner=Threads()) as memory:
        assert memory.reembed() == 9
        memory.add("Snow fell.", wait=True)
        assert memory.check() == []
