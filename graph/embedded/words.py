"""Which notes hold each word and each Term, as the file has it.

A scope's notes are taken a stretch at a time, by their ``seq``, and each stretch has an index of its own. New notes are
all in the last one, whose pages are few: a batch rewrites these and not pages all over the file, so that adding to a
large scope takes little longer than to a small one. Whoever asks for a key looks once into each stretch.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence

from zettel.graph.keys import Entry

STRETCH_BITS = 14
"""A stretch is this many bits of ``seq``: 16,384 numbers, which are some 5,000 to 8,000 notes. The migration that made
the table has it too; a store keeps what it was written with."""
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
    """The keys of words and Terms among entries, and all the others."""
    told = set(entries)
    others = {entry for entry in told if entry[1] <= 0}
    return {key for key, _ in told - others}, others


def holders(sql: sqlite3.Connection, scope: int, keys: Sequence[int]) -> list[int]:
    """How many notes hold each of these."""
    rows = sql.execute(
        """SELECT (SELECT COUNT(*) FROM json_each(:stretches) s
            CROSS JOIN words w ON w.scope = :scope AND w.stretch = s.value AND w.key = a.value)
        FROM json_each(:asked) a ORDER BY a.key""",
        {"scope": scope, "stretches": stretches(sql, scope), "asked": json.dumps(list(keys))},
    )
    return [count for (count,) in rows]


def held(sql: sqlite3.Connection, scope: int, keys: Iterable[int]) -> set[int]:
    """Those of the keys that any note holds."""
    rows = sql.execute(
        """SELECT a.value FROM json_each(:asked) a WHERE EXISTS (SELECT 1 FROM json_each(:stretches) s
            CROSS JOIN words w ON w.scope = :scope AND w.stretch = s.value AND w.key = a.value)""",
        {"scope": scope, "stretches": stretches(sql, scope), "asked": json.dumps(list(keys))},
    )
    return {key for (key,) in rows}


def holding_all(sql: sqlite3.Connection, scope: int, those: str, key: int, others: Sequence[int]) -> list[str]:
    """The notes of ``those`` stretches that hold ``key`` and all of the others, by ``seq``."""
    rows = sql.execute(
        """SELECT n.id FROM json_each(:stretches) s
        CROSS JOIN words w ON w.scope = :scope AND w.stretch = s.value AND w.key = :key
        JOIN notes n ON n.number = w.note
        WHERE NOT EXISTS (SELECT 1 FROM json_each(:others) WHERE NOT EXISTS (SELECT 1 FROM words o
            WHERE o.scope = :scope AND o.stretch = w.stretch AND o.key = value AND o.note = w.note)) ORDER BY n.seq""",
        {"scope": scope, "stretches": those, "key": key, "others": json.dumps(list(others))},
    )
    return [id for (id,) in rows]


def stretches(sql: sqlite3.Connection, scope: int) -> str:
    """Those that a scope has words of, as a list in JSON."""
    return json.dumps([stretch for (stretch,) in sql.execute(_STRETCHES, {"scope": scope})])
