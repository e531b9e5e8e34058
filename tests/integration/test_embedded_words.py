"""Which notes hold a word: told by the file, by stretches of a scope's notes, or by an account that is kept of it."""

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
"""Of a stretch here: some 60 notes."""


@pytest.fixture(autouse=True, scope="module")
def short() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "STRETCH_BITS", BITS)
        yield


def rows(store: EmbeddedStore) -> set[tuple[int, int]]:
    """Stretches with the notes that have words there."""
    with store._connections.read() as sql:  # type: ignore[union-attr]
        return set(sql.execute("SELECT DISTINCT stretch, note FROM words"))


async def asked(store: EmbeddedStore) -> tuple[dict[str, int], list[str]]:
    """How many notes hold each of some words, and which hold two of them."""
    found = await store.lookup(
        ANN, LookupQuery(tokens=("harbour", "ferri", "nobodi"), titles=(("ferry", ("ferri", "harbour")),))
    )
    return dict(found.df), [note.id for note in found.naming.get("ferry", ())]


def test_words_are_found_in_all_stretches(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            scribe = await StoreWriter(store).begin()
            notes = [
                await scribe.add("The harbour and the ferry." if number % 50 == 3 else "The harbour.")
                for number in range(200)
            ]
            both = notes[3::50]
            assert len({stretch for stretch, _ in rows(store)}) > 2
            assert await asked(store) == ({"harbour": 200, "ferri": 4, "nobodi": 0}, both)
            await scribe.change(notes[53], content="The harbour.")
            await scribe.change(notes[0], content="Ferry.")
            assert await asked(store) == ({"harbour": 199, "ferri": 4, "nobodi": 0}, [notes[3], *both[2:]])
            assert await store.check(repair=False) == []
            await scribe.erase(notes[3])
            assert await asked(store) == ({"harbour": 198, "ferri": 3, "nobodi": 0}, both[2:])
            assert {note for _, note in rows(store)} == {number for number in range(1, 201) if number != 4}
            assert await store.check(repair=False) == []

    run(work())


def test_a_term_is_known_as_long_as_any_stretch_has_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            scribe = await StoreWriter(store).begin()
            first = await scribe.add("Kestrel howls.")
            for number in range(100):
                await scribe.add(f"Number {number}.")
            last = await scribe.add("Kestrel sleeps.")
            assert {term.key: term.notes for term in await store.terms(ANN, first)}["kestrel"] == 2
            await scribe.erase(first)
            assert {term.key: term.notes for term in await store.terms(ANN, last)}["kestrel"] == 1
            key = Keys((await store.state(ANN)).secret).term("kestrel")
            for there in (1, 0):
                with store._connections.read() as sql:  # type: ignore[union-attr]
                    assert sql.execute("SELECT COUNT(*) FROM terms WHERE key = ?", (key,)).fetchone() == (there,)
                if there:
                    await scribe.erase(last)

    run(work())


def test_a_batch_writes_as_much_to_a_large_scope_as_to_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "STRETCH_BITS", 5)
    log, chance = tmp_path / "a.db-wal", random.Random(1)

    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            scribe = await StoreWriter(store).begin()
            written = []
            for _ in range(60):
                with store._connections.writer() as sql:  # type: ignore[union-attr]
                    assert sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
                await scribe.add(" ".join(f"word{chance.randrange(50_000)}" for _ in range(1_500)))
                written.append(log.stat().st_size)
            assert sum(written[-16:]) < 1.5 * sum(written[:16])

    run(work())


def test_who_opened_the_file_before_it_had_stretches_cannot_write_on(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            with pytest.raises(StoreError, match="no such table: postings"):
                await store._write(lambda sql: sql.execute("INSERT INTO postings VALUES (1, 1, 1, 1)"))

    run(work())


def test_words_are_kept_account_of_without_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as other, opened(tmp_path / "a.db") as store:
            scribe = await StoreWriter(other).begin()
            notes = [await scribe.add("The harbour.", vector=vector(1, number)) for number in range(5)]
            counted = await asked(store)
            assert not store._scopes.cached()
            monkeypatch.setattr(embedded_store, "MANY_WORDS", 3)
            assert [await asked(store) for _ in range(2)] == [counted] * 2
            assert not store._scopes.cached()  # of few notes they are soon counted
            monkeypatch.setattr(embedded_store, "MANY_NOTES", 5)
            assert await asked(store) == counted
            assert not store._scopes.cached()  # who asks once has them counted
            assert await asked(store) == counted
            assert store._scopes.cached() == [(ANN.key, UNEMBEDDED)]
            ((_, [held]),) = store._scopes._entries.values()
            assert isinstance(held, WriteIndex)
            assert held.dim == 0
            await scribe.add("The ferry in the harbour.", vector=vector(1, 7))
            await scribe.erase(notes[0])
            monkeypatch.setattr(embedded_store, "MANY_WORDS", 1_000)
            assert (await asked(store))[0] == {"harbour": 5, "ferri": 1, "nobodi": 0}
            await store.near(ANN, notes[1:], scribe.space, 3)
            assert store._scopes.cached() == [(ANN.key, scribe.space)]
            assert (await asked(store))[0] == {"harbour": 5, "ferri": 1, "nobodi": 0}

    run(work())
