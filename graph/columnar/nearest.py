"""The vectors of one scope in memory, by row: which rows stand nearest to a question, and to one another.

Up to ``LARGE`` vectors every one is looked at. Beyond, they are kept as 8-bit codes in inverted lists
(:mod:`zettel.graph.embedded.inverted`), of which the nearest are looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from zettel.graph.columnar.growing import Table
from zettel.search.pool import best

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.query import Bools, Floats, Ints

LARGE = 50_000
"""Vectors of a scope from which on not every one is looked at: a product with all of 50,000 takes about 5 ms."""
ROUNDING = 1e-5
"""More than float32 products of unit vectors of a few hundred numbers are ever off."""
TOGETHER = 1024
"""Rows that are asked for together, and no more than so far from one to the next."""
SLACK = 16
"""How many more than wanted are asked for: rounding may have put them in another order."""
SAMPLED = 16
"""One cosine in so many is ranked to learn below which the others need not be."""


class Nearest(Protocol):
    """Vectors by row; a row without one has the cosine 0 with everything and is never near."""

    moved: list[Ints] | None
    """While somebody builds other lists from these vectors: the rows that were put meanwhile."""

    @property
    def embedded(self) -> Bools:
        """Which rows have a vector, as far as any was put."""
        ...

    def put(self, rows: Ints, vectors: Floats, lists: Ints | None = None) -> None:
        """Give rows their vectors, (m, dim) unit rows, in place of those they had; a zero row is none.

        ``lists``: the inverted list of each, as far as it is known, else -1.
        """
        ...

    def reserve(self, rows: int) -> None:
        """Make room for so many vectors more at once."""
        ...

    def drop(self, rows: Ints) -> None: ...

    def take(self, rows: Ints) -> Floats:
        """(m, dim) vectors of these rows."""
        ...

    def cosines(self, rows: Ints, vector: Floats) -> Floats:
        """(m,) cosines of these rows with a unit vector."""
        ...

    def nearest(self, vector: Floats, k: int, allowed: Bools) -> Ints:
        """Of the ``allowed`` rows, (rows,), the ``k`` of highest cosine with a unit vector, best first, ties by row."""
        ...

    def nearest_before(self, rows: Ints, k: int, allowed: Bools) -> list[tuple[Ints, Floats]]:
        """For each of ``rows`` (ascending, with vectors) the ``k`` nearest ``allowed`` rows before it, with cosines."""
        ...

    def copied(self) -> Nearest: ...

    @property
    def nbytes(self) -> int: ...


class Flat:
    """All vectors as they are."""

    def __init__(self, dim: int) -> None:
        self._rows = Table(vector=(np.float32, (dim,)), embedded=(np.bool_, ()))
        self._dim = dim
        self.moved: list[Ints] | None = None

    @property
    def embedded(self) -> Bools:
        """See :class:`Nearest`."""
        embedded: Bools = self._rows["embedded"]
        return embedded

    def put(self, rows: Ints, vectors: Floats, lists: Ints | None = None) -> None:
        """See :class:`Nearest`; there are no lists."""
        missing = int(rows.max(initial=-1)) + 1 - self._rows.used
        if missing > 0:
            self._rows.append(vector=np.zeros((missing, self._dim), np.float32), embedded=np.zeros(missing, bool))
        self._rows["vector"][rows] = vectors
        self._rows["embedded"][rows] = vectors.any(axis=1)
        if self.moved is not None:
            self.moved.append(rows)

    def reserve(self, rows: int) -> None:
        """See :class:`Nearest`."""
        self._rows.reserve(self._rows.used + rows)

    def drop(self, rows: Ints) -> None:
        """See :class:`Nearest`."""
        rows = rows[rows < self._rows.used]
        self._rows["vector"][rows] = 0
        self._rows["embedded"][rows] = False

    def take(self, rows: Ints) -> Floats:
        """See :class:`Nearest`."""
        vectors: Floats = self._rows["vector"][rows]
        return vectors

    def cosines(self, rows: Ints, vector: Floats) -> Floats:
        """See :class:`Nearest`."""
        cosines: Floats = self._rows["vector"][rows] @ vector
        return cosines

    def nearest(self, vector: Floats, k: int, allowed: Bools) -> Ints:
        """See :class:`Nearest`.

        How a product rounds depends on how many rows it has, so those that may count are computed again, each by
        itself: equal texts are equally near.
        """
        rough = self._rows["vector"] @ vector
        allowed = allowed[: len(rough)] & self._rows["embedded"]
        if not allowed.all():
            rough[~allowed] = -np.inf
        rows = at_least(rough, k)
        cosines = exact(self._rows["vector"][rows], vector)
        return rows[best(cosines, rows, k)]

    def nearest_before(self, rows: Ints, k: int, allowed: Bools) -> list[tuple[Ints, Floats]]:
        """See :class:`Nearest`.

        FAISS looks through what is older than all that are asked for together, and a product through the rest.
        """
        found: list[tuple[Ints, Floats]] = []
        for near in np.split(rows, np.flatnonzero(np.diff(rows) > TOGETHER) + 1):
            for start in range(0, len(near), TOGETHER):
                found += self._before(near[start : start + TOGETHER], k, allowed)
        return found

    def _before(self, rows: Ints, k: int, allowed: Bools) -> list[tuple[Ints, Floats]]:
        vectors, first = self._rows["vector"], int(rows[0])
        shown = np.flatnonzero(allowed[: int(rows[-1])] & self._rows["embedded"][: int(rows[-1])])
        older, between = shown[shown < first], shown[shown >= first]
        far = self._rough(rows, older, k)
        beside = vectors[rows] @ vectors[between].T
        found = []
        for row, candidates, newer in zip(rows.tolist(), far, beside, strict=True):
            newer = newer[: int(np.searchsorted(between, row))]
            near = np.concatenate([older[candidates], between[at_least(newer, k)]])
            cosines = exact(vectors[near], vectors[row])
            order = best(cosines, near, k)
            found.append((near[order], cosines[order].astype(np.float32)))
        return found

    def _rough(self, rows: Ints, older: Ints, k: int) -> list[Ints]:
        """For each row the places in ``older`` that may be among its ``k`` nearest there."""
        import faiss

        if not len(older):
            return [older] * len(rows)
        vectors = self._rows["vector"]
        others = vectors[: len(older)] if older[-1] == len(older) - 1 else vectors[older]
        wanted = min(k + SLACK, len(older))
        cosines, places = faiss.knn(vectors[rows], others, wanted, metric=faiss.METRIC_INNER_PRODUCT)
        sure = (len(older) <= k + SLACK) | (cosines[:, -1] < cosines[:, min(k, len(older)) - 1] - ROUNDING)
        return [
            some if is_sure else at_least(others @ vectors[row], k)  # more alike than were asked for
            for row, some, is_sure in zip(rows.tolist(), places, sure, strict=True)
        ]

    def copied(self) -> Flat:
        """The same, to be changed apart."""
        copy = Flat(self._dim)
        copy._rows = self._rows.copied()
        return copy

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self._rows.nbytes


def at_least(rough: Floats, k: int) -> Ints:
    """Places of the ``k`` highest values and of those that rounding may have put below them; -inf is never among them.

    The k-th highest of a sample is a floor under the k-th highest of all, and what is above the floor is soon ranked.
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
    """(m,) cosines that do not depend on how many are computed at once."""
    cosines: NDArray[np.float64] = (vectors.astype(np.float64) * vector.astype(np.float64)).sum(axis=1)
    return cosines
