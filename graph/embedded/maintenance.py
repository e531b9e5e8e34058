"""Counts, scope deletion and purging of deleted data from the file."""

from __future__ import annotations

import sqlite3

from zettel.graph.embedded import ivf_lists, snapshots
from zettel.graph.embedded.connections import Connections
from zettel.graph.embedded.scopes import RESTORING

PURGE_PATIENCE_MS = 100
"""How long a purge waits for readers. It blocks writes meanwhile, and its job runs again."""

_OF_SCOPE = (
    "DELETE FROM links WHERE source IN (SELECT number FROM notes WHERE scope = :scope)",
    "DELETE FROM vectors WHERE note IN (SELECT number FROM notes WHERE scope = :scope)",
    "DELETE FROM note_events WHERE note IN (SELECT number FROM notes WHERE scope = :scope)",
    "DELETE FROM checkpoints WHERE note IN (SELECT number FROM notes WHERE scope = :scope)",
    "DELETE FROM texts WHERE note IN (SELECT number FROM notes WHERE scope = :scope)",
    "DELETE FROM lists WHERE scope = :scope",
    "DELETE FROM citations WHERE scope = :scope",
    "DELETE FROM revisions WHERE scope = :scope",
    "DELETE FROM facets WHERE scope = :scope",
    "DELETE FROM words WHERE scope = :scope",
    "DELETE FROM terms WHERE scope = :scope",
    "DELETE FROM removed WHERE scope = :scope",
    "DELETE FROM jobs WHERE scope = :scope",
    "DELETE FROM answer_notes WHERE answer IN (SELECT number FROM answers WHERE scope = :scope)",
    "DELETE FROM answers WHERE scope = :scope",
    "DELETE FROM model_use WHERE scope = :scope",
    "DELETE FROM search_notes WHERE search IN (SELECT number FROM searches WHERE scope = :scope)",
    "DELETE FROM searches WHERE scope = :scope",
    "DELETE FROM note_uses WHERE scope = :scope",
    "DELETE FROM tombstones WHERE scope = :scope",
    "DELETE FROM events WHERE scope = :scope",
    "DELETE FROM notes WHERE scope = :scope",
    "DELETE FROM scopes WHERE number = :scope",
)


def drop_scope(sql: sqlite3.Connection, scope: int) -> int:
    """Destroy all of a scope. Returns how many notes it had."""
    snapshots.drop(sql, "scope = ?", scope)
    (notes,) = sql.execute("SELECT COUNT(*) FROM notes WHERE scope = ?", (scope,)).fetchone()
    for statement in _OF_SCOPE:
        sql.execute(statement, {"scope": scope})
    sql.execute("INSERT INTO unpurged DEFAULT VALUES")
    return int(notes)


def purge_due(sql: sqlite3.Connection) -> bool:
    """Return if a scope was dropped since the last purge."""
    return sql.execute("SELECT 1 FROM unpurged LIMIT 1").fetchone() is not None


def purge(connections: Connections) -> bool:
    """Rewrite the file without deleted data, and empty its write-ahead log. Returns False if readers prevent it.

    ``secure_delete`` alone is not enough: SQLite leaves copies of moved rows in unused parts of rebalanced pages, and
    these survive a later delete.
    """
    busy = connections.driver.OperationalError
    with connections.writer() as writer:
        (dropped,) = writer.execute("SELECT MAX(number) FROM unpurged").fetchone()
        (busy_timeout,) = writer.execute("PRAGMA busy_timeout").fetchone()
        writer.execute(f"PRAGMA busy_timeout = {PURGE_PATIENCE_MS}")
        try:
            # Emptying the log first is cheap, and fails early while readers prevent a purge.
            done = _empty_log(writer, busy) and _rewrite(writer, busy) and _empty_log(writer, busy)
        finally:
            writer.execute(f"PRAGMA busy_timeout = {busy_timeout}")
        if done and dropped is not None:
            writer.execute("DELETE FROM unpurged WHERE number <= ?", (dropped,))
        return done


def _rewrite(writer: sqlite3.Connection, busy: type[Exception]) -> bool:
    try:
        writer.execute("VACUUM")
    except busy as error:
        if "locked" in str(error):
            return False
        raise
    return True


def _empty_log(writer: sqlite3.Connection, busy: type[Exception]) -> bool:
    try:
        blocked, _, _ = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except busy as error:
        if "locked" in str(error):
            return False
        raise
    return int(blocked) == 0


def counts(sql: sqlite3.Connection, scope: int | None) -> dict[str, int]:
    """Return row counts of one scope or of all.

    ``vector_bytes`` is the memory of the vectors if all these scopes are cached for searches.
    """
    values = {"scope": scope}
    ours = f"IN (SELECT number FROM scopes WHERE key NOT GLOB '{RESTORING}*')"
    mine = f"CASE WHEN :scope IS NULL THEN scope {ours} ELSE scope = :scope END"
    of_notes = f"IN (SELECT number FROM notes WHERE {mine})"
    statements = {
        "scopes": f"SELECT COUNT(*) FROM scopes WHERE number {ours} AND (:scope IS NULL OR number = :scope)",
        "events": f"SELECT COUNT(*) FROM events WHERE {mine}",
        "notes": f"SELECT COUNT(*) FROM notes WHERE {mine}",
        "archived": f"SELECT COUNT(*) FROM notes WHERE archived AND {mine}",
        "terms": f"SELECT COUNT(*) FROM terms WHERE {mine}",
        "links": f"SELECT COUNT(*) FROM links WHERE source {of_notes}",
        "revisions": f"SELECT COUNT(*) FROM revisions WHERE {mine}",
        "jobs": f"SELECT COUNT(*) FROM jobs WHERE state != 'failed' AND {mine}",
        "failed": f"SELECT COUNT(*) FROM jobs WHERE state = 'failed' AND {mine}",
    }
    counts = {name: sql.execute(statement, values).fetchone()[0] for name, statement in statements.items()}
    vector_counts = sql.execute(
        f"""SELECT COUNT(*), s.dim, (SELECT l.trained FROM lists l WHERE l.scope = n.scope AND l.space = s.id)
        FROM spaces s CROSS JOIN notes n CROSS JOIN vectors v ON v.note = n.number AND v.space = s.id
        WHERE s.active AND {mine} GROUP BY n.scope""",
        values,
    ).fetchall()
    vectors = sum(count for count, _, _ in vector_counts)
    return counts | {"vectors": vectors, "vector_bytes": sum(ivf_lists.index_bytes(*row) for row in vector_counts)}


def forget_removals(sql: sqlite3.Connection) -> None:
    """Delete the records of removed rows, and every snapshot that may contain these rows.

    Processes with an older state of these scopes in memory reload them.
    """
    sql.execute("UPDATE scopes SET floor = changed WHERE number IN (SELECT scope FROM removed)")
    sql.execute("DELETE FROM removed")
    snapshots.drop_older(sql)
