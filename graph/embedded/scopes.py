"""Scopes as rows, and the keyed hashes of each."""

from __future__ import annotations

import secrets
import sqlite3
import threading
from typing import NamedTuple

from zettel.batch import Conflict, Restore
from zettel.graph.embedded.keys import Keys
from zettel.model import TIME_MIN, Scope

SECRET_BYTES = 16
KNOWN_SCOPES = 256
"""Scopes whose hashes are remembered; any other one is read again."""


RESTORING = "restoring "
"""Begins the key of a scope that is being restored; it gets its own key when it is whole. No scope's key begins so."""


class ScopeRow(NamedTuple):
    """A scope as the store has it."""

    number: int
    secret: bytes
    seq: int
    recorded_at: int
    changed: int
    floor: int


class Secrets:
    """The keyed hashes of the scopes in use.

    A scope gets its secret when it is first looked at; until its first batch makes it durable, it is kept here.
    """

    def __init__(self) -> None:
        self._durable: dict[str, Keys] = {}
        self._pending: dict[str, Keys] = {}
        self._guard = threading.Lock()

    def of(self, scope: Scope, row: ScopeRow | None) -> Keys:
        """The hashes of a scope that stands in the store like this; None: it does not stand there."""
        with self._guard:
            if row is None:
                self._durable.pop(scope.key, None)
                return self._pending.setdefault(scope.key, Keys(secrets.token_bytes(SECRET_BYTES)))
            self._pending.pop(scope.key, None)
            keys = self._durable.pop(scope.key, None)
            if keys is None or keys.secret != row.secret:
                keys = Keys(row.secret)
            self._durable[scope.key] = keys  # last: most recently used
            if len(self._durable) > KNOWN_SCOPES:
                del self._durable[next(iter(self._durable))]
            return keys

    def planned(self, scope: Scope) -> Keys | None:
        """The hashes that whoever plans a batch was given."""
        return self._pending.get(scope.key) or self._durable.get(scope.key)

    def made_durable(self, scope: Scope) -> None:
        """The scope's first batch is committed."""
        with self._guard:
            keys = self._pending.pop(scope.key, None)
            if keys is not None:
                self._durable[scope.key] = keys

    def forget(self, scope: Scope) -> None:
        """The scope is destroyed."""
        with self._guard:
            self._pending.pop(scope.key, None)
            self._durable.pop(scope.key, None)


def find_scope(connection: sqlite3.Connection, scope: Scope) -> ScopeRow | None:
    """The scope's row, if anything was ever written to it."""
    return _by_key(connection, scope.key)


def _by_key(connection: sqlite3.Connection, key: str) -> ScopeRow | None:
    row = connection.execute(
        "SELECT number, secret, seq, recorded_at, changed, floor FROM scopes WHERE key = ?", (key,)
    ).fetchone()
    return ScopeRow(*row) if row else None


def claim_scope(connection: sqlite3.Connection, scope: Scope, expects: int, secret: bytes) -> ScopeRow:
    """The scope's row, made if need be. Raises ``Conflict`` unless it stands as the batch was planned on."""
    return _claim(connection, scope, scope.key, expects, secret)


def claim_restored(connection: sqlite3.Connection, scope: Scope, expects: int, restore: Restore) -> ScopeRow:
    """The same for the row that a restore fills, which nobody else looks at."""
    return _claim(connection, scope, f"{RESTORING}{scope.key} {restore.token}", expects, restore.secret)


def moved_on(connection: sqlite3.Connection, row: ScopeRow, seq: int, recorded_at: int | None) -> None:
    """One batch was written to the scope, the last of it recorded then."""
    latest = row.recorded_at if recorded_at is None else max(row.recorded_at, recorded_at)
    connection.execute(
        "UPDATE scopes SET seq = ?, recorded_at = ?, changed = changed + 1 WHERE number = ?", (seq, latest, row.number)
    )


def end_restore(connection: sqlite3.Connection, scope: Scope, number: int) -> None:
    """Make a restored scope the scope. Raises ``Conflict`` if there is one by now."""
    if find_scope(connection, scope) is not None:
        raise Conflict(f"{scope} was written to while it was restored")
    connection.execute("UPDATE scopes SET key = ? WHERE number = ?", (scope.key, number))


def restored_rows(connection: sqlite3.Connection, scope: Scope) -> list[int]:
    """The numbers of what restores of a scope have begun and not ended."""
    rows = connection.execute("SELECT number FROM scopes WHERE key GLOB ?", (f"{RESTORING}{scope.key} *",))
    return [number for (number,) in rows]


def _claim(connection: sqlite3.Connection, scope: Scope, key: str, expects: int, secret: bytes) -> ScopeRow:
    row = _by_key(connection, key)
    if row is None:
        if expects != 0:
            raise Conflict(f"{scope} was destroyed meanwhile")
        connection.execute(
            "INSERT INTO scopes (key, name, secret, seq, recorded_at, changed, floor) VALUES (?, ?, ?, 0, ?, 0, 0)",
            (key, scope.model_dump_json(), secret, TIME_MIN),
        )
        row = _by_key(connection, key)
        assert row is not None
    if row.seq != expects or row.secret != secret:
        raise Conflict(f"{scope} stands at {row.seq}, not at {expects}")
    return row
