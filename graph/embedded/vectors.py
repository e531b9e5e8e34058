"""The store's vector sets, and which older notes stand nearest."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from zettel.errors import InvalidInput
from zettel.graph.bodies import read_note
from zettel.graph.columnar.columns import GONE, Columns, as_ints
from zettel.graph.embedded import snapshots
from zettel.graph.embedded.outline import Outline
from zettel.graph.embedded.scopes import RESTORING
from zettel.model import Note, Scope
from zettel.ports import Near, Space

if TYPE_CHECKING:
    from zettel.query import Floats, Ints

_SPACES = "SELECT id, name, dim, fingerprint, recipe, active FROM spaces"


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


def activate(sql: sqlite3.Connection, space: int) -> bool:
    """Make this the only set, unless a note still lacks a vector of it. Raises ``InvalidInput`` if it is not there."""
    if dim_of(sql, space) is None:
        raise InvalidInput(f"there is no vector set {space}")
    if without_vector(sql, space, 1):
        return False
    sql.execute("DELETE FROM vectors WHERE space != ?", (space,))
    sql.execute("DELETE FROM lists WHERE space != ?", (space,))
    snapshots.drop(sql, "space != ?", space)
    sql.execute("DELETE FROM spaces WHERE id != ?", (space,))
    sql.execute("UPDATE spaces SET active = 1 WHERE id = ?", (space,))
    return True


def without_vector(sql: sqlite3.Connection, space: int, limit: int) -> list[tuple[Scope, Note]]:
    """Notes that this set lacks, oldest first; archived ones are embedded when they come back."""
    rows = sql.execute(
        f"""SELECT s.name, t.body FROM notes n JOIN scopes s ON s.number = n.scope JOIN texts t ON t.note = n.number
        WHERE NOT n.archived AND s.key NOT GLOB '{RESTORING}*'
        AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.note = n.number AND v.space = ?)
        ORDER BY n.number LIMIT ?""",
        (space, limit),
    )
    return [(Scope.model_validate_json(name), read_note(body)) for name, body in rows]


def of_notes(sql: sqlite3.Connection, scope: int, ids: Sequence[str], space: int) -> dict[str, Floats]:
    """The vectors of those of the notes that have one."""
    rows = sql.execute(
        """SELECT n.id, v.vector FROM json_each(?) CROSS JOIN notes n ON n.scope = ? AND n.id = value
        JOIN vectors v ON v.note = n.number AND v.space = ?""",
        (json.dumps(list(ids)), scope, space),
    )
    return {id: np.frombuffer(row, "<f4") for id, row in rows}


def nearest_older(sql: sqlite3.Connection, columns: Columns | Outline, ids: Sequence[str], k: int) -> list[Near]:
    """For each of these notes with a vector, the k of lower seq with the highest cosine, ties by seq."""
    if not columns.dim:  # the vector set is gone
        return []
    visible = columns.visible()
    embedded = columns.vectors.embedded
    rows = _rows_of(sql, columns, ids)
    rows = rows[rows < len(embedded)]  # it ends with the last that has a vector
    rows = rows[embedded[rows] & visible[rows]]
    if not len(rows):
        return []
    near = columns.vectors.nearest_before(rows, k, visible)
    told = np.unique(np.concatenate([rows, *(others for others, _ in near)]))
    names = _ids(sql, columns.notes["number"][told])
    id_of = dict(zip(told.tolist(), names, strict=True))
    return [
        Near(id_of[row], tuple(zip([id_of[other] for other in others.tolist()], cosines.tolist(), strict=True)))
        for row, (others, cosines) in zip(rows.tolist(), near, strict=True)
    ]


def _ids(sql: sqlite3.Connection, numbers: Ints) -> list[str]:
    asked = json.dumps(numbers.tolist())
    return [
        id for (id,) in sql.execute("SELECT n.id FROM json_each(?) CROSS JOIN notes n ON n.number = value", (asked,))
    ]


def _rows_of(sql: sqlite3.Connection, columns: Columns | Outline, ids: Sequence[str]) -> Ints:
    """Rows of notes by id, in ``seq`` order; unknown ones left out."""
    numbers = sql.execute(
        "SELECT n.number FROM json_each(?) CROSS JOIN notes n ON n.scope = ? AND n.id = value",
        (json.dumps(list(ids)), columns.scope),
    )
    rows = np.unique(columns.rows_of(as_ints([number for (number,) in numbers])))
    known: Ints = rows[rows != GONE]
    return known


def _space(row: tuple[int, str, int, str, str, int]) -> Space:
    id, name, dim, fingerprint, recipe, active = row
    return Space(id, name, dim, fingerprint, recipe, bool(active))
