"""The connections to the file: one that writes, a few that read, and SQLite's errors in zettel's words."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zettel.errors import MemoryClosed, NotAStore, StoreBusy, StoreError, StoreFull, StoreReadOnly
from zettel.graph.embedded.schema import migrate, require_ours
from zettel.held_files import hold, release

READERS = 4
"""Connections that read at the same time: more would only queue for the processor."""
BUSY_SECONDS = 5.0
"""How long a write waits for another process that is writing."""
_CACHE_KIB = 32_000
"""Pages the writer keeps: those of the words of a large scope's newest notes, and of the Terms."""
_LOG_PAGES = 16_000
"""Of 4 KiB, written to the log before they go into the file: many are written again and again until then."""
_CACHED_STATEMENTS = 256
"""More than this store has, so that each is compiled once for each connection."""


class Connections:
    """What is open on one file. Methods block: call them on a thread."""

    def __init__(self, path: str, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self._file = os.path.abspath(path)  # readers are opened later, when the process may stand in another folder
        self._busy_seconds = busy_seconds
        self._writer: sqlite3.Connection | None = None
        self._writing = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._places = threading.Semaphore(READERS)
        self._pid = 0
        self._held = ""

    def open(self) -> None:
        """Open, make or migrate the file. Raises ``NotAStore``, ``StoreTooNew``, ``StoreReadOnly``, ``StoreBusy``."""
        file = Path(self.path)
        self._held = hold(self._file, lambda: require_ours(file))
        try:
            self._open(file)
        except BaseException:
            release(self._held)
            raise

    def _open(self, file: Path) -> None:
        for place in (file.parent, *(file,) * file.exists()):
            if not os.access(place, os.W_OK):
                raise StoreReadOnly(f"{place} cannot be written: its permissions forbid it")
        with self._translated():
            writer = self._connect()
            try:
                migrate(writer, self.path)
                writer.execute("PRAGMA journal_mode = WAL")
                writer.execute("PRAGMA synchronous = FULL")
                writer.execute("PRAGMA secure_delete = ON")
                writer.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
                writer.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
                _require_writable(writer)
            except BaseException:
                writer.close()
                raise
        self._writer = writer
        self._pid = os.getpid()
        self._opened = os.stat(self._file)

    def close(self) -> None:
        """Wait for a write that is under way, then close all. Reads under way close theirs when they end."""
        with self._writing:
            writer, self._writer = self._writer, None
            idle, self._idle = self._idle, []
            for connection in (*idle, *filter(None, (writer,))):
                connection.close()
            if writer is not None:
                release(self._held)

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """The writer in an immediate transaction, committed at the end or undone by whatever is raised."""
        with self.writer() as writer, _transaction(writer, "BEGIN IMMEDIATE"):
            yield writer

    @contextmanager
    def writer(self) -> Iterator[sqlite3.Connection]:
        """The writer outside of any transaction."""
        with self._writing, self._translated():
            self._require_open()
            assert self._writer is not None
            yield self._writer

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A reader in a transaction: all it reads is one state of the store."""
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
            raise MemoryClosed(f"{self.path} was opened before a fork: open it anew in the child process")
        # What is written to a file without a name is lost, and a reader would mix the log with what has the name now.
        try:
            is_there = os.path.samestat(os.stat(self._file), self._opened)
        except OSError:
            is_there = False
        if not is_there:
            raise StoreError(f"{self.path} was deleted, moved or replaced since it was opened: open it anew")

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._file,
            timeout=self._busy_seconds,
            isolation_level=None,  # transactions begin and end where this file says so
            check_same_thread=False,  # one thread at a time, which the locks here see to
            cached_statements=_CACHED_STATEMENTS,
        )
        connection.execute("PRAGMA trusted_schema = OFF")
        return connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._told(error) from error

    def _told(self, error: sqlite3.Error) -> StoreError:
        """By its words: Python 3.10 gives no error codes."""
        said = str(error)
        if "locked" in said or "busy" in said:
            return StoreBusy(f"{self.path}: another process was writing for {self._busy_seconds:g} s; try again")
        if "full" in said:
            return StoreFull(f"{self.path}: no space is left; nothing was written")
        if "readonly" in said or "unable to open" in said:
            return StoreReadOnly(f"{self.path} cannot be written ({said})")
        if "not a database" in said:
            return NotAStore(f"{self.path} is not a zettel store; it was left as it is")
        if "malformed" in said:
            return StoreError(f"{self.path} is damaged ({said}): go back to a copy, or import anew into another store")
        return StoreError(f"{self.path}: {said}")


def _require_writable(writer: sqlite3.Connection) -> None:
    """Begin to write, for a file system may forbid what the permissions allow."""
    (patience,) = writer.execute("PRAGMA busy_timeout").fetchone()
    writer.execute("PRAGMA busy_timeout = 0")
    try:
        with _transaction(writer, "BEGIN IMMEDIATE"):
            pass
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):  # somebody else is writing: so it can be done
            raise
    writer.execute(f"PRAGMA busy_timeout = {patience}")


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
