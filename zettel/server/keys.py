"""Access keys of a server: the scopes that a key opens, its right, and the highest trust in what its holder writes.

A key is ``zk_ID_SECRET``. It is shown once, when it is created; a small SQLite file stores its hash. Each request looks
it up there in a few microseconds, so every server rejects a revoked key from the next request on.

The hash is a plain SHA-256 and not a slow password hash: nobody can guess a secret of 256 random bits, and every
request pays for the hash.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from zettel.core.arguments import share
from zettel.core.private_files import create_private
from zettel.errors import InvalidInput, StoreBusy, StoreError
from zettel.model import Scope
from zettel.remote.routes import Right

RIGHTS: tuple[Right, ...] = get_args(Right)

PREFIX = "zk_"
ID_BYTES, SECRET_BYTES = 6, 32
TAIL = 4
"""Characters at the end of a key that lists show."""
BUSY_SECONDS = 2.0
"""Wait for the lock of another process, which writes one row."""
MAX_NAME = 100
_FORM = re.compile(r"zk_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NO_HASH = bytes(32)
"""Compared for an unknown key, so that the lookup takes equally long."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY, hash BLOB NOT NULL, tail TEXT NOT NULL, name TEXT NOT NULL, rights TEXT NOT NULL,
    scopes TEXT, created TEXT NOT NULL, expires TEXT, revoked TEXT, trust REAL NOT NULL DEFAULT 1,
    reads TEXT NOT NULL DEFAULT '[]'
) STRICT
"""
_COLUMNS = "id, hash, tail, name, rights, scopes, created, expires, revoked, trust, reads"
_LATER = {"trust": "REAL NOT NULL DEFAULT 1", "reads": "TEXT NOT NULL DEFAULT '[]'"}
"""Columns that files of older versions lack."""


class Key(NamedTuple):
    """A key without its secret; ``scopes`` is None if it opens all scopes.

    ``trust`` (0 .. 1) is the highest trust in what its holder writes. ``reads`` are further scopes, which it opens for
    reading alone. ``*`` as a part of a scope is any value, so that ``Scope(tenant="acme", user="*")`` is every user's.
    """

    id: str
    name: str
    right: Right
    scopes: tuple[Scope, ...] | None
    tail: str
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None
    trust: float = 1.0
    reads: tuple[Scope, ...] = ()

    @property
    def principal(self) -> str:
        """The name under which stores record what its holder writes."""
        return f"key:{self.id}"

    def state(self, now: datetime) -> Literal["live", "expired", "revoked"]:
        """Return the state of the key at ``now``."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= now else "live"

    def may(self, right: Right) -> bool:
        """Return whether the key includes this right."""
        return RIGHTS.index(self.right) >= RIGHTS.index(right)


class Keys:
    """The keys in a file. Raises ``StoreError`` if it contains something else or cannot be read."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        if not create and not path.is_file():
            raise StoreError(f"the key file {path} does not exist: create a key with `zettel keys create`")
        if create:
            create_private(os.path.realpath(path))  # it contains hashes, but also the names of keys
        self.path = path
        self._file = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            if create:
                self._file.execute(_SCHEMA)
            columns = {name for _, name, *_ in self._file.execute("PRAGMA table_info(keys)")}
            for name in _LATER.keys() - columns if "hash" in columns else ():
                self._file.execute(f"ALTER TABLE keys ADD COLUMN {name} {_LATER[name]}")
            self._file.execute(f"SELECT {_COLUMNS} FROM keys LIMIT 1")
        except sqlite3.DatabaseError as error:
            self._file.close()
            raise StoreError(f"{path} is not a key file of a zettel server: {error}") from None

    def create(
        self,
        name: str,
        right: Right,
        scopes: Sequence[Scope] | None,
        expires: datetime | None = None,
        trust: float = 1.0,
        reads: Sequence[Scope] = (),
    ) -> tuple[Key, str]:
        """Create a key and return it with its text, which is not stored. Raises ``InvalidInput``."""
        if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
            raise InvalidInput(f"name={name!r}: the name of a key has 1 to {MAX_NAME} printable characters")
        if right not in RIGHTS:
            raise InvalidInput(f"rights={right!r}: use {', '.join(RIGHTS)}")
        if scopes is not None and not scopes:
            raise InvalidInput("a key needs at least one scope: name a scope, or all scopes")
        share("trust", trust)
        now = datetime.now(timezone.utc)
        if expires is not None and expires <= now:
            raise InvalidInput(f"expires={expires.isoformat()} is in the past: use a later time")
        id, secret = secrets.token_hex(ID_BYTES), secrets.token_urlsafe(SECRET_BYTES)
        text = f"{PREFIX}{id}_{secret}"
        ends = None if expires is None else expires.isoformat()
        row = (
            id, _hash(text), text[-TAIL:], name, right, None if scopes is None else _as_json(scopes), now.isoformat(),
            ends, None, float(trust), _as_json(reads),
        )  # fmt: skip
        with self._writing():
            if any(key.name == name and key.state(now) == "live" for key in self.all()):
                raise InvalidInput(f"a key {name!r} already exists: use another name, or revoke it first")
            self._file.execute(f"INSERT INTO keys ({_COLUMNS}) VALUES ({', '.join('?' * len(row))})", row)
        return _key(row), text

    def all(self) -> list[Key]:
        """Return all keys, revoked and expired ones included, oldest first."""
        return [_key(row) for row in self._file.execute(f"SELECT {_COLUMNS} FROM keys ORDER BY created, id")]

    def revoke(self, which: str) -> Key:
        """Revoke the key with this id, or all keys with this name, and return the last one. Raises ``InvalidInput``."""
        now = datetime.now(timezone.utc)
        keys = self.all()
        matches = [key for key in keys if key.id == which] or [key for key in keys if key.name == which]
        if not matches:
            raise InvalidInput(f"{self.path} does not contain a key {which!r}: `zettel keys list` shows all keys")
        live = [key for key in matches if key.state(now) != "revoked"]
        if not live:
            raise InvalidInput(f"the key {which!r} is already revoked")
        ids = [(now.isoformat(), key.id) for key in live]
        with self._writing():
            self._file.executemany("UPDATE keys SET revoked = ? WHERE id = ?", ids)
        return live[-1]._replace(revoked=now)

    def find(self, text: str) -> Key | None:
        """Return the live key with this text, or None. Raises ``StoreBusy``, and ``StoreError`` for a damaged file."""
        form = _FORM.fullmatch(text)
        row = None
        if form is not None:
            try:
                row = self._file.execute(f"SELECT {_COLUMNS} FROM keys WHERE id = ?", (form[1],)).fetchone()
            except sqlite3.OperationalError as error:
                raise StoreBusy(f"the key file is locked: {error}; try again") from None
            except sqlite3.DatabaseError as error:
                raise StoreError(f"the key file {self.path} is damaged: {error}") from None
        if not hmac.compare_digest(_NO_HASH if row is None else row[1], _hash(text)) or row is None:
            return None
        key = _key(row)
        return key if key.state(datetime.now(timezone.utc)) == "live" else None

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Run the block in one transaction, which an error rolls back."""
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._file.execute("ROLLBACK")
            raise
        self._file.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


@lru_cache(maxsize=1024)
def _key(row: tuple[object, ...]) -> Key:
    id, _, tail, name, right, scopes, created, expires, revoked, trust, reads = row
    bound = None if scopes is None else _from_json(str(scopes))
    return Key(
        str(id), str(name), RIGHTS[RIGHTS.index(right)], bound, str(tail), _moment(created),
        None if expires is None else _moment(expires), None if revoked is None else _moment(revoked),
        float(str(trust)), _from_json(str(reads)),
    )  # fmt: skip


def _as_json(scopes: Sequence[Scope]) -> str:
    return json.dumps([scope.model_dump() for scope in dict.fromkeys(scopes)])


def _from_json(text: str) -> tuple[Scope, ...]:
    return tuple(Scope.model_validate(scope) for scope in json.loads(text))


def _moment(text: object) -> datetime:
    return datetime.fromisoformat(str(text))


def keys_file(store: str) -> Path:
    """Return the default key file of a store: beside its file, or in the user's config folder for a database server."""
    if "://" not in store:
        return Path(f"{store}.keys")
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    name = re.sub(r"[^A-Za-z0-9.]+", "-", store.partition("://")[2].rpartition("@")[2]).strip("-")
    return Path(base) / "zettel" / f"{name}.keys"
