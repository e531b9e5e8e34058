"""Vectors of a large scope: 8-bit codes in inverted lists, of which a question looks at the nearest (FAISS's IVF).

Each vector stands in the list of the centroid that it is nearest to (Sivic and Zisserman 2003; Jégou et al. 2011).
Which list that is costs the most to find out, so it is kept in the store (see ``lists.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.graph.columnar.growing import Gathered, Table, require, within
from zettel.graph.columnar.nearest import exact
from zettel.search.pool import best

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.graph.columnar.growing import Saved
    from zettel.query import Bools, Floats, Ints

PROBED = 64
"""Lists looked at for a question; of 2,048 about a thirtieth of the vectors."""
PROBED_BEFORE = 16
"""Lists looked at for the neighbours of a new note: only what is really near is linked."""
FEW_ALLOWED = 20_000
"""As many rows let through by a filter are looked at one by one."""
SLACK = 32
"""Neighbours asked for beyond those wanted: some of what the lists hold may be gone, or held back."""
HIDDEN = 0.1
"""Share of the vectors that may be held back, as archived notes are, for these to be left out afterwards."""
FEW_GONE = 4096
"""Codes of what is gone that are not worth clearing away."""
APART = 4096
"""Asked rows that have more than so many between them are not looked at together."""
_DOUBTING = 64
"""Lists that a known one is compared with: if the vector has changed since, one of them is nearer, or the known list is
among the nearest few all the same."""
_DOUBT = 1e-4
"""By how much another list must be nearer: more than rounding."""
_AT_ONCE = 10_000
_NOWHERE = -1


def bytes_a_code(dim: int) -> int:
    """Memory that a vector of so many numbers takes: its code and slot in a list, both once more at hand, its row."""
    listed, at_hand, row = dim + 8, dim + 10, 8
    return listed + at_hand + row


class Inverted:
    """Codes in lists. A row's vector stands in a slot; one that is put anew takes another slot."""

    def __init__(self, centroids: Floats, reach: Floats, *, at_hand: bool = True) -> None:
        """``centroids``: (lists, dim) unit rows; ``reach``: (2, dim) least and greatest numbers, ends of the codes.

        ``at_hand``: each slot has its code beside those in the lists once more, for FAISS looks single ones up too
        slowly for a search. Without, they take half the memory, and can be neither saved nor restored.
        """
        import faiss

        _, dim = centroids.shape
        self._dim = dim
        self._centroids, self._reach = np.ascontiguousarray(centroids), np.ascontiguousarray(reach)
        self._quantizer = faiss.IndexFlatIP(dim)
        self._quantizer.add(self._centroids)
        self._at_hand = at_hand
        self._index = self._empty()
        self._rows = Table(slot=(np.int64, ()))
        self._slots = self._no_slots()
        self._gone = 0
        self.moved: list[Ints] | None = None

    def _no_slots(self) -> Table:
        return Table(row=(np.int64, ()), list=(np.uint16, ()), code=(np.uint8, (self._dim * self._at_hand,)))

    def _empty(self) -> Any:
        import faiss

        index = faiss.IndexIVFScalarQuantizer(
            self._quantizer, self._dim, len(self._centroids), faiss.ScalarQuantizer.QT_8bit,
            faiss.METRIC_INNER_PRODUCT, False,
        )  # fmt: skip
        index.train(self._reach)
        if not self._at_hand:
            index.set_direct_map_type(faiss.DirectMap.Array)
        return index

    @property
    def embedded(self) -> Bools:
        """See :class:`zettel.graph.columnar.nearest.Nearest`."""
        embedded: Bools = self._rows["slot"] != _NOWHERE
        return embedded

    def put(self, rows: Ints, vectors: Floats, lists: Ints | None = None) -> None:
        """See :class:`zettel.graph.columnar.nearest.Nearest`."""
        missing = int(rows.max(initial=-1)) + 1 - self._rows.used
        if missing > 0:
            self._rows.append(slot=np.full(missing, _NOWHERE))
        self.drop(rows)
        there = vectors.any(axis=1)
        held, codes = rows[there], np.ascontiguousarray(vectors[there])
        if len(held):
            known = np.full(len(held), _NOWHERE) if lists is None else lists[there].astype(np.int64)
            assigned = self._sure(codes, known)
            unknown = np.flatnonzero(assigned == _NOWHERE)
            if len(unknown):
                assigned[unknown] = self._quantizer.search(codes[unknown], 1)[1][:, 0]
            self._add(held, codes, assigned)
        if self._gone > max(FEW_GONE, self._slots.used // 2):
            self._tidy()
        if self.moved is not None:
            self.moved.append(rows)

    def _sure(self, vectors: Floats, lists: Ints) -> Ints:
        """The lists as far as they may be trusted: what is kept in the store may be that of a former vector."""
        known = np.flatnonzero(lists != _NOWHERE)
        some = self._centroids[:: max(1, len(self._centroids) // _DOUBTING)]
        own = np.einsum("ij,ij->i", vectors[known], self._centroids[lists[known]])
        lists[known[own < (vectors[known] @ some.T).max(axis=1, initial=-np.inf) - _DOUBT]] = _NOWHERE
        return lists

    def _add(self, rows: Ints, vectors: Floats, lists: Ints) -> None:
        import faiss

        lists = np.ascontiguousarray(lists)
        self._index.add_core(len(rows), faiss.swig_ptr(vectors), None, faiss.swig_ptr(lists))
        self._rows["slot"][rows] = np.arange(self._slots.used, self._slots.used + len(rows))
        codes = self._index.sq.compute_codes(vectors) if self._at_hand else np.zeros((len(rows), 0), np.uint8)
        self._slots.append(row=rows, list=lists, code=codes)

    def _tidy(self) -> None:
        """Leave out the codes of what is gone. A code that is read and written again stays the same."""
        rows, slots = np.flatnonzero(self.embedded), self._slots
        former, index = self._rows["slot"][rows], self._index
        self._index, self._slots, self._gone = self._empty(), self._no_slots(), 0
        for start in range(0, len(rows), _AT_ONCE):
            some = former[start : start + _AT_ONCE]
            vectors = self._decoded(index, slots, some)
            self._add(rows[start : start + _AT_ONCE], vectors, slots["list"][some].astype(np.int64))

    def _decoded(self, index: Any, slots: Table, some: Ints) -> Floats:
        """What FAISS takes the codes in these slots for: the middle of each step."""
        vectors: Floats
        if self._at_hand:
            low, high = self._reach
            vectors = (slots["code"][some] + np.float32(0.5)) * ((high - low) / np.float32(255)) + low
        else:
            vectors = index.reconstruct_batch(some)
        return vectors

    def reserve(self, rows: int) -> None:
        """See :class:`zettel.graph.columnar.nearest.Nearest`."""
        self._rows.reserve(self._rows.used + rows)
        self._slots.reserve(self._slots.used + rows)

    def drop(self, rows: Ints) -> None:
        """See :class:`zettel.graph.columnar.nearest.Nearest`."""
        rows = rows[rows < self._rows.used]
        slots = self._rows["slot"][rows]
        held = slots != _NOWHERE
        self._slots["row"][slots[held]] = _NOWHERE
        self._rows["slot"][rows] = _NOWHERE
        self._gone += int(held.sum())

    def take(self, rows: Ints) -> Floats:
        """See :class:`zettel.graph.columnar.nearest.Nearest`."""
        vectors = np.zeros((len(rows), self._dim), np.float32)
        reached = np.flatnonzero(rows < self._rows.used)
        slots = self._rows["slot"][rows[reached]]
        held = slots != _NOWHERE
        if held.any():
            vectors[reached[held]] = self._decoded(self._index, self._slots, slots[held])
        return vectors

    def cosines(self, rows: Ints, vector: Floats) -> Floats:
        """See :class:`zettel.graph.columnar.nearest.Nearest`."""
        cosines: Floats = self.take(rows) @ vector
        return cosines

    def nearest(self, vector: Floats, k: int, allowed: Bools) -> Ints:
        """See :class:`zettel.graph.columnar.nearest.Nearest`; misses about one of a hundred."""
        allowed = allowed[: self._rows.used] & self.embedded
        held, let_through = self._slots.used - self._gone, int(allowed.sum())
        if let_through <= FEW_ALLOWED:
            rows = np.flatnonzero(allowed)
            return rows[best(exact(self.take(rows), vector), rows, k)]
        probed = min(self._index.nlist, PROBED * held // let_through)
        if held - let_through < HIDDEN * held:  # marking every code would cost more than it saves
            rows, cosines = self._probe(vector[None], k + SLACK, probed, None)[0]
            kept = allowed[rows]
            if kept.sum() >= k:
                rows, cosines = rows[kept], cosines[kept]
                return rows[best(cosines, rows, k)]
        selected = np.append(allowed, False)[self._slots["row"]]
        rows, cosines = self._probe(vector[None], k + SLACK, probed, selected)[0]
        return rows[best(cosines, rows, k)]

    def nearest_before(self, rows: Ints, k: int, allowed: Bools) -> list[tuple[Ints, Floats]]:
        """See :class:`zettel.graph.columnar.nearest.Nearest`.

        The rows from the first asked one on are looked at one by one, those before through the lists.
        """
        found: list[tuple[Ints, Floats]] = []
        for together in np.split(rows, np.flatnonzero(np.diff(rows) > APART) + 1):
            found += self._before(together, k, allowed)
        return found

    def _before(self, rows: Ints, k: int, allowed: Bools) -> list[tuple[Ints, Floats]]:
        first, last = int(rows[0]), int(rows[-1])
        allowed = allowed[: self._rows.used] & self.embedded
        vectors, between = self.take(rows), np.arange(first, last)
        between = between[allowed[between]]
        beside = vectors @ self.take(between).T
        selected = np.append(allowed[:first], False)[np.where(self._slots["row"] < first, self._slots["row"], first)]
        found = []
        for row, products, (older, cosines) in zip(
            rows.tolist(), beside, self._probe(vectors, k, PROBED_BEFORE, selected), strict=True
        ):
            newer = between < row
            near = np.concatenate([older, between[newer]])
            cosines = np.concatenate([cosines, products[newer]])
            order = best(cosines, near, k)
            found.append((near[order], cosines[order].astype(np.float32)))
        return found

    def _probe(self, vectors: Floats, k: int, probed: int, selected: Bools | None) -> list[tuple[Ints, Floats]]:
        """Rows and cosines that the nearest lists hold, of ``selected`` slots if given."""
        import faiss

        chosen = {} if selected is None else {"sel": faiss.IDSelectorBitmap(np.packbits(selected, bitorder="little"))}
        cosines, slots = self._index.search(vectors, k, params=faiss.SearchParametersIVF(nprobe=probed, **chosen))
        rows = np.where(slots == _NOWHERE, _NOWHERE, self._slots["row"][slots])
        return [(row[row != _NOWHERE], cosine[row != _NOWHERE]) for row, cosine in zip(rows, cosines, strict=True)]

    def renumber(self, rows: Ints, total: int) -> None:
        """Let what stands in row i stand in ``rows[i]`` (-1: nowhere) of ``total``."""
        slots = self._rows["slot"]
        self._slots["row"][slots] = rows
        self._rows = Table(slot=(np.int64, ()))
        self._rows.append(slot=np.full(total, _NOWHERE))
        kept = rows != _NOWHERE
        self._rows["slot"][rows[kept]] = slots[kept]
        self._gone += int((~kept).sum())

    def lists(self, rows: Ints) -> Ints:
        """The list of each of these rows, which have vectors."""
        lists: Ints = self._slots["list"][self._rows["slot"][rows]].astype(np.int64)
        return lists

    def saved(self) -> Saved:
        """How many codes each list has, and these with their rows, list by list."""
        slots = np.flatnonzero(self._slots["row"] != _NOWHERE)
        slots = slots[np.lexsort((self._slots["row"][slots], self._slots["list"][slots]))]
        yield "size", np.bincount(self._slots["list"][slots], minlength=len(self._centroids))
        yield "row", self._slots["row"][slots]
        yield "code", Gathered(self._slots["code"], slots)

    def restore(self, saved: dict[str, NDArray[Any]], rows: int) -> None:
        """Hold these codes of at most so many rows. Raises as :meth:`zettel.graph.columnar.growing.Table.restore`."""
        import faiss

        sizes, held = saved["size"], len(saved["row"])
        require(sizes.dtype == np.int64 and sizes.shape == (len(self._centroids),) and within(sizes, 0, held + 1))
        require(int(sizes.sum()) == held)
        self._slots.restore({**saved, "list": np.repeat(np.arange(len(sizes), dtype=np.uint16), sizes)})
        require(within(self._slots["row"], 0, rows))
        self._rows.append(slot=np.full(rows, _NOWHERE))
        places, codes = np.arange(held), self._slots["code"]
        self._rows["slot"][self._slots["row"]] = places
        require(int(self.embedded.sum()) == held)  # no row twice
        for number, (start, size) in enumerate(zip((np.cumsum(sizes) - sizes).tolist(), sizes.tolist(), strict=True)):
            some = slice(start, start + size)
            self._index.invlists.add_entries(number, size, faiss.swig_ptr(places[some]), faiss.swig_ptr(codes[some]))
        self._index.ntotal = held

    def copied(self) -> Inverted:
        """The same with rows to be dropped apart; the codes are shared, so nothing may be put."""
        copy = object.__new__(Inverted)
        copy.__dict__.update(self.__dict__)
        copy._rows, copy._slots = self._rows.copied(), self._slots.copied()
        return copy

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        codes: int = self._slots.used * (self._dim + (8 if self._at_hand else 16))  # where each stands in its list
        return self._rows.nbytes + self._slots.nbytes + codes
