"""The durable queue of webhooks: a SQLite file with the messages that wait for their targets.

A message is written before the store commits its changes, so that none is lost, and marked ``certain`` after it. After
a crash the messages that are not certain are compared with the store.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from zettel.core.private_files import create_private
from zettel.errors import StoreBusy, StoreError, StoreFull

_SCHEMA = """
CREATE TABLE IF NOT EXISTS messages (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, scope TEXT NOT NULL, body TEXT NOT NULL,
    created REAL NOT NULL, certain INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS deliveries (
    target TEXT NOT NULL, message INTEGER NOT NULL REFERENCES messages (number), attempts INTEGER NOT NULL,
    due REAL NOT NULL, PRIMARY KEY (target, message)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_due ON deliveries (target, due, message);
CREATE INDEX IF NOT EXISTS by_message ON deliveries (message);
"""


class Message(NamedTuple):
    """A message: its id, the scope of its changes and its body, both as JSON."""

    id: str
    scope: str
    body: str


class Delivery(NamedTuple):
    """A message that waits for one target. ``attempts`` have failed; ``due`` is the time of the next, in seconds."""

    message: Message
    attempts: int
    due: float


class WebhookQueue:
    """The queue in a file, for one process. Raises ``StoreBusy`` if another process has it open, ``StoreError``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            create_private(os.path.realpath(path))
            self._file = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"the queue of webhooks {path} cannot be opened: {error}") from None
        try:
            self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.executescript(_SCHEMA)
            self._file.execute("BEGIN IMMEDIATE")  # takes the lock, which lasts until the file is closed
            self._file.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            self._file.close()
            if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                raise StoreBusy(f"another process delivers the webhooks of {path}: name another queue") from None
            raise StoreError(f"{path} is not a queue of webhooks: {error}") from None

    def add(self, messages: Mapping[Message, Collection[str]]) -> None:
        """Store messages, each for the targets with these names. They are on disk when this returns."""
        now = time.time()
        with self._writing(durable=True):
            for message, targets in messages.items():
                row = (message.id, message.scope, message.body, now)
                (number,) = self._file.execute(
                    "INSERT INTO messages (id, scope, body, created, certain) VALUES (?, ?, ?, ?, 0) RETURNING number",
                    row,
                ).fetchone()
                waiting = [(target, number, now) for target in targets]
                self._file.executemany("INSERT INTO deliveries VALUES (?, ?, 0, ?)", waiting)

    def confirm(self, ids: Sequence[str]) -> None:
        """Mark messages as certain: the store wrote their changes."""
        with self._writing():
            self._file.executemany("UPDATE messages SET certain = 1 WHERE id = ?", [(id,) for id in ids])

    def discard(self, ids: Sequence[str]) -> None:
        """Remove messages that are not certain: the store did not write their changes."""
        with self._writing():
            for id in ids:
                self._file.execute(
                    "DELETE FROM deliveries WHERE message = (SELECT number FROM messages WHERE id = ? AND NOT certain)",
                    (id,),
                )
                self._file.execute("DELETE FROM messages WHERE id = ? AND NOT certain", (id,))

    def uncertain(self) -> list[Message]:
        """Return the messages that are not certain, oldest first."""
        with self._using():
            rows = self._file.execute("SELECT id, scope, body FROM messages WHERE NOT certain ORDER BY number")
            return [Message(*row) for row in rows]

    def next(self, target: str) -> Delivery | None:
        """Return the delivery that is due first."""
        with self._using():
            row = self._file.execute(
                "SELECT id, scope, body, attempts, due FROM deliveries JOIN messages ON number = message "
                "WHERE target = ? AND certain ORDER BY due, message LIMIT 1",
                (target,),
            ).fetchone()
        return None if row is None else Delivery(Message(*row[:3]), *row[3:])

    def is_due(self) -> bool:
        """Return whether any message is due now."""
        with self._using():
            row = self._file.execute(
                "SELECT 1 FROM deliveries JOIN messages ON number = message WHERE certain AND due <= ? LIMIT 1",
                (time.time(),),
            ).fetchone()
        return row is not None

    def retry(self, target: str, id: str, due: float) -> None:
        """Count a failed attempt; the next is at ``due``."""
        with self._writing():
            self._file.execute(
                "UPDATE deliveries SET attempts = attempts + 1, due = ? "
                "WHERE target = ? AND message = (SELECT number FROM messages WHERE id = ?)",
                (due, target, id),
            )

    def remove(self, target: str, id: str) -> None:
        """Remove a delivery, and the message after the last one."""
        with self._writing():
            self._file.execute(
                "DELETE FROM deliveries WHERE target = ? AND message = (SELECT number FROM messages WHERE id = ?)",
                (target, id),
            )
            self._file.execute(
                "DELETE FROM messages WHERE id = ? AND number NOT IN (SELECT message FROM deliveries)", (id,)
            )

    def remove_older(self, target: str, before: float) -> int:
        """Remove the deliveries to a target of messages that were queued before a time, and return how many."""
        with self._writing():
            removed = self._file.execute(
                "DELETE FROM deliveries WHERE target = ? AND message IN "
                "(SELECT number FROM messages WHERE created < ?)",
                (target, before),
            ).rowcount
            self._file.execute(
                "DELETE FROM messages WHERE created < ? AND number NOT IN (SELECT message FROM deliveries)", (before,)
            )
        return removed

    def waiting(self, target: str) -> int:
        """Count the messages that wait for a target."""
        with self._using():
            counted = self._file.execute("SELECT count(*) FROM deliveries WHERE target = ?", (target,))
            return int(counted.fetchone()[0])

    def forget_other_targets(self, names: Collection[str]) -> list[str]:
        """Remove the deliveries to targets that are not configured any more, and return their names."""
        with self._writing():
            known = [name for (name,) in self._file.execute("SELECT DISTINCT target FROM deliveries")]
            others = sorted({*known} - {*names})
            self._file.executemany("DELETE FROM deliveries WHERE target = ?", [(name,) for name in others])
            self._file.execute("DELETE FROM messages WHERE number NOT IN (SELECT message FROM deliveries)")
        return others

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    @contextmanager
    def _using(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                kind = StoreFull if "full" in str(error) else StoreError
                raise kind(f"the queue of webhooks {self.path} cannot be used: {error}") from None

    @contextmanager
    def _writing(self, *, durable: bool = False) -> Iterator[None]:
        """Run the block in one transaction; a durable one also survives a power cut."""
        with self._using():
            self._file.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._file.execute("ROLLBACK")
                raise
            self._file.execute("COMMIT")
