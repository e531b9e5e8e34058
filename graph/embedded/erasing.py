"""Deletion of notes, events and revisions with all dependent rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from zettel.graph.embedded import feedback, words
from zettel.graph.keys import Entry, unpacked
from zettel.model import JobKind

_KINDS = json.dumps([kind.value for kind in JobKind])
"""Named in the statement so that SQLite looks a note's jobs up in the index, however many jobs the scope has."""


def delete_entries(sql: sqlite3.Connection, scope: int, number: int, seq: int, entries: Iterable[Entry]) -> None:
    """Delete words, terms and facets of a note with this ``seq``."""
    keys, others = words.split(entries)
    sql.executemany(
        "DELETE FROM words WHERE scope = ? AND stretch = ? AND key = ? AND note = ?",
        [(scope, words.stretch_of(seq), key, number) for key in sorted(keys)],
    )
    sql.executemany(
        "DELETE FROM facets WHERE scope = ? AND key = ? AND note = ?",
        [(scope, key, number) for key, _ in sorted(others)],
    )


def delete_unused_terms(sql: sqlite3.Connection, scope: int, keys: Iterable[int]) -> None:
    """Delete the names of those terms that no note has any more."""
    unused = set(keys)
    if unused:
        unused -= words.in_use(sql, scope, unused)
    sql.executemany("DELETE FROM terms WHERE scope = ? AND key = ?", [(scope, key) for key in sorted(unused)])


def drop_mentions(sql: sqlite3.Connection, number: int) -> set[int]:
    """Delete the MENTIONS that start or end at a note; return their sources."""
    sources = sql.execute(
        "SELECT source FROM links WHERE owner = 0 AND (source = :note OR target = :note)", {"note": number}
    ).fetchall()
    sql.execute("DELETE FROM links WHERE owner = 0 AND (source = :note OR target = :note)", {"note": number})
    return {source for (source,) in sources}


def erase_note(sql: sqlite3.Connection, scope: int, changed: int, number: int, id: str) -> set[int]:
    """Destroy a note with its index, vectors, links, revisions, jobs, uses and the searches that returned it.

    Returns the notes that lost a link to it.
    """
    feedback.erase_note(sql, number)
    seq, entries, terms = sql.execute("SELECT seq, entries, terms FROM notes WHERE number = ?", (number,)).fetchone()
    note_terms = unpacked(terms)
    delete_entries(sql, scope, number, seq, [*unpacked(entries), *note_terms])
    delete_unused_terms(sql, scope, {key for key, _ in note_terms})
    ends = sql.execute(
        "SELECT source FROM links WHERE target = :note OR (owner = :note AND owner != 0)", {"note": number}
    ).fetchall()
    for statement in (
        "DELETE FROM links WHERE source = :note",
        "DELETE FROM links WHERE target = :note",
        "DELETE FROM links WHERE owner = :note AND owner != 0",
        "DELETE FROM vectors WHERE note = :note",
        "DELETE FROM citations WHERE revision IN (SELECT number FROM revisions WHERE note = :note)",
        "DELETE FROM citations WHERE scope = :scope AND cited = :id",
        "DELETE FROM revisions WHERE note = :note",
        "DELETE FROM checkpoints WHERE note = :note",
        "DELETE FROM note_events WHERE note = :note",
        "DELETE FROM jobs WHERE scope = :scope AND kind IN (SELECT value FROM json_each(:kinds)) AND note = :id",
        "DELETE FROM texts WHERE note = :note",
        "DELETE FROM notes WHERE number = :note",
        "INSERT INTO removed (scope, changed, note, event) VALUES (:scope, :changed, :note, 0)",
    ):
        sql.execute(statement, {"note": number, "scope": scope, "id": id, "changed": changed, "kinds": _KINDS})
    return {source for (source,) in ends} - {number}


def erase_event(sql: sqlite3.Connection, scope: int, changed: int, id: str) -> None:
    """Destroy an event and store a tombstone of its identity."""
    row = sql.execute("SELECT number, identity FROM events WHERE scope = ? AND id = ?", (scope, id)).fetchone()
    if row is None:
        return
    number, identity = row
    sql.execute("INSERT OR IGNORE INTO tombstones (scope, identity) VALUES (?, ?)", (scope, identity))
    sql.execute("DELETE FROM note_events WHERE event = ?", (number,))
    sql.execute("DELETE FROM events WHERE number = ?", (number,))
    sql.execute("INSERT INTO removed (scope, changed, note, event) VALUES (?, ?, 0, ?)", (scope, changed, number))


def erase_revision(sql: sqlite3.Connection, note: int, version: int) -> None:
    """Destroy one revision of a note, and the checkpoint that may contain its values."""
    sql.execute(
        "DELETE FROM citations WHERE revision IN (SELECT number FROM revisions WHERE note = ? AND version = ?)",
        (note, version),
    )
    sql.execute("DELETE FROM revisions WHERE note = ? AND version = ?", (note, version))
    sql.execute("DELETE FROM checkpoints WHERE note = ?", (note,))
