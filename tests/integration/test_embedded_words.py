"""Word lookups: from the file, in stretches of a scope's notes, or from a write-side index."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.embedded import ANN, StoreWriter, opened, run, vector
from zettel.errors import StoreError
from zettel.graph.embedded import store as embedded_store
from zettel.graph.embedded import words
from zettel.graph.embedded.scope_cache import UNEMBEDDED
from zettel.graph.embedded.store import EmbeddedStore
from zettel.graph.embedded.write_index import WriteIndex
from zettel.graph.keys import Keys
from zettel.ports import LookupQuery

pytestmark = pytest.mark.integration
BITS = 7
"""Number of bits of a stretch in these tests: about 60 notes."""


@pytest.fixture(autouse=True, scope="module")
def short_stretches() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "STRETCH_BITS", BITS)
        yield


def rows(store: EmbeddedStore) -> set[tuple[int, int]]:
    """Return the pairs of stretch and note in the table of words."""
    with store._connections.read() as sql:  # type: ignore[union-attr]
        return set(sql.execute("SELECT DISTINCT stretch, note FROM words"))


async def look_up(store: EmbeddedStore) -> tuple[dict[str, int], list[str]]:
    """Return the number of notes with each of some words, and the notes that contain two of them."""
    result = await store.lookup(
        ANN, LookupQuery(tokens=("harbour", "ferri", "nobodi"), titles=(("ferry", ("ferri", "harbour")),))
    )
    return dict(result.df), [note.id for note in result.naming.get("ferry", ())]


def test_words_are_found_in_all_stretches(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            writer = await StoreWriter(store).begin()
            notes = [
                await writer.add("The harbour and the ferry." if number % 50 == 3 else "The harbour.")
                for number in range(200)
            ]
            both = notes[3::50]
            assert len({stretch for stretch, _ in rows(store)}) > 2
            assert await look_up(store) == ({"harbour": 200, "ferri": 4, "nobodi": 0}, both)
            await writer.change(notes[53], content="The harbour.")
            await writer.change(notes[0], content="Ferry.")
            assert await look_up(store) == ({"harbour": 199, "ferri": 4, "nobodi": 0}, [notes[3], *both[2:]])
            assert await store.check(repair=False) == []
            await writer.erase(notes[3])
            assert await look_up(store) == ({"harbour": 198, "ferri": 3, "nobodi": 0}, both[2:])
            assert {note for _, note in rows(store)} == {number for number in range(1, 201) if number != 4}
            assert await store.check(repair=False) == []

    run(work())


def test_a_term_exists_while_any_stretch_contains_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            writer = await StoreWriter(store).begin()
            first = await writer.add("Kestrel howls.")
            for number in range(100):
                await writer.add(f"Number {number}.")
            last = await writer.add("Kestrel sleeps.")
            assert {term.key: term.notes for term in await store.terms(ANN, first)}["kestrel"] == 2
            await writer.erase(first)
            assert {term.key: term.notes for term in await store.terms(ANN, last)}["kestrel"] == 1
            key = Keys((await store.state(ANN)).secret).term("kestrel")
            for count in (1, 0):
                with store._connections.read() as sql:  # type: ignore[union-attr]
                    assert sql.execute("SELECT COUNT(*) FROM terms WHERE key = ?", (key,)).fetchone() == (count,)
                if count:
                    await writer.erase(last)

    run(work())


def test_the_size_of_a_write_does_not_depend_on_the_size_of_the_scope(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "STRETCH_BITS", 5)
    wal, rng = tmp_path / "a.db-wal", random.Random(1)

    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            writer = await StoreWriter(store).begin()
            written = []
            for _ in range(60):
                with store._connections.writer() as sql:  # type: ignore[union-attr]
                    assert sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
                await writer.add(" ".join(f"word{rng.randrange(50_000)}" for _ in range(1_500)))
                written.append(wal.stat().st_size)
            assert sum(written[-16:]) < 1.5 * sum(written[:16])

    run(work())


def test_writes_of_a_process_with_the_old_layout_fail(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            with pytest.raises(StoreError, match="no such table: postings"):
                await store._write(lambda sql: sql.execute("INSERT INTO postings VALUES (1, 1, 1, 1)"))

    run(work())


def test_repeated_lookups_use_a_write_index_without_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as other, opened(tmp_path / "a.db") as store:
            writer = await StoreWriter(other).begin()
            notes = [await writer.add("The harbour.", vector=vector(1, number)) for number in range(5)]
            expected = await look_up(store)
            assert not store._scopes.cached()
            monkeypatch.setattr(embedded_store, "MANY_WORDS", 3)
            assert [await look_up(store) for _ in range(2)] == [expected] * 2
            assert not store._scopes.cached()  # few notes are counted without an index
            monkeypatch.setattr(embedded_store, "MANY_NOTES", 5)
            assert await look_up(store) == expected
            assert not store._scopes.cached()  # the first lookup counts without an index
            assert await look_up(store) == expected
            assert store._scopes.cached() == [(ANN.key, UNEMBEDDED)]
            ((_, [index]),) = store._scopes._entries.values()
            assert isinstance(index, WriteIndex)
            assert index.dim == 0
            await writer.add("The ferry in the harbour.", vector=vector(1, 7))
            await writer.erase(notes[0])
            monkeypatch.setattr(embedded_store, "MANY_WORDS", 1_000)
            assert (await look_up(store))[0] == {"harbour": 5, "ferri": 1, "nobodi": 0}
            await store.near(ANN, notes[1:], writer.space, 3)
            assert store._scopes.cached() == [(ANN.key, writer.space)]
            assert (await look_up(store))[0] == {"harbour": 5, "ferri": 1, "nobodi": 0}

    run(work())
