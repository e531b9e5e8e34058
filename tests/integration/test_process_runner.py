"""Jobs in processes of their own: the same memory, whatever of them ends when, and none that outlives its memory."""

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

from tests.integration.test_runner import filled
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
PATIENCE = 30.0
PROCFS = Path("/proc")
linux = pytest.mark.skipif(not PROCFS.exists(), reason="which processes there are is asked of /proc")


def children(of: int) -> list[int]:
    """The processes that one has started and that still run."""
    found = []
    for status in PROCFS.glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rpartition(") ")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            continue
        if int(parent) == of and state != "Z":
            found.append(int(status.parent.name))
    return found


def runs(pid: int) -> bool:
    """Whether a process is there, and has not only to be buried."""
    try:
        return (PROCFS / str(pid) / "stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ran(folder: Path, script: str, *, around: str = "{}") -> subprocess.CompletedProcess[str]:
    """A script that a person wrote, who guards nothing, and what it said; ``around`` is the shell's line."""
    (folder / "script.py").write_text(f"import sys\nsys.path.append({str(ROOT)!r})\n{script}")
    command = ["sh", "-c", around.format(f"exec {sys.executable} script.py")]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True)


@pytest.mark.parametrize("runner", ["process", "process:2"])
def test_processes_make_the_same_memory(tmp_path: Path, runner: str) -> None:
    away, told = filled(tmp_path / "away.db", runner, tmp_path / "away.log")
    here, told_then = filled(tmp_path / "here.db", None, tmp_path / "here.log")
    assert away == here
    assert told == told_then
    workers = {entry.pid for entry in entries(tmp_path / "away.log")} - {os.getpid()}
    assert 1 <= len(workers) <= int(runner.partition(":")[2] or 1), "vectors that take long are made there"
    assert not any(map(runs, workers))
    assert sorted(path.name for path in tmp_path.glob("away.db*")) == ["away.db"], "each closed its store"


def test_a_script_runs_once(tmp_path: Path) -> None:
    """Also one that guards nothing, unlike with multiprocessing; and what a job prints disturbs nobody."""
    (tmp_path / "printing.py").write_text(
        "from tests.integration.watched import Watched\n\n"
        "class Printing(Watched):\n"
        "    async def embed(self, texts):\n"
        "        print('embedding')\n"
        "        return await super().embed(texts)\n"
    )
    told = ran(
        tmp_path,
        "from pathlib import Path\n"
        "from printing import Printing\n"
        "from zettel import Memory\n"
        "print('begun')\n"
        "with Memory('m.db', embedder=Printing(Path('log'), 0.0), runner='process') as memory:\n"
        "    memory.add('The ferry to Bergen leaves at nine.', wait=True)\n"
        "    print(memory.stats()['notes'], memory.jobs())\n",
    )
    assert told.stdout == "begun\n1 []\n"
    assert "embedding" in told.stderr


@linux
def test_a_process_that_is_killed_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "FIRST_PAUSE", queue.FIRST_PAUSE / 100)
    before = set(children(os.getpid()))
    with Memory(tmp_path / "m.db", embedder=Watched(tmp_path / "log", 0.2), runner="process") as memory:
        memory.add_many(events(0, 9))
        assert wait_until(lambda: bool(entries(tmp_path / "log")), PATIENCE)
        (killed,) = set(children(os.getpid())) - before
        os.kill(killed, signal.SIGKILL)
        memory.flush()
        assert (memory.jobs(), memory.check()) == ([], [])
    assert {entry.pid for entry in entries(tmp_path / "log")} > {killed}


@linux
def test_a_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    code = (
        "import time\n"
        "from tests.integration.test_workers import events\n"
        "from zettel import Memory\n"
        f"memory = Memory({str(tmp_path / 'm.db')!r}, runner='process')\n"
        "memory.add_many(events(0, 9), wait=True)\n"
        "print('done', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "done\n"
        (child,) = children(parent.pid)
        parent.kill()
    assert wait_until(lambda: not runs(child), PATIENCE)
    with Memory(tmp_path / "m.db") as memory:
        assert (memory.jobs(), memory.check()) == ([], [])


@linux
def test_closing_does_not_wait_for_what_takes_long(tmp_path: Path) -> None:
    before = set(children(os.getpid()))
    with Memory(tmp_path / "m.db", embedder=Watched(tmp_path / "log", 60.0), runner="process") as memory:
        memory.add_many(events(0, 9))
        assert wait_until(lambda: bool(entries(tmp_path / "log")), PATIENCE)
        closing = time.monotonic()
    assert time.monotonic() - closing < PATIENCE
    assert set(children(os.getpid())) == before
    with Memory(tmp_path / "m.db", embedder=Watched(tmp_path / "log", 0.0)) as memory:
        memory.flush()
        assert (len(memory.list().notes), memory.jobs(), memory.check()) == (9, [], [])


def test_what_others_print_first_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('welcome', flush=True)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Memory(tmp_path / "m.db", runner="process") as memory:
        for n in range(2):
            memory.add(f"Boat {n} left harbour.", wait=True)
        assert memory.jobs() == []


@linux
def test_nobody_has_to_listen_to_stderr(tmp_path: Path) -> None:
    told = ran(
        tmp_path,
        "from zettel import Memory\n"
        "with Memory('m.db', runner='process') as memory:\n"
        "    memory.add('The ferry to Bergen leaves at nine.', wait=True)\n"
        "    print(memory.jobs())\n",
        around="{} 2>&-",
    )
    assert told.stdout == "[]\n"


def test_lanes_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """Vectors that take long hold up no link, and nobody waits for a process that another lane has."""
    runner = ProcessRunner()

    async def both() -> list[Evolved]:
        await runner.start(Settings(tmp_path / "m.db"))
        async with AsyncMemory(tmp_path / "m.db"):  # makes the store
            done: list[Evolved] = []

            async def one() -> None:
                job = Job(id="j_0", scope=Scope(), kind=JobKind.LINK, run_at=datetime.now(timezone.utc))
                done.append(await runner.do([job]))

            async with anyio.create_task_group() as group:
                for _ in range(2):
                    group.start_soon(one)
            started = len(runner._idle)
            await runner.close()
        assert started == 2
        return done

    assert anyio.run(both) == [Evolved(0, 0, 0)] * 2


def test_a_runner_serves_one_memory(tmp_path: Path) -> None:
    runner = ProcessRunner()
    with Memory(tmp_path / "one.db", runner=runner), pytest.raises(InvalidInput, match="serves another memory"):
        Memory(tmp_path / "two.db", runner=runner)
    assert not (tmp_path / "two.db").exists()
    with Memory(tmp_path / "two.db", runner=runner) as memory:
        memory.add("The ferry to Bergen leaves at nine.", wait=True)


def test_a_frozen_program_starts_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_part_that_stands_in_no_module_fails_the_jobs_and_says_so(tmp_path: Path) -> None:
    told = ran(
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
    assert "other processes cannot import a part of this memory" in told.stdout
    assert "'Mine'" in told.stdout
    assert told.stderr == ""


def test_a_memory_that_cannot_be_opened_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MAX_ATTEMPTS", 1)
    model = Path(shutil.copytree(SHIPPED, tmp_path / "model"))
    with Memory(tmp_path / "m.db", embedder=model, runner="process") as memory:
        (model / "model.safetensors").write_text("no weights")
        memory.add("The ferry to Bergen leaves at nine.")
        with pytest.raises(JobFailed, match=r"EmbedderUnreadable: .*model is damaged"):
            memory.flush()
