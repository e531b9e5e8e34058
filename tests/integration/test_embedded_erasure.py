"""After a delete and a purge, nothing of what was deleted stands in any file of the embedded store."""

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


def a_word(chosen: random.Random) -> str:
    """A word that stands nowhere else."""
    vowels = chosen.choice(SCRIPTS)
    return "".join(chosen.choice(LETTERS).upper() + chosen.choice(vowels) for _ in range(6))


def traces(word: str) -> set[bytes]:
    """The word as it may stand in a file: as it is, folded, stemmed, escaped, in other encodings."""
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


def found_in(folder: Path, words: set[str]) -> dict[str, list[str]]:
    """Which of the words stand in which files."""
    files = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    hits: dict[str, list[str]] = {}
    for word in words:
        names = [name for name, content in files.items() if any(trace in content for trace in traces(word))]
        if names:
            hits[word] = names
    return hits


def test_what_a_delete_takes_does_not_grow_with_the_jobs_that_wait(tmp_path: Path) -> None:
    async def steps(waiting: int) -> int:
        """What SQLite does, counted in thousands of steps, to erase 20 notes."""
        async with opened(tmp_path / f"{waiting}.db", hasty=True) as store:
            scribe = await StoreWriter(store).begin()
            ids = [await scribe.add(f"Heron number {number}.", job=True) for number in range(20)]
            await scribe.do(*(PutJob(a_job(f"j_other_{n}", note=f"n_other_{n}")) for n in range(waiting)))
            counted: list[None] = []
            assert store._connections is not None
            with store._connections.writer() as writer:
                writer.set_progress_handler(lambda: counted.append(None), 1000)
            await scribe.erase(*ids)
            assert len(await store.jobs(ANN)) == waiting
            return len(counted)

    assert run(steps(5_000)) < run(steps(0)) + 20


def test_a_dropped_scope_is_wiped_by_whoever_comes_next(tmp_path: Path) -> None:
    """The scope takes its jobs with it; what is left to do must survive that, a reader, and the end of a process."""
    chosen = random.Random(3)
    word, path = a_word(chosen), tmp_path / "memory.db"
    with Memory(path) as other, Memory(path) as memory:
        other.add("Somebody else's.", scope=Scope(user="other"))
        memory.add_many([{"content": f"Crate {n} goes to {word}."} for n in range(400)], wait=True)
        with other._bridge.inner._backend.memory.engine.store._connections.read() as reader:
            reader.execute("SELECT COUNT(*) FROM notes").fetchone()
            assert memory.delete_scope() == 400
            memory.close()
            assert found_in(tmp_path, {word}) != {}
        other.flush(timeout=60)
        assert found_in(tmp_path, {word}) == {}


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
            async with opened(folder / "a.db", hasty=True) as store:
                scribe = await StoreWriter(store).begin()
                words: dict[str, set[str]] = {}
                gone: set[str] = set()
                for turn in range(turns):
                    own = [a_word(chosen) for _ in range(6)]
                    id = await scribe.add(
                        f"{own[0]} and {own[1]} met {own[2]}. " + "Filling of many lengths. " * chosen.randrange(40),
                        title=own[3] if chosen.random() < 0.5 else None,
                        tags=(own[4],),
                        metadata={"who": own[5]},
                        source=f"{own[0]}.txt",
                        vector=vector(*[chosen.random() for _ in range(8)]),
                        session="s",
                        job=True,
                    )
                    words[id] = set(own)
                    if chosen.random() < 0.3:
                        changed = a_word(chosen)
                        other = chosen.choice(sorted(words))
                        await scribe.change(id, content=f"{changed} after all.")
                        words[id].add(changed)
                        if other != id:
                            await scribe.change(id, links=[(other, LinkType.RELATES)])
                    if turn > 0.4 * turns and chosen.random() < 0.6:
                        doomed = chosen.choice(sorted(words))
                        await scribe.erase(doomed)
                        gone |= words.pop(doomed)
                assert gone
                left_by_secure_delete = len(found_in(folder, gone))
                assert await store.purge()
                assert found_in(folder, gone) == {}
                kept = {word for own in words.values() for word in own}
                assert len(found_in(folder, kept)) > len(kept) // 2  # the search does find what is there
                assert await store.check(repair=False) == []
                record_property("words_left_before_purging", left_by_secure_delete)
            assert found_in(folder, gone) == {}

    run(work())


def test_what_others_still_read_is_purged_later(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store, opened(tmp_path / "a.db") as other:
            scribe = await StoreWriter(store).begin()
            id = await scribe.add("The password is Quetzalcoatl.")
            assert other._connections is not None
            with other._connections.read() as sql:
                assert sql.execute("SELECT COUNT(*) FROM notes").fetchone() == (1,)
                await scribe.erase(id)
                assert not await store.purge()
                await scribe.add("Life goes on.")
            assert await store.purge()
            assert found_in(tmp_path, {"Quetzalcoatl"}) == {}

    run(work())


def test_a_dropped_scope_leaves_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        bob = Scope(user="Bobolinksson")
        async with opened(tmp_path / "a.db") as store:
            ann, other = await StoreWriter(store).begin(), await StoreWriter(store, bob, first=50).begin()
            kept = await ann.add("Ann stays.")
            first = await other.add("Bob knows Popocatepetl.", session="Iztaccihuatl", title="Tenochtitlan", job=True)
            second = await other.add("Bob forgot it.", identity="Huitzilopochtli")
            await other.change(second, content="Bob remembers Chapultepec.", links=[(first, LinkType.RELATES)])
            await other.erase(first)
            secret = (await store.state(bob)).secret
            assert await store.drop_scope(bob) == 1
            assert await store.purge()
            told = {"Popocatepetl", "Iztaccihuatl", "Tenochtitlan", "Chapultepec", "Bobolinksson", "Huitzilopochtli"}
            assert found_in(tmp_path, told) == {}
            assert secret not in (tmp_path / "a.db").read_bytes()
            assert await store.scopes() == [ANN]
            assert list(await store.notes(ANN, [kept])) == [kept]
            state = await store.state(bob)
            assert state.seq == 0
            assert state.secret != secret
            assert await store.drop_scope(bob) == 0
            assert await store.check(repair=False) == []
            assert await store.jobs(None) == []

    run(work())
