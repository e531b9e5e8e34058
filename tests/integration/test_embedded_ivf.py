"""A scope that has grown large is searched by inverted lists: found beside link jobs, kept in the file, right after
changes."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.integration.embedded import ANN, DIM, StoreWriter, opened, run
from zettel import Memory
from zettel.bench.synthetic import large_scope
from zettel.graph.columnar import ivf
from zettel.graph.embedded import ivf_lists, optimizing
from zettel.graph.embedded.store import EmbeddedStore

pytestmark = pytest.mark.integration

NOTES = 3000
LARGE = 1200
OVERLAP = 0.98


def hits(memory: Memory, questions: list[str], **search: Any) -> list[list[str]]:
    return [[hit.note.content for hit in found] for found in memory.search_many(questions, **search)]


def shared(some: list[list[str]], others: list[list[str]]) -> float:
    pairs = zip(some, others, strict=True)
    return sum(len({*one} & {*other}) / max(len(other), 1) for one, other in pairs) / len(some)


def kept(path: Path) -> list[tuple[int, int, int]]:
    """Epoch, vectors trained on and vectors assigned, of each scope's lists."""
    with sqlite3.connect(path) as sql:
        rows = sql.execute("SELECT epoch, trained, LENGTH(assigned) / 10 FROM lists").fetchall()
    sql.close()
    return rows


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few vectors are many here."""
    monkeypatch.setattr(ivf_lists, "LARGE", LARGE)
    monkeypatch.setattr(ivf_lists, "_SAMPLED", 8)
    monkeypatch.setattr(ivf, "PROBED", 24)
    monkeypatch.setattr(ivf, "FEW_ALLOWED", 200)


def test_a_large_scope(tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    events, questions = large_scope(NOTES)
    path, plain = tmp_path / "large.db", tmp_path / "plain.db"
    with Memory(path) as memory:
        memory.add_many(events[:2000])
        memory.flush()
        found_at = kept(path)
        assert found_at[0][0] == 1
        assert LARGE <= found_at[0][1] <= 2000
        memory.add_many(events[2000:])  # come to lists that are there
        memory.flush()
        large = hits(memory, questions)
        filtered = hits(memory, questions, speaker="Ann")
        said = {event.content: event.speaker for event in events}
        assert {said[content] for found in filtered for content in found} == {"Ann"}
    monkeypatch.setattr(ivf_lists, "LARGE", 10**9)
    with Memory(plain) as memory:
        memory.add_many(events)
        memory.flush()
        assert shared(large, hits(memory, questions)) >= OVERLAP
        assert shared(filtered, hits(memory, questions, speaker="Ann")) >= OVERLAP
    assert kept(plain) == []
    # Whoever opens the store finds the lists: nothing is trained, and few vectors are assigned anew.
    monkeypatch.setattr(ivf_lists, "train", None)
    assert kept(path)[0][2] >= (1 - ivf_lists.WRITTEN_AT) * NOTES
    with Memory(path) as memory:
        assert shared(hits(memory, questions), large) >= OVERLAP
        gone = [found[0].note for found in memory.search_many(questions[:5])]
        for note in gone:
            memory.delete(note.id)
        memory.flush()
        left = hits(memory, questions)
        assert not {note.content for note in gone} & {content for found in left for content in found}
        assert memory.check() == []
        memory.delete_scope()
    assert kept(path) == []


def test_lists_found_by_another_process_are_taken_over(tmp_path: Path, small: None) -> None:
    events, questions = large_scope(NOTES)
    path = tmp_path / "shared.db"
    with Memory(path) as one, Memory(path) as other:
        one.add_many(events[:1300])
        one.flush()
        assert kept(path)[0][0] == 1
        before = hits(other, questions)
        one.add_many(events[1300:])
        one.flush()
        assert shared(hits(other, questions), hits(one, questions)) >= OVERLAP
        assert shared(before, hits(one, questions)) < 1


def test_lists_are_found_anew_after_growth(tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivf_lists, "LARGE", 500)
    given_back: list[int] = []
    monkeypatch.setattr(optimizing, "trim_heap", lambda: given_back.append(len(kept(tmp_path / "grown.db"))))
    events, questions = large_scope(NOTES)
    with Memory(tmp_path / "grown.db") as memory, Memory(tmp_path / "grown.db") as other:
        memory.add_many(events[:500])
        memory.flush()
        deadline = time.monotonic() + 30
        while not (first := kept(tmp_path / "grown.db")) and time.monotonic() < deadline:
            time.sleep(0.05)  # the lists are found beside what else is done, after the last job
        hits(other, questions[:3])
        memory.add_many(events[500:])
        memory.flush()
        deadline = time.monotonic() + 30
        while kept(tmp_path / "grown.db")[0][0] == first[0][0] and time.monotonic() < deadline:
            time.sleep(0.05)
        ((epoch, trained, _),) = kept(tmp_path / "grown.db")
        assert epoch > first[0][0]
        assert trained >= ivf_lists.GROWTH * first[0][1]
        while len(given_back) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert given_back[:2] == [1, 1], "the heap, each time that lists were kept"
        assert shared(hits(other, questions), hits(memory, questions)) >= OVERLAP


def spread(number: int) -> Any:
    """Another unit row for every number."""
    row = np.random.default_rng(number).standard_normal(DIM).astype(np.float32)
    return row / np.linalg.norm(row)


async def forty(store: EmbeddedStore) -> tuple[StoreWriter, list[str]]:
    scribe = await StoreWriter(store).begin()
    return scribe, [await scribe.add(f"Number {number}.", vector=spread(number)) for number in range(40)]


@pytest.mark.parametrize("searched", [True, False])
def test_two_that_find_lists_at_once_lose_nothing(
    searched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What changes after the first began, and before the second did, is where it belongs.

    Unless somebody ``searched`` before, the lists were found for an outline, whose place columns have taken since.
    """
    monkeypatch.setattr(ivf_lists, "LARGE", 40)

    async def work() -> None:
        async with opened(tmp_path / "a.db", hasty=True) as store:
            scribe, ids = await forty(store)
            go_on, begun = asyncio.Event(), asyncio.Event()
            read, loop = store._read, asyncio.get_running_loop()

            async def slow(work: Any) -> Any:
                found = await read(work)
                if isinstance(found, tuple) and isinstance(found[0], ivf_lists.IvfLists):
                    begun.set()
                    await go_on.wait()
                return found

            monkeypatch.setattr(store, "_read", slow)
            if searched:
                await scribe.ask("late")
            first = loop.create_task(store.optimize(ANN, scribe.space))
            await begun.wait()
            late = await scribe.add("Late.", vector=spread(100))
            await scribe.change(ids[0], vector=spread(101), content="Reworded.")
            await scribe.erase(ids[1])
            await scribe.ask(vector=spread(100))
            second = loop.create_task(store.optimize(ANN, scribe.space))
            await asyncio.sleep(0.05)
            go_on.set()
            await asyncio.gather(first, second)
            if not searched:
                await store.optimize(ANN, scribe.space)
            [(_, [columns])] = store._scopes._entries.values()
            assert columns.ivf is not None
            for id, number in ((late, 100), (ids[0], 101), (ids[39], 39)):
                found = await scribe.ask(vector=spread(number), pool=1)
                assert found.ids[int(np.argmax(found.cosine))] == id
            assert ids[1] not in (await scribe.ask(vector=spread(1))).ids

    run(work())


@pytest.mark.parametrize("what", ["notes", "scope"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_what_goes_while_lists_are_found(what: str, when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is raised, and nothing of what is gone is written; ``before`` and ``after`` it was read."""
    monkeypatch.setattr(ivf_lists, "LARGE", 40)

    async def work() -> None:
        async with opened(tmp_path / "a.db", hasty=True) as store:
            scribe, ids = await forty(store)
            read = store._read
            await scribe.ask(vector=spread(1))

            async def going(work: Any) -> Any:
                monkeypatch.setattr(store, "_read", read)
                found = await read(work) if when == "after" else None
                if what == "notes":
                    await scribe.erase(*ids[1:])
                else:
                    await store.drop_scope(ANN)
                    await scribe.add("Anew.", vector=spread(0))
                return found if when == "after" else await read(work)

            monkeypatch.setattr(store, "_read", going)
            await store.optimize(ANN, scribe.space)
            found = await scribe.ask(vector=spread(0))
            assert len(found.ids) == 1
            assert found.cosine[0] == pytest.approx(1, abs=0.01)
        assert len(kept(tmp_path / "a.db")) == (what == "notes" and when == "after")

    run(work())


def test_no_lists_of_a_vector_set_that_is_gone(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db", hasty=True) as store:
            scribe, ids = await forty(store)
            listed = ivf_lists.IvfLists(1, 1, np.eye(2, DIM), np.eye(2, DIM), np.array([1]), np.array([0]))
            await store._write(lambda sql: ivf_lists.save(sql, 1, scribe.space + 1, listed))
            assert await store.near(ANN, ids, scribe.space + 1, 3) == []
        assert kept(tmp_path / "a.db") == []

    run(work())
