"""Several at the same file: what one writes the others see, and nobody waits for ever."""

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


def test_the_other_sees_every_addition_change_and_deletion(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as here, opened(tmp_path / "a.db") as there:
            writer, reader = await StoreWriter(here).begin(), await StoreWriter(there).begin()

            async def found() -> dict[str, tuple[int, float]]:
                asked = await reader.ask("harbour", vector=vector(1))
                return {
                    id: (int(count), round(float(cosine), 3))
                    for id, count, cosine in zip(asked.ids, asked.tf.sum(axis=1), asked.cosine, strict=True)
                }

            assert await found() == {}
            one = await writer.add("The harbour is closed.", vector=vector(1))
            assert await found() == {one: (1, 1.0)}
            two = await writer.add("The harbour, the harbour!", vector=vector(0, 1), session="s")
            assert await found() == {one: (1, 1.0), two: (2, 0.0)}
            await writer.change(one, content="The station is closed.", vector=vector(3, 4))
            assert await found() == {one: (0, 0.6), two: (2, 0.0)}
            await writer.change(two, links=[(one, LinkType.RELATES)])
            asked = await reader.ask("harbour")
            assert [asked.ids[row] for row in (*asked.link_source, *asked.link_target)] == [two, one]
            await writer.erase(one)
            assert await found() == {two: (2, 0.0)}
            assert len((await reader.ask("harbour")).link_source) == 0
            await writer.change(two, archived=True)
            assert await found() == {}
            await here.drop_scope(ANN)
            await writer.add("The harbour of another life.", vector=vector(1))
            assert list((await found()).values()) == [(1, 1.0)]

    run(work())


def test_a_purge_in_between_is_seen_too(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as here, opened(tmp_path / "a.db") as there:
            writer, reader = await StoreWriter(here).begin(), await StoreWriter(there).begin()
            ids = [await writer.add(f"The harbour, pier {n}.", vector=vector(n + 1)) for n in range(5)]
            assert len((await reader.ask("harbour")).ids) == 5
            await writer.erase(*ids[:2])
            assert await here.purge()
            assert (await reader.ask("harbour")).ids == tuple(ids[2:])
            assert (await writer.ask("harbour")).ids == tuple(ids[2:])

    run(work())


def test_a_reader_keeps_its_state_while_another_writes(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as here, opened(tmp_path / "a.db") as there:
            writer = await StoreWriter(here).begin()
            await writer.add("One.")
            assert there._connections is not None
            with there._connections.read() as sql:
                assert sql.execute("SELECT COUNT(*) FROM notes").fetchone() == (1,)
                await writer.add("Two.")
                assert sql.execute("SELECT COUNT(*) FROM notes").fetchone() == (1,)
            assert (await there.counts(ANN))["notes"] == 2

    run(work())


def test_a_second_writer_waits_and_then_says_so(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db", busy_seconds=0.3) as store:
            scribe = await StoreWriter(store).begin()
            other = sqlite3.connect(tmp_path / "a.db", isolation_level=None, check_same_thread=False)
            other.execute("BEGIN IMMEDIATE")
            began = time.monotonic()
            with pytest.raises(StoreBusy, match=r"a\.db"):
                await scribe.add("Too late.")
            assert time.monotonic() - began >= 0.25
            assert (await store.counts(ANN))["notes"] == 0  # reading goes on
            waiting = asyncio.create_task(scribe.add("In time."))
            await asyncio.sleep(0.1)
            other.execute("COMMIT")
            other.close()
            await waiting
            assert (await store.counts(ANN))["notes"] == 1

    run(work())


def test_plans_on_an_older_state_are_refused(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as here, opened(tmp_path / "a.db") as there:
            one, other = await StoreWriter(here).begin(), await StoreWriter(there).begin()
            mine, theirs = await here.state(ANN), await there.state(ANN)
            assert mine.secret != theirs.secret  # neither is durable yet
            await one.add("First.")
            with pytest.raises(Conflict):
                await there.apply(Batch(ANN, theirs.seq, 1, (EraseNotes(()),)))
            assert (await there.state(ANN)).secret == mine.secret
            await other.do(EraseNotes(("n_1",)))
            with pytest.raises(Conflict):
                await here.apply(Batch(ANN, 0, 1, (EraseNotes(()),)))
            nobody = Scope(user="nobody")
            with pytest.raises(Conflict):
                await here.apply(Batch(nobody, 7, 8, ()))
            assert await here.scopes() == [ANN]

    run(work())


def test_a_batch_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            scribe = await StoreWriter(store).begin()
            id = await scribe.add("Stays.")
            with pytest.raises(StaleLease):
                await scribe.do(PutJob(a_job("j_1")), EraseNotes((id,)), FinishJob("j_0", "nobody's"))
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


def notes_seen_elsewhere(path: Path) -> int:
    """By another process that opens the store and closes it again."""
    seen = subprocess.run([sys.executable, "-c", _VISITOR, str(path)], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return int(seen.stdout)


def test_who_opens_it_twice_loses_nothing_to_another_process(tmp_path: Path) -> None:
    """On POSIX, a process that closes any descriptor of a file loses all its locks on it."""
    path = tmp_path / "a.db"

    async def work() -> None:
        async with opened(path) as first:
            scribe = await StoreWriter(first).begin()
            await scribe.add("Before.")
            async with opened(path), opened(f"{tmp_path}/../{tmp_path.name}/a.db"):
                assert notes_seen_elsewhere(path) == 1
                await scribe.add("After.")
                assert notes_seen_elsewhere(path) == 2
            await scribe.add("At last.")
            assert notes_seen_elsewhere(path) == 3

    run(work())


def test_neither_an_import_nor_an_export_opens_the_file_of_an_open_store(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    (tmp_path / "chat.txt").write_text("[2024-05-01 09:00] Ann: The sails are at the loft.\n")
    with Memory(path) as memory:
        memory.add("Before.")
        beside = [str(tmp_path / name) for name in sorted(os.listdir(tmp_path)) if name != "chat.txt"]
        report = memory.import_transcript(tmp_path)
        assert (report.added, report.unknown_files) == (1, beside)
        assert len(beside) == 3
        for file in beside:
            with pytest.raises(InvalidInput, match="belongs to an open store"):
                memory.import_transcript(file)
            with pytest.raises(InvalidInput, match="is a database"):
                memory.export(file, format="jsonl")
        assert notes_seen_elsewhere(path) == 2
        memory.add("After.")
        assert notes_seen_elsewhere(path) == 3


_MAKER = """
import sys; sys.path.insert(0, ".")
from tests.integration.test_embedded_processes import *
async def work():
    async with opened(sys.argv[1]) as store:
        scribe = await StoreWriter(store, Scope(user=sys.argv[2])).begin()
        for n in range(20):
            await scribe.add(f"Number {n}.")
run(work())
"""


def test_processes_that_make_the_same_store_at_once(tmp_path: Path) -> None:
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
        scribe = await StoreWriter(store, first=int(sys.argv[2])).begin()
        while True:
            id = await scribe.add("A fish swims by, number %d." % next(scribe.numbers), session="sea")
            os.write(1, (id + "\\n").encode())
            if len(id) % 2:
                await scribe.change(id, content="A whale instead.")
run(work())
"""


@pytest.mark.soak
def test_kills_lose_nothing_acknowledged(tmp_path: Path, soak_scale: Callable[[int], int]) -> None:
    path, chosen, acknowledged = tmp_path / "a.db", random.Random(3), set[str]()
    for round in range(soak_scale(100)):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(path), str(1 + round * 1_000_000)], cwd=ROOT, stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(chosen.random() * 0.15)
        writer.send_signal(signal.SIGKILL)
        told = (first + writer.stdout.read()).decode()
        writer.wait()
        writer.stdout.close()
        acknowledged |= set(told[: told.rfind("\n")].split())

        run(require(path, acknowledged))
    assert acknowledged


async def require(path: Path, ids: set[str]) -> None:
    async with opened(path) as store:
        assert ids <= set(await store.notes(ANN, sorted(ids)))
        assert await store.check(repair=False) == []


def test_a_fork_says_so(tmp_path: Path) -> None:
    code = "import sys; sys.path.insert(0, '.'); from tests.integration import test_embedded_processes as tests"
    code += "; sys.exit(tests.forked(tests.Path(sys.argv[1])))"  # in a process of its own, which has one thread
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr


def forked(folder: Path) -> int:
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
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])  # noqa: ASYNC222 (it ends at once)

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
