"""The file of the embedded store: foreign files, layout versions, full disks and permissions."""

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


def test_paths_and_file_urls_open_an_embedded_store(tmp_path: Path) -> None:
    assert isinstance(open_store(tmp_path / "a.db"), EmbeddedStore)
    url = open_store((tmp_path / "with space.db").as_uri())
    assert isinstance(url, EmbeddedStore)
    assert url.path == str(tmp_path / "with space.db")
    for wrong in ("gopher://somewhere", "", "  ", "a\x00.db", "a\ud800.db"):
        with pytest.raises(InvalidInput):
            open_store(wrong)


def test_a_store_in_memory_leaves_no_file() -> None:
    async def work() -> Path:
        async with opened(":memory:") as store:
            writer = await StoreWriter(store).begin()
            await writer.add("It rains.")
            assert len(await store.notes(ANN, ["n_1"])) == 1
            return Path(store._folder.name)  # type: ignore[union-attr]

    assert not run(work()).exists()


@pytest.mark.parametrize("content", [b"", b"Dear diary", b"SQLite format 3\x00 but not really", b"\x00" * 5000])
def test_other_files_are_refused_and_unchanged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(content)
    if not content:  # an empty file becomes a store
        run(one_note(path))
        assert run(contents(path)) == ["Something to keep."]
        return
    with pytest.raises(NotAStore, match=r"a\.db"):
        run(one_note(path))
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["a.db"]


def test_a_database_of_another_program_is_refused_and_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE accounts (owner TEXT)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(NotAStore, match="another program"):
        run(one_note(path))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["other.db"]


def test_folders_and_missing_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotAStore, match="is a folder"):
        run(one_note(tmp_path))
    with pytest.raises(NotAStore, match="no folder"):
        run(one_note(tmp_path / "missing" / "a.db"))


@pytest.mark.skipif(os.name != "posix", reason="file names are limited differently on other systems")
def test_invalid_file_names_are_refused(tmp_path: Path) -> None:
    (tmp_path / "circle.db").symlink_to("circle.db")
    for name in ("circle.db", "x" * 300):
        with pytest.raises(NotAStore, match="cannot be read: "):
            run(one_note(tmp_path / name))


def test_a_newer_store_is_refused_and_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    run(one_note(path))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreTooNew, match="upgrade zettel"):
        run(one_note(path))
    assert path.read_bytes() == before


def test_an_older_store_is_migrated_or_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    original = path.read_bytes()
    path.write_bytes(original[:4096] + b"\xff" * (len(original) - 4096))
    with pytest.raises(StoreError, match=r"a\.db"):
        run(contents(path))


def test_a_closed_store_raises() -> None:
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


def test_a_full_disk_loses_no_stored_note(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path / "a.db") as store:
            writer = await StoreWriter(store).begin()
            await writer.add("Before the flood.")
            assert store._connections is not None
            with store._connections.writer() as sql:
                (pages,) = sql.execute("PRAGMA page_count").fetchone()
                sql.execute(f"PRAGMA max_page_count = {pages + 2}")
            with pytest.raises(StoreFull):
                await writer.add("water " * 20_000)
            assert list(await store.notes(ANN, ["n_1", "n_2"])) == ["n_1"]
            assert await store.check(repair=False) == []
            with store._connections.writer() as sql:
                sql.execute("PRAGMA max_page_count = 1073741823")
            await writer.add("After the flood.")
            assert (await store.counts(ANN))["notes"] == 2

    run(work())


def test_a_full_disk_only_delays_background_jobs(tmp_path: Path) -> None:
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


def test_a_deleted_file_is_not_created_again(tmp_path: Path) -> None:
    folder = tmp_path / "store"
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
        folder.touch()  # a file replaces the folder
        with pytest.raises(StoreError, match="deleted, moved or replaced"):
            memory.add("And this.")
    assert folder.read_bytes() == b""


def test_a_file_that_replaces_an_open_one_is_unchanged(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.db", tmp_path / "copy.db"
    with Memory(copy) as memory:
        memory.add_many({"content": f"Heron {n}."} for n in range(5))
        memory.flush()
    original = copy.read_bytes()
    with Memory(path) as memory:
        memory.add("A kestrel.")
        copy.replace(path)
        with ThreadPoolExecutor(8) as threads:
            for call in [threads.submit(memory.list) for _ in range(16)]:
                assert isinstance(call.exception(), StoreError)
        with pytest.raises(StoreError, match="deleted, moved or replaced"):
            memory.add("Another kestrel.")
    assert path.read_bytes() == original


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
            contents = list(threads.map(lambda _: memory.search("the vault")[0].note.content, range(16)))
        assert set(contents) == {"The code of the vault is aaaa."}


def test_a_store_created_concurrently_is_opened(tmp_path: Path) -> None:
    """The other process creates the store between two reads of an empty file."""
    path = str(tmp_path / "a.db")

    class Slow(sqlite3.Connection):
        def execute(self, statement: str, *args: Any) -> sqlite3.Cursor:  # type: ignore[override]
            if "sqlite_schema" in statement:
                with (
                    closing(sqlite3.connect(path, isolation_level=None, timeout=0.1)) as other,
                    suppress(sqlite3.OperationalError),  # locked during the read
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
run(one_note(":memory:"))  # imports all modules before the user loses access to them
os.setgid(65534); os.setuid(65534)
try:
    run(one_note(sys.argv[1]))
except StoreReadOnly as error:
    print("read-only:", error)
"""


def as_nobody(path: Path) -> str:
    process = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, str(path)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    return process.stdout + process.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_a_store_without_write_permission_is_read_only(tmp_path: Path) -> None:
    """Root may write everywhere, so another user's process opens the store."""
    if os.getuid() != 0:
        path = tmp_path / "a.db"
        run(one_note(path))
        path.chmod(0o444)
        with pytest.raises(StoreReadOnly):
            run(one_note(path))
        return
    with tempfile.TemporaryDirectory() as folder:  # other users cannot read pytest's folder
        path = Path(folder) / "a.db"
        run(one_note(path))
        os.chmod(folder, 0o777)
        path.chmod(0o444)
        before = path.read_bytes()
        for mode in (0o777, 0o555):  # a read-only file, then a read-only folder too
            os.chmod(folder, mode)
            assert as_nobody(path).startswith("read-only:")
        path.chmod(0o666)  # a read-only folder alone, which cannot contain SQLite's log
        assert as_nobody(path).startswith("read-only:")
        assert path.read_bytes() == before
        path.chmod(0o600)
        assert "cannot be read" in as_nobody(path)
