"""The vector index interface and the exact index.

Up to ``LARGE`` vectors a scope uses ``ExactIndex``, which compares every vector. Larger scopes use
:class:`zettel.graph.columnar.ivf.IvfIndex`, which searches the nearest lists only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from zettel.graph.columnar.tables import Table, require
from zettel.ports.candidate_rules import best

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.graph.columnar.tables import SavedArrays
    from zettel.ports.query import Bools, Floats, Ints

LARGE = 50_000
"""Vectors of a scope from which on it uses inverted lists: comparing all 50,000 takes 4 to 5 ms."""
ROUNDING = 1e-5
"""Upper bound of the rounding error of a float32 product of unit vectors with a few hundred numbers."""
TOGETHER = 1024
"""Rows searched in one product, and the largest gap between two of them."""
MULTIPLIED = 64
"""Rows in one product with all older vectors: reading these from memory takes longer than the product of a few rows."""
SAMPLED = 16
"""One cosine in so many is ranked to find a lower bound of the k highest."""


class VectorIndex(Protocol):
    """Vectors by row. A row without a vector has cosine 0 with everything and is never returned as near."""

    changed_rows: list[Ints] | None
    """The rows added since a training of new lists began; None without a training."""

    @property
    def embedded(self) -> Bools:
        """Return which rows have a vector, up to the last row ever put."""
        ...

    def put(self, rows: Ints, vectors: Floats, lists: Ints | None = None) -> None:
        """Set the vectors of rows, (m, dim) unit rows; a zero row deletes the vector.

        ``lists`` contains the inverted list of each vector, -1 if unknown. An index without lists ignores it.
        """
        ...

    def reserve(self, rows: int) -> None:
        """Allocate memory for so many more vectors."""
        ...

    def drop(self, rows: Ints) -> None:
        """Delete the vectors of these rows."""
        ...

    def take(self, rows: Ints) -> Floats:
        """Return the (m, dim) vectors of these rows."""
        ...

    def cosines(self, rows: Ints, vector: Floats) -> Floats:
        """Return the (m,) cosines of these rows with a unit vector."""
        return products(self.take(rows), vector)

    def nearest(self, vector: Floats, k: int, allowed: Bools) -> Ints:
        """Return the ``k`` ``allowed`` rows, (rows,), of highest cosine with a unit vector, best first, ties by row."""
        ...

    def nearest_before(self, rows: Ints, k: int, allowed: Bools) -> list[tuple[Ints, Floats]]:
        """Return for each of ``rows`` the ``k`` nearest ``allowed`` rows before it, with cosines.

        ``rows`` are ascending and have vectors.
        """
        ...

    def copy(self) -> VectorIndex:
        """Return an independent copy; only ``drop`` may change the copy of an IVF index."""
        ...

    def save(self) -> SavedArrays:
        """Yield the arrays of this index."""
        ...

    def load(self, saved: dict[str, NDArray[Any]], rows: int) -> None:
        """Fill an empty index of at most so many rows from saved arrays. Raises as :meth:`Table.load`."""
        ...

    @property
    def nbytes(self) -> int:
        """Return the memory used."""
        ...


class ExactIndex(VectorIndex):
    """All vectors in one float32 array."""

    def __init__(self, dim: int) -> None:
        self._rows = Table(vector=(np.float32, (dim,)), embedded=(np.bool_, ()))
        self._dim = dim
        self._last: tuple[Floats, Floats] | None = None
        """The last question's vector, and its product with every row."""
        self.changed_rows: list[Ints] | None = None

    @property
    def embedded(self) -> Bools:
        embedded: Bools = self._rows["embedded"]
        return embedded

    def put(self, rows: Ints, vectors: Floats, lists: Ints | None = None) -> None:
        missing = int(rows.max(initial=-1)) + 1 - self._rows.used
        if missing > 0:
            self._rows.append(vector=np.zeros((missing, self._dim), np.float32), embedded=np.zeros(missing, bool))
        self._last = None
        self._rows["vector"][rows] = vectors
        self._rows["embedded"][rows] = vectors.any(axis=1)
        if self.changed_rows is not None:
            self.changed_rows.append(rows)

    def reserve(self, rows: int) -> None:
        self._rows.reserve(self._rows.used + rows)

    def drop(self, rows: Ints) -> None:
        self._last = None
        rows = rows[rows < self._rows.used]
        self._rows["vector"][rows] = 0
        self._rows["embedded"][rows] = False

    def take(self, rows: Ints) -> Floats:
        vectors: Floats = self._rows["vector"][rows]
        return vectors

    def cosines(self, rows: Ints, vector: Floats) -> Floats:
        return self._products(vector)[rows]

    def _products(self, vector: Floats) -> Floats:
        """Return the product of a vector with every row, computed once for a question."""
        if self._last is None or self._last[0] is not vector:
            self._last = vector, products(self._rows["vector"], vector)
        return self._last[1]

    def nearest(self, vector: Floats, k: int, allowed: Bools) -> Ints:
        """Compute float32 cosines of all vectors, then exact ones of the candidates, which order near ties."""
        rough = self._products(vector)
        allowed = allowed[: len(rough)] & self._rows["embedded"]
        rows = at_least(rough if allowed.all() else np.where(allowed, rough, np.float32(-np.inf)), k)
        cosines = exact(self._rows["vector"][rows], vector)
        return rows[best(cosines, rows, k)]

    def nearest_before(self, rows: Ints, k: int, allowed: Bools) -> list[tuple[Ints, Floats]]:
        """Search groups of rows, so that one product compares many rows with all before them."""
        nearest: list[tuple[Ints, Floats]] = []
        for group in np.split(rows, np.flatnonzero(np.diff(rows) > TOGETHER) + 1):
            for start in range(0, len(group), TOGETHER):
                nearest += self._group_nearest(group[start : start + TOGETHER], k, allowed)
        return nearest

    def _group_nearest(self, rows: Ints, k: int, allowed: Bools) -> list[tuple[Ints, Floats]]:
        last = int(rows[-1])
        vectors = self._rows["vector"]
        hidden = np.flatnonzero(~(allowed[:last] & self._rows["embedded"][:last]))
        nearest = []
        for start in range(0, len(rows), MULTIPLIED):
            chunk = rows[start : start + MULTIPLIED]
            rough = vectors[chunk] @ vectors[:last].T
            rough[:, hidden] = -np.inf
            for row, cosines in zip(chunk.tolist(), rough, strict=True):
                near = at_least(cosines[:row], k)
                cosines = exact(vectors[near], vectors[row])
                order = best(cosines, near, k)
                nearest.append((near[order], cosines[order].astype(np.float32)))
        return nearest

    def copy(self) -> ExactIndex:
        copy = ExactIndex(self._dim)
        copy._rows = self._rows.copy()
        return copy

    def save(self) -> SavedArrays:
        return self._rows.save()

    def load(self, saved: dict[str, NDArray[Any]], rows: int) -> None:
        self._last = None
        self._rows.load(saved)
        require(self._rows.used <= rows)

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes


def products(vectors: Floats, vector: Floats) -> Floats:
    """Return ``vectors @ vector``, (m, dim) @ (dim,) -> (m,), as m products of two vectors.

    OpenBLAS takes a quarter longer for one product of a large matrix, or uses several threads, which then wait busily
    for the next one.
    """
    product: Floats = np.matmul(vectors[:, None], vector[:, None])[:, 0, 0]
    return product


def at_least(rough: Floats, k: int) -> Ints:
    """Return the places of the ``k`` highest values, and of values that rounding may have put below them.

    -inf is never among them. The k-th highest value of a sample is a lower bound, so few values are ranked.
    """
    floor = -np.inf
    sample = rough[::SAMPLED]
    if len(sample) > k:
        floor = np.partition(sample, len(sample) - k)[len(sample) - k]
    places = np.flatnonzero(rough >= floor) if floor > -np.inf else np.flatnonzero(rough > -np.inf)
    if len(places) > k:
        values = rough[places]
        places = places[values >= np.partition(values, len(values) - k)[len(values) - k] - ROUNDING]
    return places


def exact(vectors: Floats, vector: Floats) -> NDArray[np.float64]:
    """Return (m,) cosines that do not depend on the number of vectors."""
    cosines: NDArray[np.float64] = (vectors.astype(np.float64) * vector.astype(np.float64)).sum(axis=1)
    return cosines
