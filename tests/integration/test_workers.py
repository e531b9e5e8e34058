"""Worker processes: they share a queue, stop cleanly, and neither lose nor repeat a job when they are killed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import url as url  # a fixture
from tests.contract.support import picture
from zettel import Memory, Note
from zettel.model import JobState

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
WORKERS = 4
EVENTS = 24  # added before each kill: several batches for each worker
LEASE = 3.0  # seconds after which other workers can claim the jobs of a killed one
TIMEOUT = 60.0  # seconds for one step of a test
FINISH_TIMEOUT = 600.0  # seconds for the jobs that are left after all kills
TOPICS = ["the harbour", "Kestrel the dog", "a cello lesson", "rye bread", "the night ferry", "Ida's glaciers"]

# Its batches are small and its leases short. The first byte of the file FLAG is 1 during a batch.
WORKER = """
import mmap, sys
sys.path.insert(0, ".")
from zettel.cli.app import run
from zettel.jobs.work import Work
store, flag, lease, *more = sys.argv[1:]
with open(flag, "r+b") as file:
    inside = mmap.mmap(file.fileno(), 1)
do, lanes = Work.do, Work.lanes
async def watched(self, jobs):
    inside[0] = 1
    try:
        return await do(self, jobs)
    finally:
        inside[0] = 0
Work.do = watched
Work.lanes = lambda self: [lane._replace(claim=4, lease=float(lease)) for lane in lanes(self)]
sys.exit(run(["worker", "--store", store, *more]))
"""

FEW_KILLS = 20
"""With fewer kills, the share of kills inside a batch is not required."""


class Worker:
    """A ``zettel worker`` process."""

    def __init__(self, url: Any, flag: Path, *options: str, lease: float = LEASE) -> None:
        self._flag = flag
        flag.write_bytes(b"\0")
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WORKER, str(url), str(flag), str(lease), *options],
            cwd=ROOT, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    @property
    def inside(self) -> bool:
        """True during a batch."""
        return self._flag.read_bytes() == b"\1"

    def kill(self) -> bool:
        """Kill -9 the process; return whether that was during a batch."""
        self.process.kill()
        self.process.communicate()
        return self.inside

    def stop(self, signal_number: signal.Signals = signal.SIGTERM) -> str:
        """Stop the process once it handles signals; return its output."""
        assert self.process.stderr is not None
        first_line = self.process.stderr.readline()
        self.process.send_signal(signal_number)
        _, errors = self.process.communicate(timeout=TIMEOUT)
        assert self.process.returncode == 0, first_line + errors
        return errors


@contextmanager
def workers(
    url: Any, folder: Path, count: int, *options: str, lease: float = LEASE
) -> Iterator[list[Worker]]:
    """Start workers, and kill those that still run at the end."""
    running = [Worker(url, folder / f"flag{n}", *options, lease=lease) for n in range(count)]
    try:
        yield running
    finally:
        for worker in running:
            if worker.process.poll() is None:
                worker.kill()


@pytest.fixture
def idle(url: Any) -> Iterator[Memory]:
    """Return an empty memory that leaves its jobs to other processes."""

    async def none(*_: object) -> int:
        return 0

    with Memory(url) as memory:
        memory._bridge.inner._backend.memory.engine.loop._run_batch = none
        yield memory


def events(first: int, count: int) -> list[dict[str, Any]]:
    """Return events, some of them similar and some of them duplicates."""
    records = []
    for n in range(first, first + count):
        chosen = random.Random(n)
        content = f"Number {n % 200} of the log: {chosen.choice(TOPICS)} again, and {chosen.choice(TOPICS)}."
        records.append({"id": f"t{n}", "session": f"s{n // 40}", "speaker": ("Ann", "Bob")[n % 2], "content": content})
    return records


def wait_until(condition: Callable[[], bool], timeout: float = TIMEOUT) -> bool:
    deadline = time.monotonic() + timeout
    while not (is_met := condition()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return is_met


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_kills_lose_no_job_and_write_no_effect_twice(
    url: Any, idle: Memory, tmp_path: Path, soak_scale: Callable[[int], int],
    record_property: Callable[[str, object], None],
) -> None:  # fmt: skip
    """Four workers, one of which is killed repeatedly, make the same memory as an undisturbed process."""
    kills, inside = soak_scale(100), 0
    chosen = random.Random(11)
    with workers(url, tmp_path, WORKERS) as running:
        for kill in range(kills):
            idle.add_many(events(kill * EVENTS, EVENTS))
            target = chosen.randrange(WORKERS)
            in_batch = kill % 4 != 3
            if in_batch and wait_until(lambda: any(worker.inside for worker in running), LEASE):
                target = next((place for place, worker in enumerate(running) if worker.inside), target)
            time.sleep(chosen.random() * (0.0005 if in_batch else 0.02))
            inside += running[target].kill()
            running[target] = Worker(url, tmp_path / f"flag{target}")
        record_property("kills", kills)
        record_property("kills_inside_a_batch", inside)
        assert wait_until(lambda: idle.jobs() == [], FINISH_TIMEOUT), idle.jobs()[:3]
        for worker in running:
            worker.stop()
    assert inside * 2 >= kills or kills < FEW_KILLS
    notes = [note for _, notes_of_event in idle.dump() for note in notes_of_event]
    linked = [[revision for revision in idle.history(note.id) if revision.cause.by == "link"] for note in notes]
    assert len(notes) == kills * EVENTS
    assert max(map(len, linked)) == 1  # one job per note
    with Memory(tmp_path / "undisturbed.db") as undisturbed:
        undisturbed.add_many(events(0, kills * EVENTS))
        undisturbed.flush()
        assert picture(idle) == picture(undisturbed)
    assert idle.check() == []


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name.lower())
def test_a_stopped_worker_leaves_no_claimed_jobs(
    url: Any, idle: Memory, tmp_path: Path, signal_number: signal.Signals
) -> None:
    idle.add_many(events(0, 120))
    with workers(url, tmp_path, 1, lease=600.0) as (worker,):
        assert wait_until(lambda: worker.inside)
        assert "stopped" in worker.stop(signal_number)
    assert [job for job in idle.jobs() if job.state is JobState.RUNNING] == []
    Worker(url, tmp_path / "flag", "--once", lease=600.0).process.communicate(timeout=TIMEOUT)
    assert idle.jobs() == []


def test_a_worker_evolves_scopes(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as memory:
        ids = [memory.add("The ferry to Bergen leaves at nine.", id=str(n)) for n in range(2)]
        memory.flush()
    with workers(tmp_path / "m.db", tmp_path, 1, "--every", "24h") as (worker,), Memory(tmp_path / "m.db") as memory:
        assert wait_until(lambda: merged_into(memory, ids[1]) == ids[0])
        worker.stop()


def merged_into(memory: Memory, id: str) -> str | None:
    note = memory.get(id)
    assert isinstance(note, Note)
    return note.merged_into
