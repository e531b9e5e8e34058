"""SQLite connections: one writer, a few readers, and translation of SQLite's errors."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from zettel.core.open_files import register, unregister
from zettel.core.private_files import create_private
from zettel.errors import MemoryClosed, NotAStore, StoreBusy, StoreError, StoreFull, StoreReadOnly
from zettel.graph.embedded.encryption import driver_of, unlock, wrong_key
from zettel.graph.embedded.schema import migrate, require_ours

READERS = 4
"""Maximum number of concurrent readers."""
BUSY_SECONDS = 5.0
"""How long a write waits for another process that is writing."""
_CACHE_KIB = 32_000
"""The writer's page cache: enough for the terms, and the words of a large scope's newest notes."""
_LOG_PAGES = 16_000
"""Pages of 4 KiB in the log before a checkpoint, because many pages are written repeatedly."""
_CACHED_STATEMENTS = 256
"""More than this store has, so each connection compiles each statement once."""


class Connections:
    """The open connections of one file. Methods block: call them on a thread."""

    def __init__(self, path: str, busy_seconds: float = BUSY_SECONDS, key: str | None = None) -> None:
        self.driver = driver_of(key)
        self._key = key
        self.path = path
        self._file = os.path.abspath(path)  # the process may change its folder before a reader opens
        self._busy_seconds = busy_seconds
        self._writer: sqlite3.Connection | None = None
        self._writing = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._places = threading.Semaphore(READERS)
        self._pid = 0
        self._registration = ""

    def open(self) -> None:
        """Open, create or migrate the file.

        Raises ``NotAStore``, ``StoreTooNew``, ``StoreReadOnly``, ``StoreBusy``, and ``StoreDenied``
        for a wrong key.
        """
        file = Path(self.path)
        self._registration = register(self._file, lambda: require_ours(file, encrypted=self._key is not None))
        try:
            self._open(file)
        except BaseException:
            unregister(self._registration)
            raise

    def _open(self, file: Path) -> None:
        for place in (file.parent, *(file,) * file.exists()):
            if not os.access(place, os.W_OK):
                raise StoreReadOnly(f"{place} cannot be written: its permissions forbid it")
        with suppress(OSError):  # SQLite reports why no file can be created
            create_private(os.path.realpath(self._file))  # its log gets the same mode
        with self._translated():
            writer = self._connect()
            try:
                migrate(writer, self.path)
                writer.execute("PRAGMA journal_mode = WAL")
                writer.execute("PRAGMA synchronous = FULL")
                writer.execute("PRAGMA secure_delete = ON")
                writer.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
                writer.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
                self._require_writable(writer)
            except BaseException:
                writer.close()
                raise
        self._writer = writer
        self._pid = os.getpid()
        self._opened = os.stat(self._file)

    def close(self) -> None:
        """Wait for a running write, then close all connections. Running reads close theirs when they end."""
        with self._writing:
            writer, self._writer = self._writer, None
            idle, self._idle = self._idle, []
            for connection in (*idle, *filter(None, (writer,))):
                connection.close()
            if writer is not None:
                unregister(self._registration)

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Yield the writer in an immediate transaction: commit at the end, roll back on an exception."""
        with self.writer() as writer, _transaction(writer, "BEGIN IMMEDIATE"):
            yield writer

    @contextmanager
    def writer(self) -> Iterator[sqlite3.Connection]:
        """Yield the writer outside of a transaction."""
        with self._writing, self._translated():
            self._require_open()
            assert self._writer is not None
            yield self._writer

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Yield a reader in a transaction, which sees one state of the store."""
        with self._places, self._translated():
            self._require_open()
            try:
                reader = self._idle.pop()
            except IndexError:
                reader = self._connect()
                reader.execute("PRAGMA query_only = ON")
            try:
                with _transaction(reader, "BEGIN"):
                    yield reader
            except BaseException:
                reader.close()
                raise
            if self._writer is None:
                reader.close()
            else:
                self._idle.append(reader)

    def _require_open(self) -> None:
        if self._writer is None:
            raise MemoryClosed(f"{self.path} is closed")
        if self._pid != os.getpid():
            raise MemoryClosed(f"{self.path} was opened before a fork: open it again in the child process")
        # Writes to an unlinked file are lost, and a reader would mix its log with the file that replaced it.
        try:
            is_there = os.path.samestat(os.stat(self._file), self._opened)
        except OSError:
            is_there = False
        if not is_there:
            raise StoreError(f"{self.path} was deleted, moved or replaced since it was opened: open it again")

    def _connect(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = self.driver.connect(
            self._file,
            timeout=self._busy_seconds,
            isolation_level=None,  # ``_transaction`` begins and ends transactions
            check_same_thread=False,  # locks allow one thread at a time
            cached_statements=_CACHED_STATEMENTS,
        )
        unlock(connection, self._key)
        connection.execute("PRAGMA trusted_schema = OFF")
        return connection

    def _require_writable(self, writer: sqlite3.Connection) -> None:
        """Begin to write: a file system may be read-only although the permissions allow writing."""
        (busy_timeout,) = writer.execute("PRAGMA busy_timeout").fetchone()
        writer.execute("PRAGMA busy_timeout = 0")
        try:
            with _transaction(writer, "BEGIN IMMEDIATE"):
                pass
        except self.driver.OperationalError as error:
            if "locked" not in str(error):  # another process is writing, so the file is writable
                raise
        writer.execute(f"PRAGMA busy_timeout = {busy_timeout}")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except self.driver.Error as error:
            raise self._store_error(error) from error

    def _store_error(self, error: Exception) -> StoreError:
        """Translate SQLite's error by its message: Python 3.10 has no error codes."""
        message = str(error)
        if "locked" in message or "busy" in message:
            return StoreBusy(f"{self.path}: another process was writing for {self._busy_seconds:g} s; try again")
        if "full" in message:
            return StoreFull(f"{self.path}: no space is left; nothing was written")
        if "readonly" in message or "unable to open" in message:
            return StoreReadOnly(f"{self.path} cannot be written ({message})")
        if "not a database" in message and self._key is not None:
            return wrong_key(self.path)
        if "not a database" in message:
            return NotAStore(f"{self.path} is not a zettel store, and was not changed")
        if "malformed" in message:
            return StoreError(f"{self.path} is damaged ({message}): restore a copy, or import again into another store")
        return StoreError(f"{self.path}: {message}")


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        if begin == "BEGIN":
            connection.execute("ROLLBACK")
        else:
            connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
