"""Several processes with one embedded store: visible writes, bounded waits and locks."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.embedded import ANN, StoreWriter, a_job, opened, run, vector
from zettel import Memory
from zettel.errors import InvalidInput, MemoryClosed, StoreBusy
from zettel.graph.embedded import file_access
from zettel.graph.embedded.connections import READERS
from zettel.model import LinkType, Scope
from zettel.ports.operations import Batch, Conflict, EraseNotes, FinishJob, PutJob, StaleLease

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]


def test_another_store_sees_every_addition_change_and_deletion(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as writing_store, opened(tmp_path / "a.db") as reading_store:
            writer, reader = await StoreWriter(writing_store).begin(), await StoreWriter(reading_store).begin()

            async def search() -> dict[str, tuple[int, float]]:
                answer = await reader.ask("harbour", vector=vector(1))
                return {
                    id: (int(count), round(float(cosine), 3))
                    for id, count, cosine in zip(answer.ids, answer.tf.sum(axis=1), answer.cosine, strict=True)
                }

            assert await search() == {}
            first = await writer.add("The harbour is closed.", vector=vector(1))
            assert await search() == {first: (1, 1.0)}
            second = await writer.add("The harbour, the harbour!", vector=vector(0, 1), session="s")
            assert await search() == {first: (1, 1.0), second: (2, 0.0)}
            await writer.change(first, content="The station is closed.", vector=vector(3, 4))
            assert await search() == {first: (0, 0.6), second: (2, 0.0)}
            await writer.change(second, links=[(first, LinkType.RELATES)])
            answer = await reader.ask("harbour")
            assert [answer.ids[row] for row in (*answer.link_source, *answer.link_target)] == [second, first]
            await writer.erase(first)
            assert await search() == {second: (2, 0.0)}
            assert len((await reader.ask("harbour")).link_source) == 0
            await writer.change(second, archived=True)
            assert await search() == {}
            await writing_store.drop_scope(ANN)
            await writer.add("The harbour of another life.", vector=vector(1))
            assert list((await search()).values()) == [(1, 1.0)]

    run(work())


def test_another_store_sees_a_purge(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as writing_store, opened(tmp_path / "a.db") as reading_store:
            writer, reader = await StoreWriter(writing_store).begin(), await StoreWriter(reading_store).begin()
            ids = [await writer.add(f"The harbour, pier {n}.", vector=vector(n + 1)) for n in range(5)]
            assert len((await reader.ask("harbour")).ids) == 5
            await writer.erase(*ids[:2])
            assert await writing_store.purge()
            assert (await reader.ask("harbour")).ids == tuple(ids[2:])
            assert (await writer.ask("harbour")).ids == tuple(ids[2:])

    run(work())


def test_a_read_transaction_sees_no_concurrent_write(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as writing_store, opened(tmp_path / "a.db") as reading_store:
            writer = await StoreWriter(writing_store).begin()
            await writer.add("One.")
            assert reading_store._connections is not None
            with reading_store._connections.read() as sql:
                assert sql.execute("SELECT COUNT(*) FROM notes").fetchone() == (1,)
                await writer.add("Two.")
                assert sql.execute("SELECT COUNT(*) FROM notes").fetchone() == (1,)
            assert (await reading_store.counts(ANN))["notes"] == 2

    run(work())


def test_a_second_writer_waits_and_then_raises(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db", busy_seconds=0.3) as store:
            writer = await StoreWriter(store).begin()
            other = sqlite3.connect(tmp_path / "a.db", isolation_level=None, check_same_thread=False)
            other.execute("BEGIN IMMEDIATE")
            start = time.monotonic()
            with pytest.raises(StoreBusy, match=r"a\.db"):
                await writer.add("Too late.")
            assert time.monotonic() - start >= 0.25
            assert (await store.counts(ANN))["notes"] == 0  # reads do not wait
            waiting = asyncio.create_task(writer.add("In time."))
            await asyncio.sleep(0.1)
            other.execute("COMMIT")
            other.close()
            await waiting
            assert (await store.counts(ANN))["notes"] == 1

    run(work())


def test_plans_on_an_older_state_are_refused(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store, opened(tmp_path / "a.db") as other_store:
            writer, other_writer = await StoreWriter(store).begin(), await StoreWriter(other_store).begin()
            state, other_state = await store.state(ANN), await other_store.state(ANN)
            assert state.secret != other_state.secret  # neither is stored yet
            await writer.add("First.")
            with pytest.raises(Conflict):
                await other_store.apply(Batch(ANN, other_state.seq, 1, (EraseNotes(()),)))
            assert (await other_store.state(ANN)).secret == state.secret
            await other_writer.do(EraseNotes(("n_1",)))
            with pytest.raises(Conflict):
                await store.apply(Batch(ANN, 0, 1, (EraseNotes(()),)))
            nobody = Scope(user="nobody")
            with pytest.raises(Conflict):
                await store.apply(Batch(nobody, 7, 8, ()))
            assert await store.scopes() == [ANN]

    run(work())


def test_a_batch_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            writer = await StoreWriter(store).begin()
            id = await writer.add("Stays.")
            with pytest.raises(StaleLease):
                await writer.do(PutJob(a_job("j_1")), EraseNotes((id,)), FinishJob("j_0", "nobody's"))
            assert await store.jobs(ANN) == []
            assert id in await store.notes(ANN, [id])
            assert await store.check(repair=False) == []

    run(work())


_VISITOR = """
import sys; sys.path.insert(0, ".")
from tests.integration.test_embedded_processes import *
async def work():
    async with opened(sys.argv[1]) as store:
        print((await store.counts(None))["notes"])
run(work())
"""


def notes_read_by_other_process(path: Path) -> int:
    """Return the number of notes that another process reads; it opens and closes the store."""
    process = subprocess.run([sys.executable, "-c", _VISITOR, str(path)], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return int(process.stdout)


def test_a_store_opened_twice_stays_locked_for_other_processes(tmp_path: Path) -> None:
    """On POSIX, a process that closes any descriptor of a file loses all its locks on it."""
    path = tmp_path / "a.db"

    async def work() -> None:
        async with opened(path) as first:
            writer = await StoreWriter(first).begin()
            await writer.add("Before.")
            async with opened(path), opened(f"{tmp_path}/../{tmp_path.name}/a.db"):
                assert notes_read_by_other_process(path) == 1
                await writer.add("After.")
                assert notes_read_by_other_process(path) == 2
            await writer.add("At last.")
            assert notes_read_by_other_process(path) == 3

    run(work())


def test_imports_and_exports_refuse_the_files_of_an_open_store(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    (tmp_path / "chat.txt").write_text("[2024-05-01 09:00] Ann: The sails are at the loft.\n")
    with Memory(path) as memory:
        memory.add("Before.")
        store_files = [str(tmp_path / name) for name in sorted(os.listdir(tmp_path)) if name != "chat.txt"]
        report = memory.import_transcript(tmp_path)
        assert (report.added, report.unknown_files) == (1, store_files)
        assert len(store_files) == 3
        for file in store_files:
            with pytest.raises(InvalidInput, match="belongs to an open store"):
                memory.import_transcript(file)
            with pytest.raises(InvalidInput, match="is a database"):
                memory.export(file, format="jsonl")
        assert notes_read_by_other_process(path) == 2
        memory.add("After.")
        assert notes_read_by_other_process(path) == 3


_MAKER = """
import sys; sys.path.insert(0, ".")
from tests.integration.test_embedded_processes import *
async def work():
    async with opened(sys.argv[1]) as store:
        writer = await StoreWriter(store, Scope(user=sys.argv[2])).begin()
        for n in range(20):
            await writer.add(f"Number {n}.")
run(work())
"""


def test_several_processes_can_create_the_same_store(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    makers = [
        subprocess.Popen([sys.executable, "-c", _MAKER, str(path), str(n)], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for n in range(4)
    ]
    for maker in makers:
        _, errors = maker.communicate()
        assert maker.returncode == 0, errors

    async def work() -> None:
        async with opened(path) as store:
            assert (await store.counts(None))["notes"] == 80
            assert len(await store.spaces()) == 1
            assert await store.check(repair=False) == []

    run(work())


_WRITER = """
import sys; sys.path.insert(0, ".")
from tests.integration.test_embedded_processes import *
async def work():
    async with opened(sys.argv[1]) as store:
        writer = await StoreWriter(store, first=int(sys.argv[2])).begin()
        while True:
            id = await writer.add("A fish swims by, number %d." % next(writer.numbers), session="sea")
            os.write(1, (id + "\\n").encode())
            if len(id) % 2:
                await writer.change(id, content="A whale instead.")
run(work())
"""


@pytest.mark.soak
def test_kills_lose_nothing_acknowledged(tmp_path: Path, soak_scale: Callable[[int], int]) -> None:
    path, rng, acknowledged = tmp_path / "a.db", random.Random(3), set[str]()
    for number in range(soak_scale(100)):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(path), str(1 + number * 1_000_000)], cwd=ROOT, stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(rng.random() * 0.15)
        writer.send_signal(signal.SIGKILL)
        output = (first + writer.stdout.read()).decode()
        writer.wait()
        writer.stdout.close()
        acknowledged |= set(output[: output.rfind("\n")].split())

        run(check_stored(path, acknowledged))
    assert acknowledged


async def check_stored(path: Path, ids: set[str]) -> None:
    async with opened(path) as store:
        assert ids <= set(await store.notes(ANN, sorted(ids)))
        assert await store.check(repair=False) == []


def test_a_forked_process_raises(tmp_path: Path) -> None:
    code = "import sys; sys.path.insert(0, '.'); from tests.integration import test_embedded_processes as tests"
    code += "; sys.exit(tests.run_fork(tests.Path(sys.argv[1])))"  # in a new process, which has one thread
    process = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr


def run_fork(folder: Path) -> int:
    async def work() -> int:
        async with opened(folder / "a.db") as store:
            await (await StoreWriter(store).begin()).add("One.")
            assert store._connections is not None
            child = os.fork()
            if child == 0:
                try:
                    with store._connections.read():
                        os._exit(1)
                except MemoryClosed:
                    os._exit(0)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])  # noqa: ASYNC222 (the child ends at once)

    return run(work())


def test_reads_answer_while_many_searches_load_one_cold_scope(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches that queue for a scope take no reader, so reads of other scopes answer."""

    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            await (await StoreWriter(store).begin()).add("The harbour.")
            bob = StoreWriter(store, Scope(user="bob"), first=50)
            bob.space = 1
            other = await bob.add("The ferry.")
        loading, release = threading.Event(), threading.Event()
        load = file_access.current_columns

        def slow(*arguments: Any) -> Any:
            loading.set()
            assert release.wait(30)
            return load(*arguments)

        monkeypatch.setattr(file_access, "current_columns", slow)
        async with opened(tmp_path / "a.db") as store:
            ann = await StoreWriter(store).begin()
            searches = [asyncio.create_task(ann.ask("harbour")) for _ in range(2 * READERS)]
            try:
                assert await asyncio.to_thread(loading.wait, 30)
                await asyncio.sleep(0.1)
                read = await asyncio.wait_for(store.notes(Scope(user="bob"), [other]), 5)
            finally:
                release.set()
            assert set(read) == {other}
            for search in searches:
                assert len((await search).ids) == 1

    run(work())
