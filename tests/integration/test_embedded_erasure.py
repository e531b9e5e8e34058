"""After a delete and a purge, no file of the embedded store contains deleted text."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.embedded import ANN, StoreWriter, a_job, opened, run, vector
from zettel import Memory
from zettel.model import LinkType, Scope
from zettel.ports.operations import PutJob
from zettel.text.tokens import tokenize

pytestmark = pytest.mark.integration
LETTERS = "bdfgklmnprstvz"
SCRIPTS = ["aeiou", "äöüéñ", "аеиоу", "東西南北人"]


def unique_word(chosen: random.Random) -> str:
    """Return a word that occurs nowhere else."""
    vowels = chosen.choice(SCRIPTS)
    return "".join(chosen.choice(LETTERS).upper() + chosen.choice(vowels) for _ in range(6))


def traces(word: str) -> set[bytes]:
    """Return the byte forms of a word in files: plain, folded, stemmed, escaped and in other encodings."""
    forms = {word, word.lower(), word.casefold(), *tokenize(word)}
    forms = {form for form in forms if len(form) > 3}
    return {
        trace
        for form in forms
        for trace in (
            form.encode(),
            json.dumps(form).strip('"').encode(),
            form.encode("utf-16-le"),
            form.encode("unicode_escape"),
        )
    }


def files_containing(folder: Path, words: set[str]) -> dict[str, list[str]]:
    """Return the files that contain each word."""
    files = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    hits: dict[str, list[str]] = {}
    for word in words:
        names = [name for name, content in files.items() if any(trace in content for trace in traces(word))]
        if names:
            hits[word] = names
    return hits


def test_the_cost_of_a_delete_is_independent_of_waiting_jobs(tmp_path: Path) -> None:
    async def steps(waiting: int) -> int:
        """Return the thousands of SQLite steps to erase 20 notes."""
        async with opened(tmp_path / f"{waiting}.db", fast_writes=True) as store:
            writer = await StoreWriter(store).begin()
            ids = [await writer.add(f"Heron number {number}.", job=True) for number in range(20)]
            await writer.do(*(PutJob(a_job(f"j_other_{n}", note=f"n_other_{n}")) for n in range(waiting)))
            counted: list[None] = []
            assert store._connections is not None
            with store._connections.writer() as sql:
                sql.set_progress_handler(lambda: counted.append(None), 1000)
            await writer.erase(*ids)
            assert len(await store.jobs(ANN)) == waiting
            return len(counted)

    assert run(steps(5_000)) < run(steps(0)) + 20


def test_the_cost_of_finding_events_is_independent_of_the_scope(tmp_path: Path) -> None:
    async def steps(others: int) -> int:
        """Return the tens of SQLite steps to find one session, and the versions of one event."""
        async with opened(tmp_path / f"{others}.db", fast_writes=True) as store:
            writer = await StoreWriter(store).begin()
            for number in range(others):
                await writer.add(f"Heron number {number}.")
            event = (await writer.add("The last heron.", session="late")).replace("n_", "e_")
            counted: list[None] = []
            assert store._connections is not None
            with store._connections.read() as sql:
                sql.set_progress_handler(lambda: counted.append(None), 10)
            assert await store.events_from(ANN, None, "late", 10) == (event,)
            assert await store.events_like(ANN, [event]) == (event,)
            return len(counted)

    assert run(steps(300)) < run(steps(0)) + 20


def test_the_purge_of_a_dropped_scope_is_completed_by_another_process(tmp_path: Path) -> None:
    """The pending purge survives the deletion of the scope's jobs, a reader, and the end of a process."""
    chosen = random.Random(3)
    word, path = unique_word(chosen), tmp_path / "memory.db"
    with Memory(path) as other_memory, Memory(path) as memory:
        other_memory.add("Somebody else's.", scope=Scope(user="other"))
        memory.add_many([{"content": f"Crate {n} goes to {word}."} for n in range(400)], wait=True)
        with other_memory._bridge.inner._backend.memory.engine.store._connections.read() as reader:
            reader.execute("SELECT COUNT(*) FROM notes").fetchone()
            assert memory.delete_scope() == 400
            memory.close()
            assert files_containing(tmp_path, {word}) != {}
        other_memory.flush(timeout=60)
        assert files_containing(tmp_path, {word}) == {}


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_random_deletes_leave_no_trace(
    tmp_path: Path, soak_scale: Callable[[int], int], record_property: Callable[[str, object], None]
) -> None:
    chosen = random.Random(5)

    async def work() -> None:
        stores = soak_scale(40)
        turns = 250 if stores > 2 else 60
        for _ in range(stores):
            folder = tmp_path / str(chosen.random())
            folder.mkdir()
            async with opened(folder / "a.db", fast_writes=True) as store:
                writer = await StoreWriter(store).begin()
                words: dict[str, set[str]] = {}
                deleted_words: set[str] = set()
                for turn in range(turns):
                    event_words = [unique_word(chosen) for _ in range(6)]
                    id = await writer.add(
                        f"{event_words[0]} and {event_words[1]} met {event_words[2]}. "
                        + "Filling of many lengths. " * chosen.randrange(40),
                        title=event_words[3] if chosen.random() < 0.5 else None,
                        tags=(event_words[4],),
                        metadata={"who": event_words[5]},
                        source=f"{event_words[0]}.txt",
                        vector=vector(*[chosen.random() for _ in range(8)]),
                        session="s",
                        job=True,
                    )
                    words[id] = set(event_words)
                    if chosen.random() < 0.3:
                        changed = unique_word(chosen)
                        other = chosen.choice(sorted(words))
                        await writer.change(id, content=f"{changed} after all.")
                        words[id].add(changed)
                        if other != id:
                            await writer.change(id, links=[(other, LinkType.RELATES)])
                    if turn > 0.4 * turns and chosen.random() < 0.6:
                        deleted_id = chosen.choice(sorted(words))
                        await writer.erase(deleted_id)
                        deleted_words |= words.pop(deleted_id)
                assert deleted_words
                remaining_count = len(files_containing(folder, deleted_words))
                assert await store.purge()
                assert files_containing(folder, deleted_words) == {}
                expected = {word for event_words in words.values() for word in event_words}
                assert (
                    len(files_containing(folder, expected)) > len(expected) // 2
                )  # the search finds words that are present
                assert await store.check(repair=False) == []
                record_property("words_left_before_purging", remaining_count)
            assert files_containing(folder, deleted_words) == {}

    run(work())


def test_a_purge_waits_for_readers(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store, opened(tmp_path / "a.db") as other:
            writer = await StoreWriter(store).begin()
            id = await writer.add("The password is Quetzalcoatl.")
            assert other._connections is not None
            with other._connections.read() as sql:
                assert sql.execute("SELECT COUNT(*) FROM notes").fetchone() == (1,)
                await writer.erase(id)
                assert not await store.purge()
                await writer.add("Life goes on.")
            assert await store.purge()
            assert files_containing(tmp_path, {"Quetzalcoatl"}) == {}

    run(work())


def test_a_dropped_scope_leaves_no_trace(tmp_path: Path) -> None:
    async def work() -> None:
        bob = Scope(user="Bobolinksson")
        async with opened(tmp_path / "a.db") as store:
            ann, other = await StoreWriter(store).begin(), await StoreWriter(store, bob, first=50).begin()
            expected = await ann.add("Ann stays.")
            first = await other.add("Bob knows Popocatepetl.", session="Iztaccihuatl", title="Tenochtitlan", job=True)
            second = await other.add("Bob forgot it.", identity="Huitzilopochtli")
            await other.change(second, content="Bob remembers Chapultepec.", links=[(first, LinkType.RELATES)])
            await other.erase(first)
            secret = (await store.state(bob)).secret
            assert await store.drop_scope(bob) == 1
            assert await store.purge()
            deleted_words = {
                "Popocatepetl",
                "Iztaccihuatl",
                "Tenochtitlan",
                "Chapultepec",
                "Bobolinksson",
                "Huitzilopochtli",
            }
            assert files_containing(tmp_path, deleted_words) == {}
            assert secret not in (tmp_path / "a.db").read_bytes()
            assert await store.scopes() == [ANN]
            assert list(await store.notes(ANN, [expected])) == [expected]
            state = await store.state(bob)
            assert state.seq == 0
            assert state.secret != secret
            assert await store.drop_scope(bob) == 0
            assert await store.check(repair=False) == []
            assert await store.jobs(None) == []

    run(work())
