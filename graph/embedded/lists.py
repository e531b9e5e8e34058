"""The inverted lists of large scopes, as the store keeps them: made and kept up beside the work of link jobs.

To find the centroids of a million vectors, and each one's nearest, takes half a minute; whoever opens the store later
reads both in a moment. A note that goes leaves its number here until the lists are written again: no text, no vector.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.graph.columnar.columns import Columns
from zettel.graph.columnar.nearest import LARGE
from zettel.graph.embedded.inverted import Inverted, bytes_a_code

if TYPE_CHECKING:
    from zettel.graph.embedded.outline import Outline
    from zettel.query import Floats, Ints

GROWTH = 4
"""Times as many vectors as the centroids were found among before they are found anew."""
WRITTEN_AT = 0.125
"""Share of the vectors whose lists are not in the store yet, when they are written."""
_SAMPLED = 48
"""Vectors for each centroid that k-means looks at: FAISS advises 39 at least."""
_ROUNDS = 8
"""Of k-means: more move few vectors to another list."""
_READ_AT_ONCE = 10_000
_SEED = 1
_PAIR = np.dtype([("note", "<i8"), ("list", "<u2")])


@dataclass(frozen=True)
class Listed:
    """What the store has: the lists' centroids, and the list of each note's vector as far as it was written."""

    epoch: int
    trained: int
    centroids: Floats  # (lists, dim)
    reach: Floats  # (2, dim)
    notes: Ints  # (m,) numbers, ascending
    lists: Ints  # (m,)

    @property
    def mark(self) -> tuple[int, int]:
        """What tells these lists from others: two processes may have found some at once."""
        return self.epoch, zlib.crc32(self.reach.tobytes(), zlib.crc32(self.centroids.tobytes()))

    def inverted(self, *, at_hand: bool = True) -> Inverted:
        """Empty lists."""
        return Inverted(self.centroids, self.reach, at_hand=at_hand)

    def of(self, notes: Ints) -> Ints:
        """The list of each of these notes, -1 if it is not known."""
        if not len(self.notes):
            return np.full(len(notes), -1)
        places = np.minimum(np.searchsorted(self.notes, notes), len(self.notes) - 1)
        return np.where(self.notes[places] == notes, self.lists[places], -1)


class Wanted(NamedTuple):
    """Lists to be found: the numbers of a scope's notes, ascending; the vectors' dimension; which training it is; and
    whether codes are to be at hand."""

    notes: Ints
    dim: int
    epoch: int
    at_hand: bool


def lists_for(vectors: int) -> int:
    """How many lists: the power of two about twice the root of the vectors' number, 2,048 at most.

    Fewer would each hold more to look at; more would take longer to find, and to choose from, than they save.
    """
    return int(min(2048, 2 ** round(np.log2(2 * np.sqrt(vectors)))))


def epoch_of(sql: sqlite3.Connection, scope: int, space: int) -> int:
    """Which training the store's lists are of; 0: there are none."""
    row = sql.execute("SELECT epoch FROM lists WHERE scope = ? AND space = ?", (scope, space)).fetchone()
    return int(row[0]) if row else 0


def load(sql: sqlite3.Connection, scope: int, space: int, dim: int) -> Listed | None:
    """The lists of a scope's vectors, if it has any."""
    row = sql.execute(
        "SELECT epoch, trained, centroids, assigned FROM lists WHERE scope = ? AND space = ?", (scope, space)
    ).fetchone()
    if row is None:
        return None
    epoch, trained, centroids, assigned = row
    rows = np.frombuffer(centroids, "<f4").reshape(-1, dim)
    pairs = np.frombuffer(assigned, _PAIR)
    return Listed(epoch, trained, rows[:-2], rows[-2:], pairs["note"].astype(np.int64), pairs["list"].astype(np.int64))


def save(sql: sqlite3.Connection, scope: int, space: int, listed: Listed) -> None:
    """Write lists in place of those that are there, unless somebody else has found newer ones meanwhile.

    Nothing of a scope or a vector set that is gone by now is written.
    """
    there = "SELECT EXISTS (SELECT 1 FROM scopes WHERE number = ?) AND EXISTS (SELECT 1 FROM spaces WHERE id = ?)"
    if not sql.execute(there, (scope, space)).fetchone()[0] or epoch_of(sql, scope, space) > listed.epoch:
        return
    pairs = np.empty(len(listed.notes), _PAIR)
    pairs["note"], pairs["list"] = listed.notes, listed.lists
    centroids = np.concatenate([listed.centroids, listed.reach]).astype("<f4").tobytes()
    sql.execute(
        "INSERT OR REPLACE INTO lists (scope, space, epoch, trained, centroids, assigned) VALUES (?, ?, ?, ?, ?, ?)",
        (scope, space, listed.epoch, listed.trained, centroids, pairs.tobytes()),
    )


def index_bytes(vectors: int, dim: int, listed: bool) -> int:
    """Memory that so many vectors take for searching: whole, or as codes in lists."""
    return vectors * (bytes_a_code(dim) if listed else np.dtype(np.float32).itemsize * dim)


def due(vectors: int, listed: Listed | None) -> bool:
    """Whether a scope with so many vectors wants (other) centroids."""
    return vectors >= LARGE if listed is None else vectors >= GROWTH * listed.trained


def find(sql: sqlite3.Connection, wanted: Wanted, space: int) -> tuple[Listed, Inverted] | None:
    """Centroids for the vectors of these notes, and the lists filled with them; None: too many have gone meanwhile.

    The row of a vector in the lists is its place in ``Listed.notes``. Spherical k-means on a sample.
    """
    notes, dim = wanted.notes, wanted.dim
    trained = _trained(sql, notes, space, dim)
    if trained is None:
        return None
    centroids, reach = trained
    inverted = Inverted(centroids, reach, at_hand=wanted.at_hand)
    there: list[Ints] = []
    first = 0
    for numbers, vectors in _read(sql, notes, space, dim):
        inverted.put(np.arange(first, first + len(numbers)), vectors)
        there.append(numbers)
        first += len(numbers)
    found = np.concatenate(there)
    listed = Listed(wanted.epoch, len(found), centroids, reach, found, inverted.lists(np.arange(len(found))))
    return listed, inverted


def _trained(sql: sqlite3.Connection, notes: Ints, space: int, dim: int) -> tuple[Floats, Floats] | None:
    """Centroids and reach, see ``Inverted``, from as many vectors as FAISS takes without a copy of its own."""
    import faiss

    lists = lists_for(len(notes))
    count = min(len(notes), _SAMPLED * lists)
    sample, filled = np.empty((count, dim), np.float32), 0
    for _, vectors in _read(sql, notes[np.arange(count) * len(notes) // count], space, dim):
        sample[filled : filled + len(vectors)] = vectors
        filled += len(vectors)
    sample = sample[:filled]
    if filled < lists:
        return None
    training = faiss.Kmeans(dim, lists, niter=_ROUNDS, spherical=True, seed=_SEED, max_points_per_centroid=_SAMPLED)
    training.train(sample)
    return np.asarray(training.centroids, np.float32), np.stack([sample.min(axis=0), sample.max(axis=0)])


def _read(sql: sqlite3.Connection, notes: Ints, space: int, dim: int) -> Iterator[tuple[Ints, Floats]]:
    """The numbers and vectors of these notes, as far as they have one that is not zero, some at a time."""
    for start in range(0, len(notes), _READ_AT_ONCE):
        wanted = json.dumps(notes[start : start + _READ_AT_ONCE].tolist())
        rows = sql.execute(
            "SELECT note, vector FROM json_each(?) CROSS JOIN vectors ON note = value AND space = ?", (wanted, space)
        ).fetchall()
        numbers = np.array([number for number, _ in rows], np.int64)
        vectors = np.frombuffer(b"".join(vector for _, vector in rows), "<f4").reshape(-1, dim)
        there = vectors.any(axis=1)
        yield numbers[there], vectors[there]


def wanted(columns: Columns | Outline) -> Wanted | None:
    """For which vectors lists are to be found now, if for any.

    From then on the columns keep account of what changes, until :func:`adopt`.
    """
    embedded = np.flatnonzero(columns.vectors.embedded)
    if not due(len(embedded), columns.listed):
        return None
    columns.vectors.moved = []
    epoch = 1 if columns.listed is None else columns.listed.epoch + 1
    return Wanted(columns.notes["number"][embedded], columns.dim, epoch, at_hand=isinstance(columns, Columns))


def adopt(columns: Columns | Outline, listed: Listed, inverted: Inverted) -> None:
    """Go over to lists that were found meanwhile, unless the columns have been read anew."""
    old, moved = columns.vectors, columns.vectors.moved
    if moved is None:
        return
    inverted.renumber(columns.rows_of(listed.notes), columns.rows)
    if moved:
        changed = np.unique(np.concatenate(moved))
        inverted.put(changed, old.take(changed))
    still = np.zeros(columns.rows, bool)
    still[: len(old.embedded)] = old.embedded
    inverted.drop(np.flatnonzero(inverted.embedded & ~still[: len(inverted.embedded)]))
    columns.vectors, columns.listed = inverted, listed


def unwritten(columns: Columns | Outline) -> Listed | None:
    """All lists as they are, if a good part of them is not in the store yet."""
    listed, vectors = columns.listed, columns.vectors
    if listed is None or not isinstance(vectors, Inverted):
        return None
    rows = np.flatnonzero(vectors.embedded)
    if len(rows) - len(listed.notes) < WRITTEN_AT * len(rows):
        return None
    columns.listed = replace(listed, notes=columns.notes["number"][rows], lists=vectors.lists(rows))
    return columns.listed
