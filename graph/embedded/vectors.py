"""The store's vector sets, and which older notes stand nearest."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from zettel.errors import InvalidInput
from zettel.graph.embedded.bodies import read_note
from zettel.graph.embedded.columns import Columns
from zettel.model import Note, Scope
from zettel.ports import Near, Space
from zettel.search.pool import best

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.query import Floats, Ints

_SPACES = "SELECT id, name, dim, fingerprint, recipe, active FROM spaces"
ROUNDING = 1e-5
"""More than float32 products of unit vectors of a few hundred numbers are ever off."""
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


def activate(sql: sqlite3.Connection, space: int) -> bool:
    """Make this the only set, unless a note still lacks a vector of it. Raises ``InvalidInput`` if it is not there."""
    if dim_of(sql, space) is None:
        raise InvalidInput(f"there is no vector set {space}")
    if without_vector(sql, space, 1):
        return False
    sql.execute("DELETE FROM vectors WHERE space != ?", (space,))
    sql.execute("DELETE FROM spaces WHERE id != ?", (space,))
    sql.execute("UPDATE spaces SET active = 1 WHERE id = ?", (space,))
    return True


def without_vector(sql: sqlite3.Connection, space: int, limit: int) -> list[tuple[Scope, Note]]:
    """Notes that this set lacks, oldest first; archived ones are embedded when they come back."""
    rows = sql.execute(
        """SELECT s.name, t.body FROM notes n JOIN scopes s ON s.number = n.scope JOIN texts t ON t.note = n.number
        WHERE NOT n.archived AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.note = n.number AND v.space = ?)
        ORDER BY n.number LIMIT ?""",
        (space, limit),
    )
    return [(Scope.model_validate_json(name), read_note(body)) for name, body in rows]


def nearest(
    columns: Columns, among: Ints, vector: Floats, k: int, products: Floats | None = None
) -> tuple[Ints, NDArray[np.float64]]:
    """Of these rows the k of highest cosine with a unit vector, ties by seq, with the cosines; exact.

    ``products`` are the rough cosines of all rows of the scope, if they were computed together with others. A plain
    product reads 20 MB in a scope of 20,000 notes, as an index that answers exactly would. How it rounds depends on
    how many rows it has, so those that may count are computed again, each by itself: equal texts are equally near.
    """
    vectors, seq = columns.notes["vector"], columns.notes["seq"]
    rough = (vectors @ vector if products is None else products)[among]
    if len(among) > k:
        among = among[rough >= np.partition(rough, len(rough) - k)[len(rough) - k] - ROUNDING]
    cosines = (vectors[among].astype(np.float64) * vector.astype(np.float64)).sum(axis=1)
    order = best(cosines, seq[among], k)
    return among[order], cosines[order]


def nearest_older(columns: Columns, rows: Ints, k: int) -> list[Near]:
    """For each row with a vector, the k rows of lower seq with the highest cosine, ties by seq."""
    notes, found = columns.notes, []
    present = notes["embedded"] & notes["alive"] & notes["shown"]
    asking, others = rows[present[rows]], np.flatnonzero(present)
    seq = notes["seq"][others]
    for start in range(0, len(asking), NEAR_AT_ONCE):
        some = asking[start : start + NEAR_AT_ONCE]
        for row, products in zip(some.tolist(), notes["vector"][some] @ notes["vector"].T, strict=True):
            older = others[seq < notes["seq"][row]]
            near, cosines = nearest(columns, older, notes["vector"][row], k, products)
            ids = [columns.ids[other] for other in near.tolist()]
            found.append(Near(columns.ids[row], tuple(zip(ids, cosines.tolist(), strict=True))))
    return found


def rows_by_id(columns: Columns, ids: Sequence[str]) -> Ints:
    """Rows of notes by id, in ``seq`` order; unknown ones left out."""
    asked = set(ids)
    rows = np.array([row for row, id in enumerate(columns.ids) if id in asked], np.int64)
    return rows[np.argsort(columns.notes["seq"][rows], kind="stable")]


def _space(row: tuple[int, str, int, str, str, int]) -> Space:
    id, name, dim, fingerprint, recipe, active = row
    return Space(id, name, dim, fingerprint, recipe, bool(active))
