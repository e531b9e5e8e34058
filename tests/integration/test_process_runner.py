"""Jobs in worker processes: the same memory after any kill, and no process outlives its memory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import anyio
import pytest

from tests.integration.test_runner import fill_memory
from tests.integration.test_workers import events, wait_until
from tests.integration.watched import Watched, entries
from zettel import AsyncMemory, Memory, Scope
from zettel.core import follow_ups as queue
from zettel.embed.static import SHIPPED
from zettel.errors import InvalidInput, JobFailed
from zettel.local.process_runner import ProcessRunner
from zettel.model import Evolved, Job, JobKind
from zettel.ports.settings import Settings

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
TIMEOUT = 30.0
PROCFS = Path("/proc")
linux = pytest.mark.skipif(not PROCFS.exists(), reason="requires /proc")


def children(pid_of_parent: int) -> list[int]:
    """Return the running child processes of a process."""
    pids = []
    for status in PROCFS.glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rpartition(") ")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):  # the process ended meanwhile
            continue
        if int(parent) == pid_of_parent and state != "Z":
            pids.append(int(status.parent.name))
    return pids


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return (PROCFS / str(pid) / "stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def run_script(folder: Path, script: str, *, shell: str = "{}") -> subprocess.CompletedProcess[str]:
    """Run a script without a main guard and return the result; ``shell`` is the shell command around it."""
    (folder / "script.py").write_text(f"import sys\nsys.path.append({str(ROOT)!r})\n{script}")
    command = ["sh", "-c", shell.format(f"exec {sys.executable} script.py")]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True)


@pytest.mark.parametrize("runner", ["process", "process:2"])
def test_a_process_runner_makes_the_same_memory(tmp_path: Path, runner: str) -> None:
    by_process, process_jobs = fill_memory(tmp_path / "away.db", runner, tmp_path / "away.log")
    in_process, local_jobs = fill_memory(tmp_path / "here.db", None, tmp_path / "here.log")
    assert by_process == in_process
    assert process_jobs == local_jobs
    workers = {entry.pid for entry in entries(tmp_path / "away.log")} - {os.getpid()}
    assert 1 <= len(workers) <= int(runner.partition(":")[2] or 1), "slow embeddings run in worker processes"
    assert not any(map(is_running, workers))
    assert sorted(path.name for path in tmp_path.glob("away.db*")) == ["away.db"], "each closed its store"


def test_a_script_without_main_guard_runs_once(tmp_path: Path) -> None:
    """Unlike multiprocessing, the runner does not execute the script again; prints of jobs go to stderr."""
    (tmp_path / "printing.py").write_text(
        "from tests.integration.watched import Watched\n\n"
        "class Printing(Watched):\n"
        "    async def embed(self, texts):\n"
        "        print('embedding')\n"
        "        return await super().embed(texts)\n"
    )
    result = run_script(
        tmp_path,
        "from pathlib import Path\n"
        "from printing import Printing\n"
        "from zettel import Memory\n"
        "print('begun')\n"
        "with Memory('m.db', embedder=Printing(Path('log'), 0.0), runner='process') as memory:\n"
        "    memory.add('The ferry to Bergen leaves at nine.', wait=True)\n"
        "    print(memory.stats()['notes'], memory.jobs())\n",
    )
    assert result.stdout == "begun\n1 []\n"
    assert "embedding" in result.stderr


@linux
def test_a_killed_worker_process_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "FIRST_PAUSE", queue.FIRST_PAUSE / 100)
    before = set(children(os.getpid()))
    with Memory(tmp_path / "m.db", embedder=Watched(tmp_path / "log", 0.2), runner="process") as memory:
        memory.add_many(events(0, 9))
        assert wait_until(lambda: bool(entries(tmp_path / "log")), TIMEOUT)
        (killed_pid,) = set(children(os.getpid())) - before
        os.kill(killed_pid, signal.SIGKILL)
        memory.flush()
        assert (memory.jobs(), memory.check()) == ([], [])
    assert {entry.pid for entry in entries(tmp_path / "log")} > {killed_pid}


@linux
def test_a_worker_process_ends_with_its_parent(tmp_path: Path) -> None:
    code = (
        "import time\n"
        "from tests.integration.test_workers import events\n"
        "from zettel import Memory\n"
        f"memory = Memory({str(tmp_path / 'm.db')!r}, runner='process')\n"
        "memory.add_many(events(0, 9), wait=True)\n"
        "print('done', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "done\n"
        (child,) = children(parent.pid)
        parent.kill()
    assert wait_until(lambda: not is_running(child), TIMEOUT)
    with Memory(tmp_path / "m.db") as memory:
        assert (memory.jobs(), memory.check()) == ([], [])


@linux
def test_closing_does_not_wait_for_long_jobs(tmp_path: Path) -> None:
    before = set(children(os.getpid()))
    with Memory(tmp_path / "m.db", embedder=Watched(tmp_path / "log", 60.0), runner="process") as memory:
        memory.add_many(events(0, 9))
        assert wait_until(lambda: bool(entries(tmp_path / "log")), TIMEOUT)
        closing = time.monotonic()
    assert time.monotonic() - closing < TIMEOUT
    assert set(children(os.getpid())) == before
    with Memory(tmp_path / "m.db", embedder=Watched(tmp_path / "log", 0.0)) as memory:
        memory.flush()
        assert (len(memory.list().notes), memory.jobs(), memory.check()) == (9, [], [])


def test_output_at_startup_is_not_read_as_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('welcome', flush=True)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Memory(tmp_path / "m.db", runner="process") as memory:
        for n in range(2):
            memory.add(f"Boat {n} left harbour.", wait=True)
        assert memory.jobs() == []


@linux
def test_the_runner_works_with_a_closed_stderr(tmp_path: Path) -> None:
    result = run_script(
        tmp_path,
        "from zettel import Memory\n"
        "with Memory('m.db', runner='process') as memory:\n"
        "    memory.add('The ferry to Bergen leaves at nine.', wait=True)\n"
        "    print(memory.jobs())\n",
        shell="{} 2>&-",
    )
    assert result.stdout == "[]\n"


def test_lanes_run_in_separate_processes(tmp_path: Path) -> None:
    """Slow embedding jobs do not delay link jobs, which use another process."""
    runner = ProcessRunner()

    async def run_jobs() -> list[Evolved]:
        await runner.start(Settings(tmp_path / "m.db"))
        async with AsyncMemory(tmp_path / "m.db"):  # creates the store
            done: list[Evolved] = []

            async def run_job() -> None:
                job = Job(id="j_0", scope=Scope(), kind=JobKind.LINK, run_at=datetime.now(timezone.utc))
                done.append(await runner.do([job]))

            async with anyio.create_task_group() as group:
                for _ in range(2):
                    group.start_soon(run_job)
            started = len(runner._idle)
            await runner.close()
        assert started == 2
        return done

    assert anyio.run(run_jobs) == [Evolved(0, 0, 0)] * 2


def test_a_runner_serves_one_memory(tmp_path: Path) -> None:
    runner = ProcessRunner()
    with Memory(tmp_path / "one.db", runner=runner), pytest.raises(InvalidInput, match="serves another memory"):
        Memory(tmp_path / "two.db", runner=runner)
    assert not (tmp_path / "two.db").exists()
    with Memory(tmp_path / "two.db", runner=runner) as memory:
        memory.add("The ferry to Bergen leaves at nine.", wait=True)


def test_a_frozen_program_cannot_start_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(InvalidInput, match="cannot start another Python"):
        Memory(tmp_path / "m.db", runner="process")
    monkeypatch.undo()
    monkeypatch.setattr(queue, "MAX_ATTEMPTS", 1)
    with Memory(tmp_path / "m.db", runner="process") as memory:
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
        memory.add("The ferry to Bergen leaves at nine.")
        with pytest.raises(JobFailed, match="no process could be started: FileNotFoundError"):
            memory.flush()


def test_an_embedder_outside_a_module_fails_the_jobs_with_a_clear_error(tmp_path: Path) -> None:
    result = run_script(
        tmp_path,
        "from tests.integration.watched import Watched\n"
        "from zettel import Memory\n"
        "from zettel.errors import JobFailed\n"
        "class Mine(Watched): pass\n"
        "with Memory('m.db', embedder=Mine('log', 0.0), runner='process') as memory:\n"
        "    try:\n"
        "        memory.add('The ferry to Bergen leaves at nine.', wait=True)\n"
        "    except JobFailed as error:\n"
        "        print(error)\n",
    )
    assert "other processes cannot import a part of this memory" in result.stdout
    assert "'Mine'" in result.stdout
    (logged,) = result.stderr.splitlines()
    assert logged.startswith("a background job failed (embed): ")


def test_the_error_of_a_worker_that_cannot_open_the_memory_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "MAX_ATTEMPTS", 1)
    model = Path(shutil.copytree(SHIPPED, tmp_path / "model"))
    with Memory(tmp_path / "m.db", embedder=model, runner="process") as memory:
        (model / "model.safetensors").write_text("no weights")
        memory.add("The ferry to Bergen leaves at nine.")
        with pytest.raises(JobFailed, match=r"EmbedderUnreadable: .*model is damaged"):
            memory.flush()
