"""Evaluates conditions on metadata and fields inside SQL, by a function of Python."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

from zettel.graph.bodies import read_note
from zettel.ports.conditions import matches, reads_fields

if TYPE_CHECKING:
    from zettel.ports.conditions import Condition

_BODY = "SELECT w.body FROM texts w WHERE w.note = n.number"
_METADATA = "SELECT json_extract(w.body, '$.metadata') FROM texts w WHERE w.note = n.number"


def clause(sql: sqlite3.Connection, where: Condition | None) -> str:
    """Return a condition on the note ``n`` that begins with AND, or an empty text; registers its function."""
    if where is None:
        return ""
    if not reads_fields(where):
        sql.create_function("meets", 1, lambda metadata: matches(where, json.loads(metadata or "{}")))
        return f"AND meets(({_METADATA}))"

    def meets(body: str) -> bool:
        note = read_note(body)
        return matches(where, note.metadata, note)

    sql.create_function("meets", 1, meets)
    return f"AND meets(({_BODY}))"
