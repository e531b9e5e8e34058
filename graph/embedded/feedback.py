"""The search log and the usefulness of notes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence

from zettel.core.feedback import LOGGED
from zettel.graph.bodies import body_of, read_body
from zettel.model import LoggedSearch, NoteUse, Proved, from_micros, to_micros

PAGE = 256
"""Searches read at once."""


def log(sql: sqlite3.Connection, scope: int, searches: Iterable[LoggedSearch]) -> None:
    """Log searches whose hits all exist, and delete all but the newest LOGGED of the scope."""
    for search in searches:
        notes = {hit.note for hit in search.hits}
        row = (scope, search.id, to_micros(search.asked_at), search.question, body_of(search))
        number = sql.execute(
            "INSERT INTO searches (scope, id, asked_at, question, body) VALUES (?, ?, ?, ?, ?)", row
        ).lastrowid
        put = sql.execute(
            """INSERT INTO search_notes (note, search) SELECT n.number, ? FROM json_each(?)
            CROSS JOIN notes n ON n.scope = ? AND n.id = value""",
            (number, json.dumps(sorted(notes)), scope),
        )
        if put.rowcount < len(notes):
            _delete(sql, [(number,)])
    old = "SELECT number FROM searches WHERE scope = ? ORDER BY asked_at DESC, id DESC LIMIT -1 OFFSET ?"
    _delete(sql, sql.execute(old, (scope, LOGGED)).fetchall())


def update(sql: sqlite3.Connection, scope: int, search: LoggedSearch) -> None:
    """Store the feedback on a search, if the log still contains it."""
    sql.execute("UPDATE searches SET body = ? WHERE scope = ? AND id = ?", (body_of(search), scope, search.id))


def erase(sql: sqlite3.Connection, scope: int, ids: Iterable[str]) -> None:
    rows = sql.execute(
        "SELECT number FROM json_each(?) CROSS JOIN searches s ON s.scope = ? AND s.id = value",
        (json.dumps(list(ids)), scope),
    )
    _delete(sql, rows.fetchall())


def erase_note(sql: sqlite3.Connection, note: int) -> None:
    """Destroy the searches that returned a note, and its usefulness."""
    _delete(sql, sql.execute("SELECT search FROM search_notes WHERE note = ?", (note,)).fetchall())
    sql.execute("DELETE FROM note_uses WHERE note = ?", (note,))


def _delete(sql: sqlite3.Connection, numbers: Sequence[tuple[int | None]]) -> None:
    sql.executemany("DELETE FROM search_notes WHERE search = ?", numbers)
    sql.executemany("DELETE FROM searches WHERE number = ?", numbers)


def search(sql: sqlite3.Connection, scope: int, id: str) -> LoggedSearch | None:
    """Return the logged search with this id."""
    row = sql.execute("SELECT body FROM searches WHERE scope = ? AND id = ?", (scope, id)).fetchone()
    return read_body(LoggedSearch, row[0]) if row else None


def page(sql: sqlite3.Connection, scope: int, after: tuple[int, str]) -> list[LoggedSearch]:
    """The next searches by (asked_at, id), in microseconds."""
    rows = sql.execute(
        "SELECT body FROM searches WHERE scope = ? AND (asked_at, id) > (?, ?) ORDER BY asked_at, id LIMIT ?",
        (scope, *after, PAGE),
    )
    return [read_body(LoggedSearch, body) for (body,) in rows]


def questions(sql: sqlite3.Connection, scope: int) -> dict[str, str]:
    """Return the question of each search, by id."""
    return dict(sql.execute("SELECT id, question FROM searches WHERE scope = ?", (scope,)).fetchall())


def put_use(sql: sqlite3.Connection, scope: int, note: int, use: NoteUse) -> None:
    """Set the usefulness of a note (a number); a note never used has no row."""
    sql.execute("DELETE FROM note_uses WHERE note = ?", (note,))
    if use.times:
        sql.execute(
            "INSERT INTO note_uses (note, scope, since, times, successes, failures) VALUES (?, ?, ?, ?, ?, ?)",
            (note, scope, to_micros(use.since), use.times, use.successes, use.failures),
        )


def uses(sql: sqlite3.Connection, scope: int, notes: Iterable[str]) -> dict[str, NoteUse]:
    """Return the usefulness of the notes that exist."""
    rows = sql.execute(
        """SELECT n.id, COALESCE(u.since, n.recorded_at), COALESCE(u.times, 0), COALESCE(u.successes, 0),
        COALESCE(u.failures, 0) FROM json_each(?) CROSS JOIN notes n ON n.scope = ? AND n.id = value
        LEFT JOIN note_uses u ON u.note = n.number""",
        (json.dumps(list(notes)), scope),
    )
    return {id: NoteUse(from_micros(since), *counts) for id, since, *counts in rows}


def proved(sql: sqlite3.Connection, scope: int, notes: Iterable[str]) -> dict[str, Proved]:
    """Count how often notes were found, and shown and useful by the searches with feedback.

    The statement searches the JSON bodies. Quotes within a text are escaped there, so a text cannot match.
    """
    rows = sql.execute(
        """SELECT note, sum(rated != ''), sum(instr(rated, '"' || note || '"') > 0
            AND instr(rated, '"outcome":"failure"') = 0), count(*)
        FROM (
            SELECT n.id AS note, iif(instr(s.body, '"used":[') > 0, substr(s.body, instr(s.body, '"used":[')), '')
                AS rated
            FROM json_each(?) CROSS JOIN notes n ON n.scope = ? AND n.id = value
            CROSS JOIN search_notes f ON f.note = n.number CROSS JOIN searches s ON s.number = f.search
        ) GROUP BY note""",
        (json.dumps(list(notes)), scope),
    )
    return {id: Proved(*counts) for id, *counts in rows}


def any_used(sql: sqlite3.Connection, scope: int) -> bool:
    """Return if any note of the scope was useful."""
    (used,) = sql.execute("SELECT EXISTS (SELECT 1 FROM note_uses WHERE scope = ?)", (scope,)).fetchone()
    return bool(used)


def all_used(sql: sqlite3.Connection, scope: int) -> list[tuple[str, NoteUse]]:
    """Return the useful notes of a scope, by ``seq``."""
    rows = sql.execute(
        """SELECT n.id, u.since, u.times, u.successes, u.failures FROM note_uses u JOIN notes n ON n.number = u.note
        WHERE u.scope = ? ORDER BY n.seq, n.number""",
        (scope,),
    )
    return [(id, NoteUse(from_micros(since), *counts)) for id, since, *counts in rows]
