"""The public API, async and blocking: with threads, after a fork, closed, and at import."""

from __future__ import annotations

import inspect
import os
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest

import zettel.ports
from zettel import AsyncMemory, Event, Memory, Scope
from zettel.embed.static import StaticEmbedder
from zettel.errors import EmbedderMismatch, InvalidInput, MemoryClosed, NotFound, StoreBusy
from zettel.graph.embedded.store import EmbeddedStore
from zettel.model import Kind
from zettel.ports.query import Question
from zettel.search.question import parse_question

ROOT = Path(__file__).parents[2]


def test_both_classes_have_the_same_methods() -> None:
    def public(cls: type) -> set[str]:
        return {name for name in dir(cls) if not name.startswith("_")}

    assert public(AsyncMemory) - {"open"} == public(Memory)
    for name in public(Memory):
        method, awaited = getattr(Memory, name), getattr(AsyncMemory, name)
        assert method.__doc__
        assert inspect.signature(method).parameters == inspect.signature(awaited).parameters
    arguments = [inspect.signature(cls.__init__).parameters for cls in (Memory, AsyncMemory)]
    assert arguments[0] == arguments[1]


@pytest.mark.anyio
async def test_the_async_memory_adds_searches_and_dumps(tmp_path: Path) -> None:
    async with AsyncMemory(tmp_path / "a.db") as memory:
        id = await memory.add("Tea is in the left cupboard.", speaker="Ann", wait=True)
        assert [hit.note.id for hit in await memory.search("Where is the tea?")] == [id]
        assert [record.content async for record, _ in memory.dump()] == ["Tea is in the left cupboard."]
    with pytest.raises(MemoryClosed):
        await memory.get(id)


@pytest.mark.anyio
async def test_questions_are_parsed_outside_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def record_thread(text: str, **known: Any) -> Question:
        threads.append(threading.get_ident())
        return parse_question(text, **known)

    monkeypatch.setattr("zettel.search.scope_search.parse_question", record_thread)
    async with AsyncMemory(tmp_path / "a.db") as memory:
        await memory.add("Tea is in the left cupboard.", wait=True)
        await memory.search("Τι έγινε στις 3 Μαΐου 2023;")
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.anyio
async def test_questions_are_parsed_while_the_embedder_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = anyio.Event()

    def record(text: str, **known: Any) -> Question:
        anyio.from_thread.run_sync(parsed.set)
        return parse_question(text, **known)

    class Patient(StaticEmbedder):
        """Embeds questions once one of them was parsed."""

        async def embed_questions(self, texts: Sequence[str]) -> Any:
            with anyio.fail_after(10):
                await parsed.wait()
            return await self.embed(texts)

    monkeypatch.setattr("zettel.search.scope_search.parse_question", record)
    async with AsyncMemory(tmp_path / "a.db", embedder=Patient()) as memory:
        id = await memory.add("Tea is in the left cupboard.", wait=True)
        assert [hit.note.id for hit in await memory.search("Where is the tea?")] == [id]


@pytest.mark.anyio
async def test_a_note_that_expires_while_the_embedder_computes_is_no_hit(tmp_path: Path) -> None:
    class Slow(StaticEmbedder):
        async def embed_questions(self, texts: Sequence[str]) -> Any:
            await anyio.sleep(1.0)
            return await self.embed(texts)

    async with AsyncMemory(tmp_path / "a.db", embedder=Slow()) as memory:
        id = await memory.add("Tea is in the left cupboard.", wait=True)
        await memory.add("Tea is in the right cupboard today.", ttl=timedelta(seconds=0.8))
        assert [hit.note.id for hit in await memory.search("Where is the tea?")] == [id]


@pytest.mark.anyio
async def test_an_error_of_an_embedder_is_raised_as_itself(tmp_path: Path) -> None:
    class Failing(StaticEmbedder):
        async def embed_questions(self, texts: Sequence[str]) -> Any:
            raise ConnectionResetError("the embedder of a user")

    async with AsyncMemory(tmp_path / "a.db", embedder=Failing()) as memory:
        await memory.add("Tea is in the left cupboard.", wait=True)
        with pytest.raises(ConnectionResetError, match="the embedder of a user"):
            await memory.search("Where is the tea?")


def test_threads_can_share_a_memory(tmp_path: Path) -> None:
    with Memory(tmp_path / "a.db") as memory, ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda n: memory.add(f"Fact number {n} about kettles.", id=str(n)), range(60)))
        hit_ids = list(pool.map(lambda n: memory.search(f"fact number {n}", k=1)[0].note.id, range(60)))
        memory.flush()
        assert len(set(ids)) == 60
        assert sum(a == b for a, b in zip(ids, hit_ids, strict=True)) >= 55
        assert memory.check() == []


def test_a_forked_process_gets_a_clear_error(tmp_path: Path) -> None:
    code = (
        "import os, sys, warnings; warnings.simplefilter('ignore'); from zettel import Memory\n"
        "m = Memory(sys.argv[1]); m.add('Before the fork.')\n"
        "if os.fork() == 0:\n"
        "    try: m.search('fork')\n"
        "    except Exception as error: print(type(error).__name__, error, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait(); print(m.search('fork')[0].note.content, flush=True); m.close()\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.db")], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert process.returncode == 0, process.stderr
    forked, parent = process.stdout.splitlines()
    assert forked.startswith("MemoryClosed this memory was opened before a fork")
    assert parent == "Before the fork."


@pytest.mark.parametrize("url", [None, 5, b"a.db", ["a.db"], type("Store", (), {"open": None})])
def test_a_wrong_store_argument_is_an_error(url: Any) -> None:
    with pytest.raises(InvalidInput, match=r"does not name a store: use a path such as 'zettel.db'"):
        Memory(url)


@pytest.mark.parametrize("end", ["m.close()", "del m", "m.__exit__(None, None, None)", "pass"])
def test_a_forked_process_exits_cleanly(tmp_path: Path, end: str) -> None:
    code = (
        "import os, sys, warnings; warnings.simplefilter('ignore'); from zettel import Memory\n"
        "m = Memory(sys.argv[1]); m.add('Before the fork.')\n"
        "child = os.fork()\n"
        f"if child == 0: {end}; sys.exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "m.add('After the fork.'); print(len(m.list().notes), flush=True); m.close()\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.db")], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (process.returncode, process.stdout) == (0, "2\n"), process.stderr


def test_an_unclosed_memory_ends_with_the_interpreter(tmp_path: Path) -> None:
    code = "import sys; from zettel import Memory; m = Memory(sys.argv[1]); m.add('Left open.'); print('end')"
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(tmp_path / "a.db")],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (process.returncode, process.stdout, process.stderr) == (0, "end\n", "")


def test_ctrl_c_interrupts_a_wait_and_loses_nothing(tmp_path: Path) -> None:
    class SlowEmbedder:
        remote = True
        info = zettel.ports.EmbedderInfo("slow", 4, "slow")

        async def embed(self, texts: object) -> object:
            import anyio

            await anyio.sleep(30)

    memory = Memory(tmp_path / "a.db", embedder=SlowEmbedder())
    memory.add("Kept all the same.")
    threading.Timer(0.3, lambda: os.kill(os.getpid(), 2)).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        memory.flush()
    assert time.monotonic() - started < 10
    memory.close()
    with Memory(tmp_path / "a.db", embedder=SlowEmbedder()) as again:
        assert [note.content for note in again.list().notes] == ["Kept all the same."]
        assert len(again.jobs()) == 1


def test_lists_searches_and_neighbours_respect_scopes_and_filters(tmp_path: Path) -> None:
    with Memory(tmp_path / "a.db", scope=Scope(user="ann")) as memory:
        memory.add_many(
            [
                Event(
                    content=f"Note {n} on kettle descaling.",
                    id=str(n),
                    speaker=["Ann", "Bob"][n % 2],
                    session=f"s{n % 3}",
                    occurred_at=f"2024-0{1 + n % 9}-01",
                    metadata={"shelf": n % 2, "tags": ["a", "b"]},
                )
                for n in range(25)
            ]
        )
        first = memory.list(limit=10)
        second = memory.list(limit=10, cursor=first.cursor)
        third = memory.list(limit=10, cursor=second.cursor)
        assert [len(page.notes) for page in (first, second, third)] == [10, 10, 5]
        assert third.cursor is None
        assert len({note.id for page in (first, second, third) for note in page.notes}) == 25
        hits = memory.search("kettle", k=50, speaker="Bob", session="s1", filter={"shelf": 1})
        assert {(h.note.speaker, h.note.session, h.note.metadata["shelf"]) for h in hits} == {("Bob", "s1", 1)}
        assert len(hits) == 4
        since = memory.search("kettle", k=50, since="2024-08-01", until="2024-09-01")
        assert {hit.note.occurred_at.month for hit in since if hit.note.occurred_at} == {8}
        assert memory.search("kettle", tags=["no such tag"]) == []
        assert memory.search("kettle", kinds=["semantic"]) == []
        memory.flush()
        neighbours = memory.neighbors(first.notes[5].id, hops=1)
        assert neighbours
        assert all(first.notes[5].id in (n.link.source, n.link.target) for n in neighbours)
        assert memory.search("kettle", scope=Scope(user="bob")) == []
        for wrong in ({"limit": 0}, {"cursor": "n_1"}):
            with pytest.raises(InvalidInput):
                memory.list(**wrong)
        for hops in (0, "2", 2.5, None):
            with pytest.raises(InvalidInput, match="hops must be from 1 to 5"):
                memory.neighbors(first.notes[5].id, hops=hops)
        with pytest.raises(NotFound):
            memory.neighbors("n_nothing")


def test_tag_filters_accept_any_iterable(tmp_path: Path) -> None:
    with Memory(tmp_path / "a.db") as memory:
        expected = memory.add("The kettle sings.", speaker="Ann", session="s")
        memory.update(expected, tags=["kitchen"])
        memory.add("The kettle leaks.", speaker="Ben", session="s")
        for tags in (["kitchen"], "kitchen", {"kitchen"}, iter(["kitchen"])):
            assert [hit.note.id for hit in memory.search("kettle", tags=tags)] == [expected]
        assert [note.id for note in memory.list(tags=iter(["kitchen"])).notes] == [expected]
        for wrong in ({"speaker": ["Ann", "Ben"]}, {"session": 3}, {"tags": [3]}):
            with pytest.raises(InvalidInput, match=next(iter(wrong))):
                memory.search("kettle", **wrong)


def test_min_score_and_tags_apply_to_insights(tmp_path: Path) -> None:
    with Memory(tmp_path / "a.db") as memory:
        for day in range(1, 7):
            at = f"2024-02-{day:02d}T10:00Z"
            memory.add(f"We sailed the Blue Heron to island {day}.", speaker="Ann", session="sea", occurred_at=at)
        memory.evolve()
        hits = memory.search("What do we know about the Blue Heron?", k=20)
        assert hits[0].note.kind is Kind.INSIGHT
        least = hits[3].score
        found = memory.search("What do we know about the Blue Heron?", k=20, min_score=least)
        assert found[0].note.id == hits[0].note.id
        assert all(hit.score >= least for hit in found)
        assert memory.search("What are the main topics?", min_score=1.0) == []
        assert all("session" in hit.note.tags for hit in memory.search("island 3", tags=["session"]))
        assert memory.search("island 3", tags=["session"])


def test_context_is_packed_in_time_order_within_its_budget(tmp_path: Path) -> None:
    with Memory(tmp_path / "a.db") as memory:
        for month in (5, 1, 3):
            memory.add(f"The boiler was serviced in month {month}.", speaker="Ann", occurred_at=f"2024-0{month}-02")
        text = memory.context("When was the boiler serviced?")
        places = [text.index(f"month {month}") for month in (1, 3, 5)]
        assert places == sorted(places)
        assert "2024-01-02" in text
        assert "Ann" in text
        assert len(memory.context("When was the boiler serviced?", max_tokens=20)) < len(text)


def test_a_naive_time_is_utc_and_none_stays_none(tmp_path: Path) -> None:
    with Memory(tmp_path / "a.db") as memory:
        dated = memory.get(memory.add("x", occurred_at="2024-05-01T09:00:00"))
        undated = memory.get(memory.add("y"))
        assert dated.occurred_at.tzinfo == timezone.utc
        assert undated.occurred_at is None
        assert undated.valid_from is None


@pytest.mark.parametrize(
    ("statement", "limit"),
    [("import zettel", 0.1), ("from zettel import Memory, Event, Scope", 0.25)],
)
def test_imports_are_fast_and_load_no_heavy_package(statement: str, limit: float) -> None:
    """The limits are three times those of `zettel bench speed`, in CPU time, because the machine may be busy."""

    def cpu_seconds(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(cpu_seconds(statement) - cpu_seconds("pass") for _ in range(5)) < 3 * limit
    heavy = ("torch", "litellm", "neo4j", "faiss", "networkx", "numpy")
    code = f"{statement}; import sys; print([name for name in {heavy} if name in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"


def test_jobs_continue_after_another_process_locked_the_store(tmp_path: Path) -> None:
    with Memory(EmbeddedStore(tmp_path / "a.db", busy_seconds=0.2)) as memory:
        memory.add("The first one.")
        memory.flush()
        other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy):
            memory.add("Too busy.")
        time.sleep(1.0)  # the runner also finds the store busy
        other.execute("ROLLBACK")
        other.close()
        memory.add("The second one.")
        memory.flush(timeout=20)
        assert memory.jobs() == []
        assert [note.content for note in memory.list().notes] == ["The first one.", "The second one."]


def test_search_many_raises_the_error_of_a_single_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not an exception group."""

    async def fail(*_: object) -> None:
        raise EmbedderMismatch("the vector set is deleted")

    with Memory(tmp_path / "a.db") as memory:
        memory.add("The ferry leaves at nine.")
        monkeypatch.setattr(EmbeddedStore, "candidates", fail)
        with pytest.raises(EmbedderMismatch, match="deleted"):
            memory.search_many(["When does the ferry leave?", "Who leaves?"])
