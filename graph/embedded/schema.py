"""Ownership check and schema migrations of the file."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from zettel.errors import NotAStore, StoreDenied, StoreReadOnly, StoreTooNew

APPLICATION_ID = int.from_bytes(b"ZETL", "big")
"""Identifies our files in SQLite's header."""

_MAGIC = b"SQLite format 3\x00"
_HEADER = 100
"""Bytes of SQLite's file header; the application's id is the four at 68 (sqlite.org/fileformat.html)."""


def migrations() -> list[str]:
    """Return the SQL of every migration in order; the first creates layout 1."""
    folder = files(__package__) / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(folder / name).read_text(encoding="utf-8") for name in names]


def require_ours(path: Path, encrypted: bool = False) -> None:
    """Check a file before SQLite opens it, because SQLite may write to it.

    A missing or empty file passes: it becomes a store. Of an ``encrypted`` file it only checks that it is not one of
    plain SQLite. Raises ``NotAStore``, ``StoreReadOnly``, ``StoreDenied``.
    """
    try:
        if path.is_dir():
            raise NotAStore(f"{path} is a folder: name a file in it, such as {path / 'zettel.db'}")
        if not path.parent.is_dir():
            raise NotAStore(f"{path}: there is no folder {path.parent}; make it first")
        with path.open("rb") as file:
            header = file.read(_HEADER)
    except FileNotFoundError:
        return
    except PermissionError:
        raise StoreReadOnly(f"{path} cannot be read: its permissions forbid it") from None
    except OSError as error:  # a long name, circular links, a failing disk
        raise NotAStore(f"{path} cannot be read: {error.strerror}") from None
    # Zeros: a process died while it created the store. SQLite recovers the file from its journal.
    unfinished = not any(header) and Path(f"{path}-journal").exists()
    if not header or unfinished:
        return
    if encrypted:
        if header.startswith(_MAGIC):
            raise StoreDenied(f"{path} is not encrypted: open it without a key, or copy it with `zettel encrypt`")
        return
    if len(header) < _HEADER or not header.startswith(_MAGIC):
        raise NotAStore(
            f"{path} is not a zettel store, and was not changed (an encrypted store needs its key: ZETTEL_STORE_KEY)"
        )
    if struct.unpack_from(">I", header, 68)[0] != APPLICATION_ID:
        raise NotAStore(f"{path} is another program's SQLite database, and was not changed")


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Migrate the file to this version's layout in one transaction. Raises ``NotAStore``, ``StoreTooNew``."""
    steps = migrations()
    connection.execute("BEGIN")  # else another process may create the store between two reads
    layout = _layout(connection, path, len(steps))
    connection.execute("ROLLBACK")
    if layout == len(steps):
        return
    connection.execute("BEGIN EXCLUSIVE")
    try:
        for number in range(_layout(connection, path, len(steps)), len(steps)):  # another process may have migrated it
            for statement in _statements(steps[number]):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _layout(connection: sqlite3.Connection, path: str, newest: int) -> int:
    """Return the layout of the file, 0 for a new file."""
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
    if owner != APPLICATION_ID and (tables or layout or owner):
        raise NotAStore(f"{path} is another program's SQLite database, and was not changed")
    if layout > newest:
        raise StoreTooNew(
            f"{path} was written by a newer zettel (layout {layout}; this one knows {newest}): upgrade zettel"
        )
    return int(layout)


def _statements(sql: str) -> Iterator[str]:
    """Yield single statements, because ``executescript`` commits the open transaction first."""
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if pending.strip():
        yield pending
