"""Vector sets and nearest older notes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from zettel.errors import InvalidInput
from zettel.graph.bodies import read_note
from zettel.graph.columnar.columns import MISSING, Columns, as_ints
from zettel.graph.embedded import snapshots
from zettel.graph.embedded.scopes import RESTORING
from zettel.graph.embedded.write_index import WriteIndex
from zettel.model import Note, Scope
from zettel.ports import NearestNotes, VectorSet

if TYPE_CHECKING:
    from zettel.graph.columnar.tables import Table
    from zettel.ports.query import Floats, Ints

_SPACES = "SELECT id, name, dim, fingerprint, recipe, active FROM spaces"


def spaces(sql: sqlite3.Connection) -> list[VectorSet]:
    """Return all vector sets, oldest first."""
    return [_space(row) for row in sql.execute(f"{_SPACES} ORDER BY id")]


def dim_of(sql: sqlite3.Connection, space: int) -> int | None:
    """Return the dimension of a vector set, None if it does not exist."""
    row = sql.execute("SELECT dim FROM spaces WHERE id = ?", (space,)).fetchone()
    return int(row[0]) if row else None


def add_space(sql: sqlite3.Connection, name: str, dim: int, fingerprint: str, recipe: str) -> VectorSet:
    """Add a vector set, or return the existing set with the same values. The first set is active."""
    values = (name, dim, fingerprint, recipe)
    find = f"{_SPACES} WHERE name = ? AND dim = ? AND fingerprint = ? AND recipe = ?"
    row = sql.execute(find, values).fetchone()
    if row is None:
        sql.execute(
            """INSERT INTO spaces (name, dim, fingerprint, recipe, active)
            VALUES (?, ?, ?, ?, NOT EXISTS (SELECT 1 FROM spaces))""",
            values,
        )
        row = sql.execute(find, values).fetchone()
    return _space(row)


def activate(sql: sqlite3.Connection, space: int) -> bool:
    """Make this the only set, unless a note lacks its vector. Raises ``InvalidInput`` if the set does not exist."""
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
    """Return unarchived notes without a vector in this set, oldest first."""
    rows = sql.execute(
        f"""SELECT s.name, t.body FROM notes n JOIN scopes s ON s.number = n.scope JOIN texts t ON t.note = n.number
        WHERE NOT n.archived AND s.key NOT GLOB '{RESTORING}*'
        AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.note = n.number AND v.space = ?)
        ORDER BY n.number LIMIT ?""",
        (space, limit),
    )
    return [(Scope.model_validate_json(name), read_note(body)) for name, body in rows]


def of_notes(sql: sqlite3.Connection, scope: int, ids: Sequence[str], space: int) -> dict[str, Floats]:
    """Return the vectors of this set, by note; notes without one are missing."""
    rows = sql.execute(
        """SELECT n.id, v.vector FROM json_each(?) CROSS JOIN notes n ON n.scope = ? AND n.id = value
        JOIN vectors v ON v.note = n.number AND v.space = ?""",
        (json.dumps(list(ids)), scope, space),
    )
    return {id: np.frombuffer(row, "<f4") for id, row in rows}


def vectors_of_rows(sql: sqlite3.Connection, notes: Table, space: int, dim: int, rows: Ints) -> Floats:
    """Return the vectors of this set, (m, dim), of rows that have one."""
    found = sql.execute(
        "SELECT vector FROM json_each(?) CROSS JOIN vectors ON note = value AND space = ?",
        (json.dumps(notes["number"][rows].tolist()), space),
    )
    return np.frombuffer(b"".join(vector for (vector,) in found), "<f4").reshape(-1, dim)


def nearest_older(
    sql: sqlite3.Connection, columns: Columns | WriteIndex, ids: Sequence[str], k: int
) -> list[NearestNotes]:
    """Return for each note with a vector the k notes of lower seq with the highest cosine, ties by seq."""
    if not columns.dim:  # the vector set was deleted
        return []
    visible = columns.visible()
    embedded = columns.vectors.embedded
    rows = _rows_of(sql, columns, ids)
    rows = rows[rows < len(embedded)]  # ``embedded`` ends with the last row ever put
    rows = rows[embedded[rows] & visible[rows]]
    if not len(rows):
        return []
    near = columns.vectors.nearest_before(rows, k, visible)
    used = np.unique(np.concatenate([rows, *(others for others, _ in near)]))
    id_of = dict(zip(used.tolist(), _ids(sql, columns.notes["number"][used]), strict=True))
    return [
        NearestNotes(id_of[row], tuple(zip([id_of[other] for other in others.tolist()], cosines.tolist(), strict=True)))
        for row, (others, cosines) in zip(rows.tolist(), near, strict=True)
    ]


def _ids(sql: sqlite3.Connection, numbers: Ints) -> list[str]:
    statement = "SELECT n.id FROM json_each(?) CROSS JOIN notes n ON n.number = value"
    return [id for (id,) in sql.execute(statement, (json.dumps(numbers.tolist()),))]


def _rows_of(sql: sqlite3.Connection, columns: Columns | WriteIndex, ids: Sequence[str]) -> Ints:
    """Return the rows of the notes that exist, in ``seq`` order."""
    numbers = sql.execute(
        "SELECT n.number FROM json_each(?) CROSS JOIN notes n ON n.scope = ? AND n.id = value",
        (json.dumps(list(ids)), columns.scope),
    )
    rows = np.unique(columns.rows_of(as_ints([number for (number,) in numbers])))
    known: Ints = rows[rows != MISSING]
    return known


def _space(row: tuple[int, str, int, str, str, int]) -> VectorSet:
    id, name, dim, fingerprint, recipe, active = row
    return VectorSet(id, name, dim, fingerprint, recipe, bool(active))
