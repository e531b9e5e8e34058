"""Encrypted files: nothing readable in them, wrong keys, copies with and without a key, and interruptions."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import Zettel
from zettel import Memory
from zettel.errors import InvalidInput, MissingExtra, NotAStore, StoreDenied
from zettel.graph.embedded.encryption import copy_store

pytestmark = pytest.mark.integration
pytest.importorskip("sqlcipher3")

KEY = "a key with 'quotes' and ø"
WORD = b"Kestrelwood"
TEXT = f"The safe of {WORD.decode()} is green."


def filled(path: Path, key: str | None) -> list[str]:
    """Write a small memory, and return the texts of its notes."""
    with Memory(path, key=key) as memory:
        memory.add_many([{"content": TEXT}, {"content": "Ann has moved to Bergen.", "speaker": "Ann"}])
        memory.flush()
        memory.delete(memory.add("It was a mistake."))
        return contents(memory)


def contents(memory: Memory) -> list[str]:
    return [note.content for note in memory.list().notes]


def bytes_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file())


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store" / "a.db"


def test_an_encrypted_file_contains_nothing_readable(store: Path) -> None:
    with Memory(store, key=KEY) as memory:
        memory.add(TEXT)
        memory.search(TEXT)
        memory.flush()
        assert WORD not in bytes_of(store.parent)  # with the write-ahead log
        assert memory.check() == []
    everything = bytes_of(store.parent)
    assert WORD not in everything
    assert b"SQLite format" not in everything
    assert b"CREATE TABLE" not in everything
    with Memory(store, key=KEY) as memory:
        assert memory.search("What is green?")[0].note.content == TEXT


def test_it_answers_as_a_plain_file(store: Path) -> None:
    assert filled(store, KEY) == filled(store.with_name("plain.db"), None)


def test_the_environment_has_the_key(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZETTEL_STORE_KEY", KEY)
    filled(store, None)
    monkeypatch.delenv("ZETTEL_STORE_KEY")
    assert WORD not in bytes_of(store.parent)
    with Memory(store, key=KEY) as memory:
        assert TEXT in contents(memory)


@pytest.mark.parametrize("key", ["wrong", KEY[:-1], KEY + " "])
def test_a_wrong_key_is_one_clear_error(store: Path, key: str, capfd: pytest.CaptureFixture[str]) -> None:
    filled(store, KEY)
    before = store.read_bytes()
    with pytest.raises(StoreDenied) as refused:
        Memory(store, key=key)
    assert str(refused.value).startswith(f"{store}: the key does not open this file")
    assert key not in str(refused.value).replace(str(store), "")
    assert store.read_bytes() == before
    assert capfd.readouterr().err == ""


def test_an_encrypted_file_without_its_key(store: Path) -> None:
    filled(store, KEY)
    with pytest.raises(NotAStore, match="needs its key: ZETTEL_STORE_KEY"):
        Memory(store)


def test_a_key_for_a_plain_file(store: Path) -> None:
    filled(store, None)
    before = store.read_bytes()
    with pytest.raises(StoreDenied, match="is not encrypted: open it without a key"):
        Memory(store, key=KEY)
    assert store.read_bytes() == before


@pytest.mark.parametrize("key", ["", "a\0b", 7])
def test_unusable_keys_are_refused(store: Path, key: Any) -> None:
    with pytest.raises(InvalidInput, match="the key of a store must be a text"):
        Memory(store, key=key)
    assert not store.exists()


def test_a_key_is_not_for_other_stores() -> None:
    with pytest.raises(InvalidInput, match="key= encrypts a file"):
        Memory("bolt://localhost:1", key=KEY)


def test_without_the_package_the_error_names_the_extra(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlcipher3", None)
    with pytest.raises(MissingExtra, match=r'pip install "zettel-graph\[encryption\]"'):
        Memory(store, key=KEY)
    assert not store.exists()


def test_settings_do_not_show_the_key(store: Path) -> None:
    with Memory(store, key=KEY) as memory:
        assert KEY not in repr(memory._memory._backend.memory.settings)  # type: ignore[attr-defined]


class TestCopies:
    def test_there_and_back(self, store: Path, zettel: Zettel, monkeypatch: pytest.MonkeyPatch) -> None:
        texts = filled(store, None)
        before = store.read_bytes()
        secret, plain = store.with_name("secret.db"), store.with_name("plain.db")
        monkeypatch.setenv("ZETTEL_STORE_KEY", KEY)
        done = zettel("encrypt", str(secret), "--store", str(store))
        assert (done.status, done.out) == (0, "")
        assert store.read_bytes() == before
        assert WORD not in secret.read_bytes()
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        with Memory(secret) as memory:
            assert contents(memory) == texts
            assert memory.check() == []
        assert zettel("decrypt", str(plain), "--store", str(secret)).status == 0
        monkeypatch.delenv("ZETTEL_STORE_KEY")
        with Memory(plain) as memory:
            assert contents(memory) == texts
            assert memory.check() == []
        assert {file.name for file in store.parent.iterdir()} == {"a.db", "secret.db", "plain.db"}

    def test_copies_of_an_open_store_have_one_state(self, store: Path) -> None:
        with Memory(store, key=KEY) as memory:
            memory.add(TEXT)  # in the log, not yet in the file
            copy_store(store, store.with_name("copy.db"), KEY, None)
        with Memory(store.with_name("copy.db")) as memory:
            assert contents(memory) == [TEXT]

    def test_a_wrong_key_makes_no_copy(self, store: Path) -> None:
        filled(store, KEY)
        with pytest.raises(StoreDenied, match="the key does not open"):
            copy_store(store, store.with_name("copy.db"), "wrong", None)
        assert [file.name for file in store.parent.iterdir()] == ["a.db"]

    @pytest.mark.parametrize(
        ("arguments", "status", "error"),
        [
            (("encrypt", "a.db", "--store", "a.db"), 2, "a.db exists already: name a new file"),
            (("encrypt", "new.db", "--store", "missing.db"), 1, "the store missing.db does not exist"),
            (("encrypt", "new.db", "--store", "neo4j://h"), 2, "neo4j://h is not a file: only files can"),
            (("encrypt", "new.db", "--store", "prose.md"), 1, "prose.md is not a zettel store"),
            (("decrypt", "new.db", "--store", "a.db"), 1, "a.db is not encrypted"),
        ],
    )
    def test_mistakes(
        self, arguments: tuple[str, ...], status: int, error: str, zettel: Zettel, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        filled(tmp_path / "a.db", None)
        (tmp_path / "prose.md").write_text("prose " * 100)
        monkeypatch.setenv("ZETTEL_STORE_KEY", KEY)
        done = zettel(*arguments)
        assert done.status == status
        assert done.err.startswith(f"zettel: {error}")
        assert not (tmp_path / "new.db").exists()

    def test_the_key_is_required_and_never_an_option(self, zettel: Zettel, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("ZETTEL_STORE_KEY", raising=False)
        done = zettel("encrypt", "new.db")
        assert (done.status, done.err) == (
            2, "zettel: set the key in the variable ZETTEL_STORE_KEY: other users of the machine can see options\n",
        )  # fmt: skip

    @pytest.mark.parametrize("moment", ["export", "check", "publish"])
    def test_a_killed_copy_leaves_the_store_and_no_target(self, store: Path, moment: str) -> None:
        texts = filled(store, None)
        before = store.read_bytes()
        target = store.with_name("secret.db")
        child = (
            "import os, signal, sys\n"
            "from pathlib import Path\n"
            "import zettel.graph.embedded.encryption as e\n"
            "die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
            "if sys.argv[3] == 'publish': e._publish = die\n"
            "unlock, calls = e.unlock, []\n"
            "def at(connection, key):\n"
            "    calls.append(1)\n"
            "    if sys.argv[3] == 'check' and len(calls) == 2: die()\n"
            "    unlock(connection, key)\n"
            "    if sys.argv[3] == 'export': connection.set_progress_handler(die, 100)\n"
            "e.unlock = at\n"
            "e.copy_store(Path(sys.argv[1]), Path(sys.argv[2]), None, 'k')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", child, str(store), str(target), moment], check=False, capture_output=True,
            cwd=Path(__file__).parents[2], env=os.environ,
        )  # fmt: skip
        assert done.returncode == -9, done.stderr
        assert not target.exists()
        assert store.read_bytes() == before
        copy_store(store, target, None, "k")
        with Memory(target, key="k") as memory:
            assert contents(memory) == texts


def test_a_deleted_text_leaves_the_plain_pages_too(store: Path, tmp_path: Path) -> None:
    with Memory(store, key=KEY) as memory:
        memory.delete(memory.add(TEXT))
        memory.flush()
    copy_store(store, tmp_path / "plain.db", KEY, None)
    assert WORD not in (tmp_path / "plain.db").read_bytes()


def test_sqlite_cannot_read_the_file(store: Path) -> None:
    filled(store, KEY)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        sqlite3.connect(store).execute("SELECT * FROM sqlite_schema")


def test_worker_processes_get_the_key_and_the_privacy(store: Path) -> None:
    with Memory(store, key=KEY, privacy="redact", runner="process") as memory:
        memory.add_many([{"content": TEXT}, {"content": "The PIN is 4711."}])
        memory.flush()
        assert memory.stats()["failed"] == 0
        assert "[redacted PIN]" in str(contents(memory))
    assert WORD not in bytes_of(store.parent)
