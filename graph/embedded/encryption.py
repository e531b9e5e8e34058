"""Encrypted files: SQLCipher encrypts every page of the file and of its log with a key (extra ``encryption``)."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from zettel.core.private_files import create_private
from zettel.errors import InvalidInput, MissingExtra, StoreDenied, StoreError
from zettel.graph.embedded.schema import APPLICATION_ID, require_ours

BUSY_SECONDS = 5.0
"""How long a copy waits for another process that is writing."""


def driver_of(key: str | None) -> Any:
    """Return the module that opens a file: ``sqlite3``, or SQLCipher's, which has the same functions.

    Raises ``MissingExtra``, and ``InvalidInput`` for an empty key.
    """
    if key is None:
        return sqlite3
    if not isinstance(key, str) or not key or "\0" in key:
        raise InvalidInput("the key of a store must be a text that is not empty")
    try:
        from sqlcipher3 import dbapi2
    except ImportError as error:
        raise MissingExtra("an encrypted store", "encryption") from error
    return dbapi2


def unlock(connection: Any, key: str | None) -> None:
    """Give a new connection its key. Whether it is the right one shows at the first read."""
    if key is not None:
        connection.execute("PRAGMA cipher_log_level = NONE")  # else a wrong key prints lines on stderr
        quoted = key.replace("'", "''")
        connection.execute(f"PRAGMA key = '{quoted}'")


def wrong_key(path: str | Path) -> StoreDenied:
    """Return the error of a file that a key does not open."""
    return StoreDenied(f"{path}: the key does not open this file: it is another store's key, or the file is damaged")


def copy_store(source: Path, target: Path, old_key: str | None, new_key: str | None) -> None:
    """Copy a store into a new file with another key; None is a file without encryption.

    The copy appears under its name when it is complete and checked, and the source stays as it is. Raises
    ``InvalidInput`` if there is a target already, ``StoreDenied`` for a wrong key, ``NotAStore``, ``StoreError``.
    """
    driver = driver_of(old_key or new_key)
    if os.path.lexists(target):
        raise InvalidInput(f"{target} exists already: name a new file")
    if not source.exists():
        raise StoreError(f"the store {source} does not exist")
    require_ours(source, encrypted=old_key is not None)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        create_private(str(part))
        with _opened(driver, source, old_key) as connection:
            (layout,) = connection.execute("PRAGMA user_version").fetchone()
            connection.execute("ATTACH DATABASE ? AS copy KEY ?", (str(part), new_key or ""))
            connection.execute("BEGIN")  # one state of the source
            connection.execute("SELECT sqlcipher_export('copy')")
            connection.execute(f"PRAGMA copy.application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA copy.user_version = {int(layout)}")
            connection.execute("COMMIT")
            connection.execute("DETACH DATABASE copy")
        with _opened(driver, part, new_key) as connection:
            if connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                raise StoreError(f"{source} is damaged: run `zettel doctor` first")
        _publish(part, target)
    except driver.Error as error:
        raise wrong_key(source) if "not a database" in str(error) else StoreError(f"{source}: {error}") from None
    finally:
        for ending in ("", "-journal", "-wal", "-shm"):
            Path(f"{part}{ending}").unlink(missing_ok=True)


@contextmanager
def _opened(driver: Any, path: Path, key: str | None) -> Iterator[Any]:
    connection = driver.connect(str(path), timeout=BUSY_SECONDS, isolation_level=None)
    try:
        unlock(connection, key)
        yield connection
    finally:
        connection.close()


def _publish(part: Path, target: Path) -> None:
    """Give a complete file its name, durably, unless another file has taken it meanwhile."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    try:
        os.link(part, target)
    except FileExistsError:
        raise InvalidInput(f"{target} exists already: name a new file") from None
    with suppress(OSError, AttributeError):  # folders cannot be opened on Windows
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
