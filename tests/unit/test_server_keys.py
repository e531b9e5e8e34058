"""API keys of a server: their scopes, and the contents of their file."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from zettel import Scope
from zettel.errors import InvalidInput, PermissionDenied, StoreError
from zettel.remote.routes import Right
from zettel.server.access import scope_of
from zettel.server.keys import RIGHTS, Key, Keys, keys_file

ANN, BOB = Scope(user="ann"), Scope(user="bob")


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[Keys]:
    made = Keys(tmp_path / "a.keys", create=True)
    yield made
    made.close()


def test_a_key_is_found_by_its_text_alone(keys: Keys) -> None:
    key, text = keys.create("laptop", "write", [ANN, BOB, ANN])
    assert keys.find(text) == key
    assert (key.scopes, key.right, key.tail) == ((ANN, BOB), "write", text[-4:])
    other = keys.create("phone", "read", None)[1]
    mixed = other[:16] + text[16:]  # the id of one key with the secret of the other
    for wrong in (mixed, text[:-1], text + "A", text.lower(), "", "zk_", key.id, "zk_\ud800", text + "\n"):
        assert keys.find(wrong) is None


def test_the_key_file_contains_no_secrets_and_is_private(keys: Keys) -> None:
    _, text = keys.create("laptop", "admin", None)
    file_bytes = keys.path.read_bytes()
    assert text.encode() not in file_bytes
    assert text.split("_", 2)[2].encode()[:20] not in file_bytes
    if os.name == "posix":
        assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600


def test_a_revoked_key_fails_at_once_in_open_files(keys: Keys) -> None:
    key, text = keys.create("laptop", "read", [ANN])
    serving = Keys(keys.path)
    assert serving.find(text) == key
    assert keys.revoke("laptop").id == key.id
    assert serving.find(text) is None
    assert serving.all()[0].state(datetime.now(timezone.utc)) == "revoked"
    serving.close()
    with pytest.raises(InvalidInput, match="already revoked"):
        keys.revoke(key.id)
    with pytest.raises(InvalidInput, match="does not contain a key 'nix'"):
        keys.revoke("nix")
    assert keys.create("laptop", "read", [ANN])[0].id != key.id, "a name is free again"


def test_revoking_prefers_an_id_and_a_name_means_all_its_keys(keys: Keys) -> None:
    key, text = keys.create("laptop", "read", [ANN])
    _, other = keys.create(key.id, "read", [BOB])
    assert keys.revoke(key.id).name == "laptop"
    assert keys.find(text) is None
    assert keys.find(other) is not None
    soon = datetime.now(timezone.utc) + timedelta(seconds=0.02)
    keys.create("phone", "read", [ANN], soon)
    time.sleep(0.03)
    keys.create("phone", "read", [ANN])
    keys.revoke("phone")
    assert {entry.name for entry in keys.all() if entry.revoked is None} == {key.id}


def test_names_are_unique_under_concurrent_creation(keys: Keys) -> None:
    ready, made, refused = threading.Barrier(4), [], []

    def make() -> None:
        mine = Keys(keys.path)
        ready.wait()
        try:
            made.append(mine.create("laptop", "read", [ANN])[0].id)
        except InvalidInput as error:
            refused.append(str(error))
        mine.close()

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(refused)) == (1, 3)
    assert [key.id for key in keys.all()] == made


def test_a_file_damaged_after_opening_raises(keys: Keys) -> None:
    text = keys.create("laptop", "read", [ANN])[1]
    size = keys.path.stat().st_size
    keys.path.write_bytes(b"x" * size)
    with pytest.raises(StoreError, match=r"the key file .* is damaged"):
        keys.find(text)


def test_keys_expire(keys: Keys) -> None:
    now = datetime.now(timezone.utc)
    key, text = keys.create("week", "read", [ANN], now + timedelta(days=7))
    assert keys.find(text) == key
    assert key.state(now + timedelta(days=7)) == "expired"
    with pytest.raises(InvalidInput, match="is in the past"):
        keys.create("past", "read", [ANN], now)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 101])
def test_invalid_names_raise(keys: Keys, name: str) -> None:
    with pytest.raises(InvalidInput, match="printable characters"):
        keys.create(name, "read", [ANN])


def test_invalid_keys_are_not_found(keys: Keys) -> None:
    keys.create("laptop", "read", [ANN])
    with pytest.raises(InvalidInput, match="already"):
        keys.create("laptop", "read", [ANN])
    with pytest.raises(InvalidInput, match="use read, write, admin"):
        keys.create("x", "root", [ANN])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="at least one scope"):
        keys.create("x", "read", [])


def test_invalid_key_files_raise(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="keys create"):
        Keys(tmp_path / "none")
    (tmp_path / "text").write_text("not a database, whatever it is called")
    with pytest.raises(StoreError, match="is not a key file"):
        Keys(tmp_path / "text", create=True)


def test_the_key_file_has_a_default_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert keys_file("memories/a.db") == Path("memories/a.db.keys")
    assert keys_file("neo4j://ann:secret@db.example:7687/x") == tmp_path / "zettel" / "db.example-7687-x.keys"


@pytest.mark.parametrize("right", RIGHTS)
def test_rights_include_lower_rights(right: Right) -> None:
    key = a_key([ANN], right)
    assert [key.may(other) for other in RIGHTS] == [RIGHTS.index(other) <= RIGHTS.index(right) for other in RIGHTS]


def test_scope_patterns_are_matched() -> None:
    assert scope_of(None, None) is None
    assert scope_of(None, BOB) == BOB
    assert scope_of(a_key(None), None) is None
    assert scope_of(a_key([ANN]), None) == ANN
    assert scope_of(a_key([ANN, BOB]), BOB) == BOB
    with pytest.raises(InvalidInput, match="name one"):
        scope_of(a_key([ANN, BOB]), None)
    for other in (Scope(), Scope(tenant="t", user="ann"), Scope(user="ann", agent="a"), Scope(user="Ann")):
        with pytest.raises(PermissionDenied, match="does not open"):
            scope_of(a_key([ANN]), other)


def a_key(scopes: list[Scope] | None, right: Right = "read") -> Key:
    opened = None if scopes is None else tuple(scopes)
    return Key("0" * 12, "a", right, opened, "tail", datetime.now(timezone.utc))


def test_a_key_has_a_trust(keys: Keys) -> None:
    full, low = keys.create("laptop", "write", [ANN])[0], keys.create("form", "write", [ANN], trust=0.5)[0]
    assert [(key.trust, key.principal) for key in (full, low)] == [(1.0, f"key:{full.id}"), (0.5, f"key:{low.id}")]
    assert {key.name: key.trust for key in keys.all()} == {"laptop": 1.0, "form": 0.5}
    with pytest.raises(InvalidInput, match="trust"):
        keys.create("odd", "write", [ANN], trust=2)


def test_keys_of_an_older_file_have_full_trust(keys: Keys) -> None:
    key, text = keys.create("laptop", "write", [ANN])
    with sqlite3.connect(keys.path) as file:
        file.execute("ALTER TABLE keys DROP COLUMN trust")
    file.close()
    older = Keys(keys.path)
    assert older.find(text) == key
    older.close()
