"""The store's vector sets, and which older notes stand nearest."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from zettel.errors import InvalidInput
from zettel.graph.embedded.bodies import read_note
from zettel.graph.embedded.columns import GONE, Columns
from zettel.model import Note, Scope
from zettel.ports import Near, Space
from zettel.search.pool import best

if TYPE_CHECKING:
    from zettel.ports import Ints

_SPACES = "SELECT id, name, dim, fingerprint, recipe, active FROM spaces"
NEAR_AT_ONCE = 64
"""Notes compared with the whole scope at once: 64 rows of 20,000 cosines take 5 MB."""


def spaces(sql: sqlite3.Connection) -> list[Space]:
    """All vector sets, oldest first."""
    return [_space(row) for row in sql.execute(f"{_SPACES} ORDER BY id")]


def dim_of(sql: sqlite3.Connection, space: int) -> int | None:
    """How many numbers a vector of this set has; None: there is no such set."""
    row = sql.execute("SELECT dim FROM spaces WHERE id = ?", (space,)).fetchone()
    return int(row[0]) if row else None


def add_space(sql: sqlite3.Connection, name: str, dim: int, fingerprint: str, recipe: str) -> Space:
    """A new set, or the one of the same values; the first is active."""
    wanted = (name, dim, fingerprint, recipe)
    find = f"{_SPACES} WHERE name = ? AND dim = ? AND fingerprint = ? AND recipe = ?"
    row = sql.execute(find, wanted).fetchone()
    if row is None:
        sql.execute(
            """INSERT INTO spaces (name, dim, fingerprint, recipe, active)
            VALUES (?, ?, ?, ?, NOT EXISTS (SELECT 1 FROM spaces))""",
            wanted,
        )
        row = sql.execute(find, wanted).fetchone()
    return _space(row)


def activate(sql: sqlite3.Connection, space: int) -> None:
    """Make this the only set. Raises ``InvalidInput`` if it is not there."""
    if dim_of(sql, space) is None:
        raise InvalidInput(f"there is no vector set {space}")
    sql.execute("DELETE FROM vectors WHERE space != ?", (space,))
    sql.execute("DELETE FROM spaces WHERE id != ?", (space,))
    sql.execute("UPDATE spaces SET active = 1 WHERE id = ?", (space,))


def without_vector(sql: sqlite3.Connection, space: int, limit: int) -> list[tuple[Scope, Note]]:
    """Notes that this set lacks, oldest first; archived ones are embedded when they come back."""
    rows = sql.execute(
        """SELECT s.name, t.body FROM notes n JOIN scopes s ON s.number = n.scope JOIN texts t ON t.note = n.number
        WHERE NOT n.archived AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.note = n.number AND v.space = ?)
        ORDER BY n.number LIMIT ?""",
        (space, limit),
    )
    return [(Scope.model_validate_json(name), read_note(body)) for name, body in rows]


def nearest_older(columns: Columns, rows: Ints, k: int) -> list[Near]:
    """For each row with a vector, the k rows of lower seq with the highest cosine, ties by seq."""
    notes = columns.notes
    asking = rows[notes["embedded"][rows] & notes["alive"][rows] & notes["shown"][rows]]
    others = np.flatnonzero(notes["embedded"] & notes["alive"] & notes["shown"])
    seq, found = notes["seq"][others], []
    for start in range(0, len(asking), NEAR_AT_ONCE):
        some = asking[start : start + NEAR_AT_ONCE]
        cosines = notes["vector"][some] @ notes["vector"].T
        for row, values in zip(some.tolist(), cosines, strict=True):
            older = np.flatnonzero(seq < notes["seq"][row])
            mine = values[others[older]]
            order = best(mine, seq[older], k)
            found.append(
                Near(
                    columns.ids[row],
                    tuple((columns.ids[others[older[i]]], float(mine[i])) for i in order.tolist()),
                )
            )
    return found


def rows_by_id(sql: sqlite3.Connection, columns: Columns, ids: Sequence[str]) -> Ints:
    """Rows of notes by id, in that order; unknown ones left out."""
    numbers: list[int] = []
    for id in ids:
        row = sql.execute("SELECT number FROM notes WHERE scope = ? AND id = ?", (columns.scope, id)).fetchone()
        if row is not None:
            numbers.append(row[0])
    rows = columns.rows_of(np.array(numbers, np.int64))
    return rows[rows != GONE]


def _space(row: tuple[int, str, int, str, str, int]) -> Space:
    id, name, dim, fingerprint, recipe, active = row
    return Space(id, name, dim, fingerprint, recipe, bool(active))
