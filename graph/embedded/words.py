"""Postings of words and terms in the file.

A scope's notes are split by ``seq`` into stretches, each with its own index. New notes go to the last stretch, whose
pages are few, so adding to a large scope costs little more than to a small one. A lookup reads each stretch once.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence

from zettel.graph.keys import Entry

STRETCH_BITS = 14
"""Size of a stretch in bits of ``seq``: 16,384 numbers, about 5,000 to 8,000 notes.

The migration that created the table contains it too, so it cannot change."""
_STRETCHES = """WITH RECURSIVE found (stretch) AS (
    SELECT MIN(stretch) FROM words WHERE scope = :scope
    UNION ALL
    SELECT (SELECT MIN(w.stretch) FROM words w WHERE w.scope = :scope AND w.stretch > found.stretch)
    FROM found WHERE found.stretch IS NOT NULL
) SELECT stretch FROM found WHERE stretch IS NOT NULL"""


def stretch_of(seq: int) -> int:
    """The stretch of a note with this ``seq``."""
    return seq >> STRETCH_BITS


def split(entries: Iterable[Entry]) -> tuple[set[int], set[Entry]]:
    """Split entries into the keys of words and terms, and all other entries."""
    all_entries = set(entries)
    others = {entry for entry in all_entries if entry[1] <= 0}
    return {key for key, _ in all_entries - others}, others


def note_counts(sql: sqlite3.Connection, scope: int, keys: Sequence[int]) -> list[int]:
    """Count the notes with each key."""
    rows = sql.execute(
        """SELECT (SELECT COUNT(*) FROM json_each(:stretches) s
            CROSS JOIN words w ON w.scope = :scope AND w.stretch = s.value AND w.key = a.value)
        FROM json_each(:asked) a ORDER BY a.key""",
        {"scope": scope, "stretches": stretches(sql, scope), "asked": json.dumps(list(keys))},
    )
    return [count for (count,) in rows]


def in_use(sql: sqlite3.Connection, scope: int, keys: Iterable[int]) -> set[int]:
    """Return those of the keys that any note has."""
    rows = sql.execute(
        """SELECT a.value FROM json_each(:asked) a WHERE EXISTS (SELECT 1 FROM json_each(:stretches) s
            CROSS JOIN words w ON w.scope = :scope AND w.stretch = s.value AND w.key = a.value)""",
        {"scope": scope, "stretches": stretches(sql, scope), "asked": json.dumps(list(keys))},
    )
    return {key for (key,) in rows}


def notes_with_all(
    sql: sqlite3.Connection, scope: int, stretch_list: str, key: int, others: Sequence[int]
) -> list[str]:
    """Return the notes of these stretches that have ``key`` and all the others, by ``seq``."""
    rows = sql.execute(
        """SELECT n.id FROM json_each(:stretches) s
        CROSS JOIN words w ON w.scope = :scope AND w.stretch = s.value AND w.key = :key
        JOIN notes n ON n.number = w.note
        WHERE NOT EXISTS (SELECT 1 FROM json_each(:others) WHERE NOT EXISTS (SELECT 1 FROM words o
            WHERE o.scope = :scope AND o.stretch = w.stretch AND o.key = value AND o.note = w.note)) ORDER BY n.seq""",
        {"scope": scope, "stretches": stretch_list, "key": key, "others": json.dumps(list(others))},
    )
    return [id for (id,) in rows]


def stretches(sql: sqlite3.Connection, scope: int) -> str:
    """Return the stretches of a scope that contain words, as a JSON list."""
    return json.dumps([stretch for (stretch,) in sql.execute(_STRETCHES, {"scope": scope})])
