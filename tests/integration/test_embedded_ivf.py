"""Inverted lists of a large scope: trained beside link jobs, stored in the file, and correct after changes."""

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
    return [[hit.note.content for hit in results] for results in memory.search_many(questions, **search)]


def overlap(results: list[list[str]], others: list[list[str]]) -> float:
    pairs = zip(results, others, strict=True)
    return sum(len({*result} & {*other}) / max(len(other), 1) for result, other in pairs) / len(results)


def stored_lists(path: Path) -> list[tuple[int, int, int]]:
    """Return epoch, training vectors and assigned vectors of each scope's lists."""
    with sqlite3.connect(path) as sql:
        rows = sql.execute("SELECT epoch, trained, LENGTH(assigned) / 10 FROM lists").fetchall()
    sql.close()
    return rows


@pytest.fixture
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limits so that few vectors count as many."""
    monkeypatch.setattr(ivf_lists, "LARGE", LARGE)
    monkeypatch.setattr(ivf_lists, "_SAMPLED", 8)
    monkeypatch.setattr(ivf, "PROBED", 24)
    monkeypatch.setattr(ivf, "FEW_ALLOWED", 200)


def test_a_large_scope_with_lists_finds_the_same_hits(
    tmp_path: Path, low_limits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, questions = large_scope(NOTES)
    path, plain = tmp_path / "large.db", tmp_path / "plain.db"
    with Memory(path, embedder="static") as memory:
        memory.add_many(events[:2000])
        memory.flush()
        first_lists = stored_lists(path)
        assert first_lists[0][0] == 1
        assert LARGE <= first_lists[0][1] <= 2000
        memory.add_many(events[2000:])  # are assigned to the existing lists
        memory.flush()
        large = hits(memory, questions)
        filtered = hits(memory, questions, speaker="Ann")
        speakers = {event.content: event.speaker for event in events}
        assert {speakers[content] for contents in filtered for content in contents} == {"Ann"}
    monkeypatch.setattr(ivf_lists, "LARGE", 10**9)
    with Memory(plain, embedder="static") as memory:
        memory.add_many(events)
        memory.flush()
        assert overlap(large, hits(memory, questions)) >= OVERLAP
        assert overlap(filtered, hits(memory, questions, speaker="Ann")) >= OVERLAP
    assert stored_lists(plain) == []
    # A newly opened store loads the lists: it trains nothing and assigns few vectors.
    monkeypatch.setattr(ivf_lists, "train", None)
    assert stored_lists(path)[0][2] >= (1 - ivf_lists.WRITTEN_AT) * NOTES
    with Memory(path) as memory:
        assert overlap(hits(memory, questions), large) >= OVERLAP
        deleted = [contents[0].note for contents in memory.search_many(questions[:5])]
        for note in deleted:
            memory.delete(note.id)
        memory.flush()
        remaining = hits(memory, questions)
        assert not {note.content for note in deleted} & {content for contents in remaining for content in contents}
        assert memory.check() == []
        memory.delete_scope()
    assert stored_lists(path) == []


def test_lists_of_another_process_are_used(tmp_path: Path, low_limits: None) -> None:
    events, questions = large_scope(NOTES)
    path = tmp_path / "shared.db"
    with Memory(path) as writer, Memory(path) as reader:
        writer.add_many(events[:1300])
        writer.flush()
        assert stored_lists(path)[0][0] == 1
        before = hits(reader, questions)
        writer.add_many(events[1300:])
        writer.flush()
        assert overlap(hits(reader, questions), hits(writer, questions)) >= OVERLAP
        assert overlap(before, hits(writer, questions)) < 1


def test_lists_are_trained_again_after_growth(
    tmp_path: Path, low_limits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ivf_lists, "LARGE", 500)
    trims: list[int] = []
    monkeypatch.setattr(optimizing, "trim_heap", lambda: trims.append(len(stored_lists(tmp_path / "grown.db"))))
    events, questions = large_scope(NOTES)
    with Memory(tmp_path / "grown.db") as memory, Memory(tmp_path / "grown.db") as other:
        memory.add_many(events[:500])
        memory.flush()
        deadline = time.monotonic() + 30
        while not (first := stored_lists(tmp_path / "grown.db")) and time.monotonic() < deadline:
            time.sleep(0.05)  # a background task trains the lists after the last job
        hits(other, questions[:3])
        memory.add_many(events[500:])
        memory.flush()
        deadline = time.monotonic() + 30
        while stored_lists(tmp_path / "grown.db")[0][0] == first[0][0] and time.monotonic() < deadline:
            time.sleep(0.05)
        ((epoch, trained, _),) = stored_lists(tmp_path / "grown.db")
        assert epoch > first[0][0]
        assert trained >= ivf_lists.GROWTH * first[0][1]
        while len(trims) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert trims[:2] == [1, 1], "the heap is trimmed each time that lists are stored"
        assert overlap(hits(other, questions), hits(memory, questions)) >= OVERLAP


def unit_row(number: int) -> Any:
    """Return a distinct unit row for every number."""
    row = np.random.default_rng(number).standard_normal(DIM).astype(np.float32)
    return row / np.linalg.norm(row)


async def add_forty(store: EmbeddedStore) -> tuple[StoreWriter, list[str]]:
    writer = await StoreWriter(store).begin()
    return writer, [await writer.add(f"Number {number}.", vector=unit_row(number)) for number in range(40)]


@pytest.mark.parametrize("searched", [True, False])
def test_concurrent_optimizations_lose_no_change(
    searched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes between the starts of two optimizations are assigned correctly.

    Without a search before, the lists are trained for a write-side index, which columns replace meanwhile.
    """
    monkeypatch.setattr(ivf_lists, "LARGE", 40)

    async def work() -> None:
        async with opened(tmp_path / "a.db", fast_writes=True) as store:
            writer, ids = await add_forty(store)
            go_on, started = asyncio.Event(), asyncio.Event()
            read, loop = store._read, asyncio.get_running_loop()

            async def paused_read(work: Any) -> Any:
                result = await read(work)
                if isinstance(result, tuple) and isinstance(result[0], ivf_lists.IvfLists):
                    started.set()
                    await go_on.wait()
                return result

            monkeypatch.setattr(store, "_read", paused_read)
            if searched:
                await writer.ask("late")
            first = loop.create_task(store.optimize(ANN, writer.space))
            await started.wait()
            late_id = await writer.add("Late.", vector=unit_row(100))
            await writer.change(ids[0], vector=unit_row(101), content="Reworded.")
            await writer.erase(ids[1])
            await writer.ask(vector=unit_row(100))
            second = loop.create_task(store.optimize(ANN, writer.space))
            await asyncio.sleep(0.05)
            go_on.set()
            await asyncio.gather(first, second)
            if not searched:
                await store.optimize(ANN, writer.space)
            [(_, [columns])] = store._scopes._entries.values()
            assert columns.ivf is not None
            for id, number in ((late_id, 100), (ids[0], 101), (ids[39], 39)):
                candidates = await writer.ask(vector=unit_row(number), pool=1)
                assert candidates.ids[int(np.argmax(candidates.cosine))] == id
            assert ids[1] not in (await writer.ask(vector=unit_row(1))).ids

    run(work())


@pytest.mark.parametrize("target", ["notes", "scope"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_deletes_during_an_optimization_leave_no_lists(
    target: str, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deletes ``before`` and ``after`` the read raise no error, and no deleted data is written."""
    monkeypatch.setattr(ivf_lists, "LARGE", 40)

    async def work() -> None:
        async with opened(tmp_path / "a.db", fast_writes=True) as store:
            writer, ids = await add_forty(store)
            read = store._read
            await writer.ask(vector=unit_row(1))

            async def read_with_change(work: Any) -> Any:
                monkeypatch.setattr(store, "_read", read)
                result = await read(work) if moment == "after" else None
                if target == "notes":
                    await writer.erase(*ids[1:])
                else:
                    await store.drop_scope(ANN)
                    await writer.add("Again.", vector=unit_row(0))
                return result if moment == "after" else await read(work)

            monkeypatch.setattr(store, "_read", read_with_change)
            await store.optimize(ANN, writer.space)
            candidates = await writer.ask(vector=unit_row(0))
            assert len(candidates.ids) == 1
            assert candidates.cosine[0] == pytest.approx(1, abs=0.01)
        assert len(stored_lists(tmp_path / "a.db")) == (target == "notes" and moment == "after")

    run(work())


def test_lists_of_a_missing_vector_set_are_not_stored(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db", fast_writes=True) as store:
            writer, ids = await add_forty(store)
            listed = ivf_lists.IvfLists(1, 1, np.eye(2, DIM), np.eye(2, DIM), np.array([1]), np.array([0]))
            await store._write(lambda sql: ivf_lists.save(sql, 1, writer.space + 1, listed))
            assert await store.near(ANN, ids, writer.space + 1, 3) == []
        assert stored_lists(tmp_path / "a.db") == []

    run(work())
