"""Scopes as rows."""

from __future__ import annotations

import sqlite3

from zettel.batch import Conflict, Restore
from zettel.graph.scopes import ScopeRow
from zettel.model import TIME_MIN, Scope

RESTORING = "restoring "
"""Begins the key of a scope that is being restored; it gets its own key when it is whole. No scope's key begins so."""


def find_scope(connection: sqlite3.Connection, scope: Scope) -> ScopeRow | None:
    """The scope's row, if anything was ever written to it."""
    return by_key(connection, scope.key)


def by_key(connection: sqlite3.Connection, key: str) -> ScopeRow | None:
    """The same by ``Scope.key``."""
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
        raise Conflict(f"{scope} stands at {row.seq}, not at {expects}")
    return row
