"""Training, storage and replacement of the IVF lists of large scopes.

Training on a million vectors takes half a minute, so link jobs do it, and later opens load the result. Of deleted notes
the lists contain only numbers until the next save, no text and no vector.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.graph.columnar.columns import Columns
from zettel.graph.columnar.ivf import COMPACT, IvfIndex, IvfLists, bytes_per_vector, index_with_lists
from zettel.graph.columnar.vector_index import LARGE

if TYPE_CHECKING:
    from zettel.graph.embedded.write_index import WriteIndex
    from zettel.ports.query import Floats, Ints

GROWTH = 4
"""Growth of the number of vectors since a training that makes the next one due."""
WRITTEN_AT = 0.125
"""Share of vectors without saved lists from which on the lists are saved."""
_SAMPLED = 48
"""Sampled vectors per centroid for k-means: FAISS advises at least 39."""
_ROUNDS = 8
"""Iterations of k-means: more move few vectors to another list."""
_READ_AT_ONCE = 10_000
_SEED = 1
_PAIR = np.dtype([("note", "<i8"), ("list", "<u2")])


class TrainingRequest(NamedTuple):
    """Input of a training: ascending note numbers, dimension, epoch, and if the index is for searches."""

    notes: Ints
    dim: int
    epoch: int
    searched: bool


def lists_for(vectors: int) -> int:
    """Return the number of lists: the power of two nearest twice the root of ``vectors``, at most 2,048.

    Fewer lists are longer to search. More take longer to train and to choose from than they save.
    """
    return int(min(2048, 2 ** round(np.log2(2 * np.sqrt(vectors)))))


def epoch_of(sql: sqlite3.Connection, scope: int, space: int) -> int:
    """Return the epoch of the saved lists, 0 if there are none."""
    row = sql.execute("SELECT epoch FROM lists WHERE scope = ? AND space = ?", (scope, space)).fetchone()
    return int(row[0]) if row else 0


def load(sql: sqlite3.Connection, scope: int, space: int, dim: int) -> IvfLists | None:
    """Load the lists of a scope's vectors, if it has any."""
    row = sql.execute(
        "SELECT epoch, trained, centroids, assigned FROM lists WHERE scope = ? AND space = ?", (scope, space)
    ).fetchone()
    if row is None:
        return None
    epoch, trained, centroids, assigned = row
    rows = np.frombuffer(centroids, "<f4").reshape(-1, dim)
    pairs = np.frombuffer(assigned, _PAIR)
    notes, assigned_lists = pairs["note"].astype(np.int64), pairs["list"].astype(np.int64)
    return IvfLists(epoch, trained, rows[:-2], rows[-2:], notes, assigned_lists)


def save(sql: sqlite3.Connection, scope: int, space: int, ivf: IvfLists) -> None:
    """Save lists, unless another process has stored a newer training or the scope or vector set was deleted."""
    exists = "SELECT EXISTS (SELECT 1 FROM scopes WHERE number = ?) AND EXISTS (SELECT 1 FROM spaces WHERE id = ?)"
    if not sql.execute(exists, (scope, space)).fetchone()[0] or epoch_of(sql, scope, space) > ivf.epoch:
        return
    pairs = np.empty(len(ivf.notes), _PAIR)
    pairs["note"], pairs["list"] = ivf.notes, ivf.lists
    centroids = np.concatenate([ivf.centroids, ivf.code_range]).astype("<f4").tobytes()
    sql.execute(
        "INSERT OR REPLACE INTO lists (scope, space, epoch, trained, centroids, assigned) VALUES (?, ?, ?, ?, ?, ?)",
        (scope, space, ivf.epoch, ivf.trained, centroids, pairs.tobytes()),
    )


def index_bytes(vectors: int, dim: int, trained: int | None) -> int:
    """Return the memory of an index of so many vectors: exact, or with lists trained on ``trained`` of them."""
    exact = np.dtype(np.float32).itemsize * dim
    return vectors * (exact if trained is None else bytes_per_vector(dim, trained))


def due(vectors: int, ivf: IvfLists | None) -> bool:
    """Return if a scope with so many vectors requires a (new) training."""
    if ivf is None:
        return vectors >= LARGE
    return vectors >= GROWTH * ivf.trained or vectors >= COMPACT > ivf.trained


def train(sql: sqlite3.Connection, request: TrainingRequest, space: int) -> tuple[IvfLists, IvfIndex] | None:
    """Train lists with spherical k-means on a sample, and fill an index with all vectors.

    The row of a vector is its place in ``IvfLists.notes``. Returns None if too many vectors were deleted meanwhile.
    """
    notes, dim = request.notes, request.dim
    trained = _train_centroids(sql, notes, space, dim)
    if trained is None:
        return None
    centroids, code_range = trained
    index = index_with_lists(centroids, code_range, len(notes), searched=request.searched)
    chunks: list[Ints] = []
    first = 0
    for numbers, vectors in _read(sql, notes, space, dim):
        index.put(np.arange(first, first + len(numbers)), vectors)
        chunks.append(numbers)
        first += len(numbers)
    lists = index.lists(np.arange(first))
    return IvfLists(request.epoch, len(notes), centroids, code_range, np.concatenate(chunks), lists), index


def _train_centroids(sql: sqlite3.Connection, notes: Ints, space: int, dim: int) -> tuple[Floats, Floats] | None:
    """Return centroids and code range, see ``IvfIndex``, from a sample small enough for FAISS not to copy it."""
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
    """Yield the numbers and vectors of these notes in chunks, without zero vectors."""
    for start in range(0, len(notes), _READ_AT_ONCE):
        wanted = json.dumps(notes[start : start + _READ_AT_ONCE].tolist())
        rows = sql.execute(
            "SELECT note, vector FROM json_each(?) CROSS JOIN vectors ON note = value AND space = ?", (wanted, space)
        ).fetchall()
        numbers = np.array([number for number, _ in rows], np.int64)
        vectors = np.frombuffer(b"".join(vector for _, vector in rows), "<f4").reshape(-1, dim)
        nonzero = vectors.any(axis=1)
        yield numbers[nonzero], vectors[nonzero]


def start_training(columns: Columns | WriteIndex) -> TrainingRequest | None:
    """Return a request if a training is due. The columns then record changed rows until :func:`adopt`."""
    embedded = np.flatnonzero(columns.vectors.embedded)
    if not due(len(embedded), columns.ivf):
        return None
    columns.vectors.changed_rows = []
    epoch = 1 if columns.ivf is None else columns.ivf.epoch + 1
    numbers = columns.notes["number"][embedded]
    return TrainingRequest(numbers, columns.dim, epoch, searched=isinstance(columns, Columns))


def adopt(columns: Columns | WriteIndex, ivf: IvfLists, index: IvfIndex) -> None:
    """Replace the vector index by a trained one, unless the columns were reloaded during the training."""
    old, changes = columns.vectors, columns.vectors.changed_rows
    if changes is None:
        return
    index.renumber(columns.rows_of(ivf.notes), columns.rows)
    if changes:
        changed = np.unique(np.concatenate(changes))
        index.put(changed, old.take(changed))
    still_embedded = np.zeros(columns.rows, bool)
    still_embedded[: len(old.embedded)] = old.embedded
    index.drop(np.flatnonzero(index.embedded & ~still_embedded[: len(index.embedded)]))
    columns.vectors, columns.ivf = index, ivf


def unsaved_lists(columns: Columns | WriteIndex) -> IvfLists | None:
    """Return the current list of every vector, if a good part of them is not saved yet."""
    ivf, vectors = columns.ivf, columns.vectors
    if ivf is None or not isinstance(vectors, IvfIndex):
        return None
    rows = np.flatnonzero(vectors.embedded)
    if len(rows) - len(ivf.notes) < WRITTEN_AT * len(rows):
        return None
    columns.ivf = replace(ivf, notes=columns.notes["number"][rows], lists=vectors.lists(rows))
    return columns.ivf
