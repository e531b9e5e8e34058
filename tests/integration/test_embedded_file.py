"""The embedded store's file: whose it is, which layout it has, and what happens when it cannot be used."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.integration.embedded import ANN, StoreWriter, opened, run
from zettel import Memory
from zettel.errors import (
    FlushTimeout,
    InvalidInput,
    MemoryClosed,
    NotAStore,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
)
from zettel.graph import open_store
from zettel.graph.embedded import schema
from zettel.graph.embedded.store import EmbeddedStore
from zettel.ports import LookupQuery

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]


async def one_note(path: Path | str, content: str = "Something to keep.") -> None:
    async with opened(path) as store:
        await (await StoreWriter(store).begin()).add(content)


async def contents(path: Path | str) -> list[str]:
    async with opened(path) as store:
        return [event.content async for event, _ in store.dump(ANN)]


def test_addresses(tmp_path: Path) -> None:
    assert isinstance(open_store(tmp_path / "a.db"), EmbeddedStore)
    url = open_store((tmp_path / "with space.db").as_uri())
    assert isinstance(url, EmbeddedStore)
    assert url.path == str(tmp_path / "with space.db")
    for wrong in ("gopher://somewhere", "", "  ", "a\x00.db", "a\ud800.db"):
        with pytest.raises(InvalidInput):
            open_store(wrong)


def test_in_memory_leaves_nothing_behind() -> None:
    async def work() -> Path:
        async with opened(":memory:") as store:
            scribe = await StoreWriter(store).begin()
            await scribe.add("It rains.")
            assert len(await store.notes(ANN, ["n_1"])) == 1
            return Path(store._folder.name)  # type: ignore[union-attr]

    assert not run(work()).exists()


@pytest.mark.parametrize("content", [b"", b"Dear diary", b"SQLite format 3\x00 but not really", b"\x00" * 5000])
def test_any_other_file_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(content)
    if not content:  # an empty file is a place for a store
        run(one_note(path))
        assert run(contents(path)) == ["Something to keep."]
        return
    with pytest.raises(NotAStore, match=r"a\.db"):
        run(one_note(path))
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["a.db"]


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE accounts (owner TEXT)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(NotAStore, match="another program"):
        run(one_note(path))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["other.db"]


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(NotAStore, match="is a folder"):
        run(one_note(tmp_path))
    with pytest.raises(NotAStore, match="no folder"):
        run(one_note(tmp_path / "missing" / "a.db"))


@pytest.mark.skipif(os.name != "posix", reason="what stands in the way of a name is the system's")
def test_names_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "circle.db").symlink_to("circle.db")
    for name in ("circle.db", "x" * 300):
        with pytest.raises(NotAStore, match="cannot be read: "):
            run(one_note(tmp_path / name))


def test_a_newer_store_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    run(one_note(path))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreTooNew, match="upgrade zettel"):
        run(one_note(path))
    assert path.read_bytes() == before


def test_an_older_store_is_brought_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.db"
    run(one_note(path))
    steps = schema.migrations()
    moods = "ALTER TABLE scopes ADD COLUMN mood TEXT;\n"
    monkeypatch.setattr(schema, "migrations", lambda: [*steps, f"{moods}SELECT wrong"])
    with pytest.raises(StoreError, match="wrong"):
        run(one_note(path))
    monkeypatch.setattr(schema, "migrations", lambda: [*steps, f"-- Moods.\n{moods}"])
    assert run(contents(path)) == ["Something to keep."]
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(steps) + 1,)
    assert connection.execute("SELECT mood FROM scopes").fetchall() == [(None,)]
    connection.close()


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    run(one_note(path))
    kept = path.read_bytes()
    path.write_bytes(kept[:4096] + b"\xff" * (len(kept) - 4096))
    with pytest.raises(StoreError, match=r"a\.db"):
        run(contents(path))


def test_closed() -> None:
    async def work() -> None:
        store = EmbeddedStore(":memory:")
        with pytest.raises(MemoryClosed):
            await store.state(ANN)
        await store.open()
        await store.close()
        await store.close()
        with pytest.raises(MemoryClosed):
            await store.lookup(ANN, LookupQuery())

    run(work())


def test_a_full_disk_loses_nothing_that_was_there(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            scribe = await StoreWriter(store).begin()
            await scribe.add("Before the flood.")
            assert store._connections is not None
            with store._connections.writer() as writer:
                (pages,) = writer.execute("PRAGMA page_count").fetchone()
                writer.execute(f"PRAGMA max_page_count = {pages + 2}")
            with pytest.raises(StoreFull):
                await scribe.add("water " * 20_000)
            assert list(await store.notes(ANN, ["n_1", "n_2"])) == ["n_1"]
            assert await store.check(repair=False) == []
            with store._connections.writer() as writer:
                writer.execute("PRAGMA max_page_count = 1073741823")
            await scribe.add("After the flood.")
            assert (await store.counts(ANN))["notes"] == 2

    run(work())


def test_a_full_disk_only_delays_what_is_done_in_the_background(tmp_path: Path) -> None:
    with Memory(tmp_path / "a.db") as memory:
        memory.add("Kestrel the dog howls.")
        memory.flush()
        store = memory._bridge.inner._backend.memory.engine.store
        with store._connections.writer() as writer:
            (pages,) = writer.execute("PRAGMA page_count").fetchone()
            writer.execute(f"PRAGMA max_page_count = {pages + 12}")
        howls = (f"Kestrel the dog howls for the {n}th time, at the moon over the harbour." for n in range(200))
        with pytest.raises(StoreFull):
            all(map(memory.add, howls))
        with pytest.raises((StoreFull, FlushTimeout)):
            memory.flush(timeout=5)
        assert memory.jobs() != []
        with store._connections.writer() as writer:
            writer.execute("PRAGMA max_page_count = 1073741823")
        memory.flush(timeout=60)
        assert memory.jobs() == []
        assert memory.check() == []


def test_nothing_is_written_to_a_file_that_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    with Memory(folder / "a.db") as memory:
        memory.add("It would be lost.")
        for file in folder.iterdir():
            file.unlink()
        for call in (lambda: memory.add("This too."), memory.list, memory.flush):
            with pytest.raises(StoreError, match="deleted, moved or replaced"):
                call()
        assert not any(folder.iterdir())
        folder.rmdir()
        folder.touch()  # a file where its folder was
        with pytest.raises(StoreError, match="deleted, moved or replaced"):
            memory.add("And this.")
    assert folder.read_bytes() == b""


def test_a_file_put_in_the_place_of_an_open_one_is_left_as_it_is(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.db", tmp_path / "copy.db"
    with Memory(copy) as memory:
        memory.add_many({"content": f"Heron {n}."} for n in range(5))
        memory.flush()
    kept = copy.read_bytes()
    with Memory(path) as memory:
        memory.add("A kestrel.")
        copy.replace(path)
        with ThreadPoolExecutor(8) as threads:
            for reading in [threads.submit(memory.list) for _ in range(16)]:
                assert isinstance(reading.exception(), StoreError)
        with pytest.raises(StoreError, match="deleted, moved or replaced"):
            memory.add("Another kestrel.")
    assert path.read_bytes() == kept


def test_an_open_memory_stays_with_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        with Memory("a.db") as memory:
            memory.add(f"The code of the vault is {name * 4}.", wait=True)
    monkeypatch.chdir(tmp_path / "a")
    with Memory("a.db") as memory:
        monkeypatch.chdir(tmp_path / "b")
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda _: memory.search("the vault")[0].note.content, range(16)))
        assert set(found) == {"The code of the vault is aaaa."}


def test_a_store_that_another_process_makes_meanwhile_is_ours(tmp_path: Path) -> None:
    """Between two looks at a file that is empty so far."""
    path = str(tmp_path / "a.db")

    class Slow(sqlite3.Connection):
        def execute(self, statement: str, *args: Any) -> sqlite3.Cursor:  # type: ignore[override]
            if "sqlite_schema" in statement:
                with (
                    closing(sqlite3.connect(path, isolation_level=None, timeout=0.1)) as other,
                    suppress(sqlite3.OperationalError),  # locked, for we are looking
                ):
                    schema.migrate(other, path)
            return super().execute(statement, *args)

    with closing(sqlite3.connect(path, isolation_level=None, factory=Slow)) as connection:
        schema.migrate(connection, path)
        assert connection.execute("PRAGMA user_version").fetchone() == (len(schema.migrations()),)


_AS_NOBODY = """
import os, sys; sys.path.insert(0, ".")
from tests.integration.test_embedded_file import one_note, run
from zettel.errors import StoreReadOnly
run(one_note(":memory:"))  # imports everything while that is still allowed
os.setgid(65534); os.setuid(65534)
try:
    run(one_note(sys.argv[1]))
except StoreReadOnly as error:
    print("read-only:", error)
"""


def as_nobody(path: Path) -> str:
    told = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, str(path)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    return told.stdout + told.stderr


@pytest.mark.skipif(os.name != "posix", reason="permissions of this kind are POSIX's")
def test_permissions(tmp_path: Path) -> None:
    """In a process of a user who may not write, for the administrator may write everywhere."""
    if os.getuid() != 0:
        path = tmp_path / "a.db"
        run(one_note(path))
        path.chmod(0o444)
        with pytest.raises(StoreReadOnly):
            run(one_note(path))
        return
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is for its user alone
        path = Path(folder) / "a.db"
        run(one_note(path))
        os.chmod(folder, 0o777)
        path.chmod(0o444)
        before = path.read_bytes()
        for mode in (0o777, 0o555):  # the file forbids it, then the folder too
            os.chmod(folder, mode)
            assert as_nobody(path).startswith("read-only:")
        path.chmod(0o666)  # then the folder alone, where SQLite's log would have to be
        assert as_nobody(path).startswith("read-only:")
        assert path.read_bytes() == before
        path.chmod(0o600)
        assert "cannot be read" in as_nobody(path)
