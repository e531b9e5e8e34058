"""The rows of the scopes table."""

from __future__ import annotations

import sqlite3

from zettel.graph.bodies import read_body
from zettel.graph.scopes import ScopeRow
from zettel.model import TIME_MAX, TIME_MIN, Retention, Scope
from zettel.ports import ScopeState
from zettel.ports.operations import Conflict, Restore

RESTORING = "restoring "
"""Prefix of the key of a scope that is being restored. It gets its own key when the restore completes."""
_STATE = """SELECT (SELECT MAX(occurred_at) FROM events WHERE scope = :scope),
    (SELECT expires_at FROM notes WHERE scope = :scope AND archived = 0 AND expires_at IS NOT NULL
     ORDER BY expires_at LIMIT 1),
    (SELECT retention FROM scopes WHERE number = :scope)"""


def find_scope(connection: sqlite3.Connection, scope: Scope) -> ScopeRow | None:
    """Return the scope's row, None if nothing was ever written to it."""
    return by_key(connection, scope.key)


def by_key(connection: sqlite3.Connection, key: str) -> ScopeRow | None:
    """Return the scope's row by ``Scope.key``."""
    row = connection.execute(
        "SELECT number, secret, seq, recorded_at, changed, floor FROM scopes WHERE key = ?", (key,)
    ).fetchone()
    return ScopeRow(*row) if row else None


def scope_state(connection: sqlite3.Connection, row: ScopeRow) -> ScopeState:
    """Return the state of a scope with this row."""
    latest, expires, retention = connection.execute(_STATE, {"scope": row.number}).fetchone()
    return ScopeState(
        row.seq, row.secret, row.recorded_at, TIME_MIN if latest is None else latest,
        TIME_MAX if expires is None else expires, None if retention is None else read_body(Retention, retention),
    )  # fmt: skip


def claim_scope(connection: sqlite3.Connection, scope: Scope, expects: int, secret: bytes) -> ScopeRow:
    """Return the scope's row, created if missing. Raises ``Conflict`` unless its ``seq`` is the expected one."""
    return _claim(connection, scope, scope.key, expects, secret)


def claim_restored(connection: sqlite3.Connection, scope: Scope, expects: int, restore: Restore) -> ScopeRow:
    """Return the hidden row that a restore fills, as :func:`claim_scope` does."""
    return _claim(connection, scope, f"{RESTORING}{scope.key} {restore.token}", expects, restore.secret)


def advance(connection: sqlite3.Connection, row: ScopeRow, seq: int, recorded_at: int | None) -> None:
    """Update the scope's counters after one batch."""
    latest = row.recorded_at if recorded_at is None else max(row.recorded_at, recorded_at)
    connection.execute(
        "UPDATE scopes SET seq = ?, recorded_at = ?, changed = changed + 1 WHERE number = ?", (seq, latest, row.number)
    )


def end_restore(connection: sqlite3.Connection, scope: Scope, number: int) -> None:
    """Give a restored scope its own key. Raises ``Conflict`` if the scope exists by now."""
    if find_scope(connection, scope) is not None:
        raise Conflict(f"{scope} was written to while it was restored")
    connection.execute("UPDATE scopes SET key = ? WHERE number = ?", (scope.key, number))


def restored_rows(connection: sqlite3.Connection, scope: Scope) -> list[int]:
    """Return the numbers of the scope's incomplete restores."""
    rows = connection.execute("SELECT number FROM scopes WHERE key GLOB ?", (f"{RESTORING}{scope.key} *",))
    return [number for (number,) in rows]


def _claim(connection: sqlite3.Connection, scope: Scope, key: str, expects: int, secret: bytes) -> ScopeRow:
    row = by_key(connection, key)
    if row is None:
        if expects != 0:
            raise Conflict(f"{scope} was destroyed meanwhile")
        connection.execute(
            "INSERT INTO scopes (key, name, secret, seq, recorded_at, changed, floor) VALUES (?, ?, ?, 0, ?, 0, 0)",
            (key, scope.model_dump_json(), secret, TIME_MIN),
        )
        row = by_key(connection, key)
        assert row is not None
    if row.seq != expects or row.secret != secret:
        raise Conflict(f"{scope} is at seq {row.seq}, the batch was planned at {expects}")
    return row
