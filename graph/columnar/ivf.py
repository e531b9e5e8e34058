"""Approximate vector indexes for large scopes: FAISS IVF with scalar codes of 8 bits, or of 2 bits with rescoring.

Each vector is assigned to the list of its nearest centroid (Sivic and Zisserman 2003; Jégou et al. 2011). Finding that
list is the expensive part, so the store saves it.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.graph.columnar.tables import RowSelection, Table, require, within
from zettel.graph.columnar.vector_index import ExactIndex, VectorIndex, exact
from zettel.ports.candidate_rules import best

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from numpy.typing import NDArray

    from zettel.graph.columnar.tables import SavedArrays
    from zettel.ports.query import Bools, Floats, Ints

    FoundRows: TypeAlias = list[tuple[Ints, NDArray[np.floating]]]
    """Rows and cosines of each query."""

COMPACT = 500_000
"""Vectors of a trained scope from which on searches use 2-bit codes: 8-bit codes of 384 numbers would take 400 MB.

A search then reads some 1,400 vectors from the store, which takes longer.
"""
RESCORED = 4
"""Neighbours by 2-bit codes for each one requested. Their stored vectors are compared with the query."""
FEW_READ = 1_000
"""Up to so many rows that pass a filter are read from the store and compared one by one."""
PROBED = 64
"""Lists searched for a query; 64 of 2,048 contain about a thirtieth of the vectors."""
PROBED_BEFORE = 16
"""Lists searched for the neighbours of a new note, which links only to very near notes."""
FEW_ALLOWED = 20_000
"""Up to so many rows that pass a filter are compared one by one."""
SLACK = 32
"""Additional neighbours from FAISS, because some may be deleted or hidden."""
HIDDEN = 0.1
"""Up to this share of hidden vectors, such as archived notes, the search removes them from its result."""
FEW_DEAD = 4096
"""Up to so many codes of deleted vectors stay in the lists."""
TOGETHER = 4096
"""The largest gap between two rows that are searched together."""
READ_TOGETHER = 64
"""The same if the rows between them must be read from the store."""
_COMPARED = 64
"""Lists that a saved assignment is compared with. If the vector has changed since, one of them is probably nearer."""
_TOLERANCE = 1e-4
"""By how much another list must be nearer: more than the rounding error."""
_AT_ONCE = 10_000
_NO_SLOT, _NO_LIST, _NO_ROW = -1, -1, -1


@dataclass(frozen=True)
class IvfLists:
    """The trained lists in their stored form: centroids, and the list of each note's vector at the last save."""

    epoch: int
    trained: int
    centroids: Floats  # (lists, dim)
    code_range: Floats  # (2, dim)
    notes: Ints  # (m,) numbers, ascending
    lists: Ints  # (m,)

    @property
    def fingerprint(self) -> tuple[int, int]:
        """Identify this training: two processes may train the same epoch."""
        return self.epoch, zlib.crc32(self.code_range.tobytes(), zlib.crc32(self.centroids.tobytes()))

    def of(self, notes: Ints) -> Ints:
        """Return the list of each note, -1 if unknown."""
        if not len(self.notes):
            return np.full(len(notes), -1)
        places = np.minimum(np.searchsorted(self.notes, notes), len(self.notes) - 1)
        return np.where(self.notes[places] == notes, self.lists[places], -1)


def empty_index(dim: int, ivf: IvfLists | None, *, searched: bool = True) -> VectorIndex:
    """Build the empty index of a scope: exact, or with its trained lists. See :func:`index_with_lists`."""
    if ivf is None:
        return ExactIndex(dim)
    return index_with_lists(ivf.centroids, ivf.code_range, ivf.trained, searched=searched)


def index_with_lists(centroids: Floats, code_range: Floats, trained: int, *, searched: bool) -> IvfIndex:
    """Build an empty index for searches, or for writers alone, of a scope that had ``trained`` vectors at the training.

    A writer compares thousands of new notes with older ones, so its index always has 8-bit codes.
    """
    if searched and trained >= COMPACT:
        return CompactIndex(centroids, code_range)
    return IvfIndex(centroids, code_range, code_table=searched)


def bytes_per_vector(dim: int, trained: int) -> int:
    """Return the memory of a vector for searches: code and slot in its list, slot in the table, and its row."""
    slots = 8 + 10 + 8
    return -(-dim // 4) + slots if trained >= COMPACT else 2 * dim + slots  # 8-bit codes are in the table too


class IvfIndex(VectorIndex):
    """Codes in lists. Each vector has a slot; ``put`` gives a row a new slot."""

    def __init__(self, centroids: Floats, code_range: Floats, *, code_table: bool = True) -> None:
        """``centroids`` are (lists, dim) unit rows, ``code_range`` (2, dim) the lowest and highest number of a code.

        ``code_table`` stores each code in its slot too, because FAISS looks up single codes too slowly for a search.
        Without it an index takes half the memory, but cannot be saved or loaded.
        """
        import faiss

        _, dim = centroids.shape
        self._dim = dim
        self._centroids, self._code_range = np.ascontiguousarray(centroids), np.ascontiguousarray(code_range)
        self._quantizer = faiss.IndexFlatIP(dim)
        self._quantizer.add(self._centroids)
        self._code_table = code_table
        self._index = self._empty()
        self._rows = Table(slot=(np.int64, ()))
        self._slots = self._no_slots()
        self._dead = 0
        self.changed_rows: list[Ints] | None = None

    def _no_slots(self) -> Table:
        return Table(row=(np.int64, ()), list=(np.uint16, ()), code=(np.uint8, (self._dim * self._code_table,)))

    def _empty(self) -> Any:
        import faiss

        index = faiss.IndexIVFScalarQuantizer(
            self._quantizer, self._dim, len(self._centroids), faiss.ScalarQuantizer.QT_8bit,
            faiss.METRIC_INNER_PRODUCT, False,
        )  # fmt: skip
        index.train(self._code_range)
        if not self._code_table:
            index.set_direct_map_type(faiss.DirectMap.Array)
        return index

    @property
    def few_allowed(self) -> int:
        """Return up to how many rows that pass a filter are compared one by one."""
        return FEW_ALLOWED

    @property
    def together(self) -> int:
        """Return the largest gap between two rows that are searched together."""
        return TOGETHER

    @property
    def embedded(self) -> Bools:
        embedded: Bools = self._rows["slot"] != _NO_SLOT
        return embedded

    def put(self, rows: Ints, vectors: Floats, lists: Ints | None = None) -> None:
        missing = int(rows.max(initial=-1)) + 1 - self._rows.used
        if missing > 0:
            self._rows.append(slot=np.full(missing, _NO_SLOT))
        self.drop(rows)
        embedded = vectors.any(axis=1)
        rows_added, added = rows[embedded], np.ascontiguousarray(vectors[embedded])
        if len(rows_added):
            assigned = np.full(len(rows_added), _NO_LIST) if lists is None else lists[embedded].astype(np.int64)
            assigned[self._outdated(added, assigned)] = _NO_LIST
            unknown = np.flatnonzero(assigned == _NO_LIST)
            if len(unknown):
                assigned[unknown] = self._quantizer.search(added[unknown], 1)[1][:, 0]
            self._add(rows_added, added, assigned)
        if self._dead > max(FEW_DEAD, self._slots.used // 2):
            self._compact()
        if self.changed_rows is not None:
            self.changed_rows.append(rows)

    def _outdated(self, vectors: Floats, lists: Ints) -> Ints:
        """Return the places of saved lists that belong to a former vector."""
        known = np.flatnonzero(lists != _NO_LIST)
        sample = self._centroids[:: max(1, len(self._centroids) // _COMPARED)]
        own = np.einsum("ij,ij->i", vectors[known], self._centroids[lists[known]])
        outdated: Ints = known[own < (vectors[known] @ sample.T).max(axis=1, initial=-np.inf) - _TOLERANCE]
        return outdated

    def _add(self, rows: Ints, vectors: Floats, lists: Ints) -> None:
        import faiss

        lists = np.ascontiguousarray(lists)
        self._index.add_core(len(rows), faiss.swig_ptr(vectors), None, faiss.swig_ptr(lists))
        self._rows["slot"][rows] = np.arange(self._slots.used, self._slots.used + len(rows))
        codes = self._index.sq.compute_codes(vectors) if self._code_table else np.zeros((len(rows), 0), np.uint8)
        self._slots.append(row=rows, list=lists, code=codes)

    def _compact(self) -> None:
        """Remove the codes of deleted vectors. Decoding and encoding do not change a code."""
        rows, slots = np.flatnonzero(self.embedded), self._slots
        former, index = self._rows["slot"][rows], self._index
        self._index, self._slots, self._dead = self._empty(), self._no_slots(), 0
        for start in range(0, len(rows), _AT_ONCE):
            chunk = former[start : start + _AT_ONCE]
            vectors = self._decode(index, slots, chunk)
            self._add(rows[start : start + _AT_ONCE], vectors, slots["list"][chunk].astype(np.int64))

    def _decode(self, index: Any, slots: Table, chunk: Ints) -> Floats:
        """Decode the codes in these slots as FAISS does: to the middle of each step."""
        vectors: Floats
        if self._code_table:
            low, high = self._code_range
            vectors = (slots["code"][chunk] + np.float32(0.5)) * ((high - low) / np.float32(255)) + low
        else:
            vectors = index.reconstruct_batch(chunk)
        return vectors

    def reserve(self, rows: int) -> None:
        self._rows.reserve(self._rows.used + rows)
        self._slots.reserve(self._slots.used + rows)

    def drop(self, rows: Ints) -> None:
        rows = rows[rows < self._rows.used]
        slots = self._rows["slot"][rows]
        used = slots[slots != _NO_SLOT]
        self._slots["row"][used] = _NO_ROW
        self._rows["slot"][rows] = _NO_SLOT
        self._dead += len(used)

    def take(self, rows: Ints) -> Floats:
        vectors = np.zeros((len(rows), self._dim), np.float32)
        known = np.flatnonzero(rows < self._rows.used)
        slots = self._rows["slot"][rows[known]]
        used = slots != _NO_SLOT
        if used.any():
            vectors[known[used]] = self._decode(self._index, self._slots, slots[used])
        return vectors

    def nearest(self, vector: Floats, k: int, allowed: Bools) -> Ints:
        """Search the nearest lists, which misses about one neighbour in a hundred."""
        allowed = allowed[: self._rows.used] & self.embedded
        live, allowed_count = self._slots.used - self._dead, int(allowed.sum())
        if allowed_count <= self.few_allowed:
            rows = np.flatnonzero(allowed)
            return rows[best(exact(self.take(rows), vector), rows, k)]
        probed = min(self._index.nlist, PROBED * live // allowed_count)
        if live - allowed_count < HIDDEN * live:  # a bitmap over all codes would cost more than it saves
            rows, cosines = self._probe(vector[None], k + SLACK, probed, None)[0]
            passed = allowed[rows]
            if passed.sum() >= k:
                rows, cosines = rows[passed], cosines[passed]
                return rows[best(cosines, rows, k)]
        selected = np.append(allowed, False)[self._slots["row"]]
        rows, cosines = self._probe(vector[None], k + SLACK, probed, selected)[0]
        return rows[best(cosines, rows, k)]

    def nearest_before(self, rows: Ints, k: int, allowed: Bools) -> list[tuple[Ints, Floats]]:
        """Search groups of rows: the lists for the rows before the group, one product for the rows within it."""
        nearest: list[tuple[Ints, Floats]] = []
        for group in np.split(rows, np.flatnonzero(np.diff(rows) > self.together) + 1):
            nearest += self._group_nearest(group, k, allowed)
        return nearest

    def _group_nearest(self, rows: Ints, k: int, allowed: Bools) -> list[tuple[Ints, Floats]]:
        first, last = int(rows[0]), int(rows[-1])
        allowed = allowed[: self._rows.used] & self.embedded
        vectors, between = self.take(rows), np.arange(first, last)
        between = between[allowed[between]]
        newer_cosines = vectors @ self.take(between).T
        selected = np.append(allowed[:first], False)[np.where(self._slots["row"] < first, self._slots["row"], first)]
        nearest = []
        for row, products, (older, cosines) in zip(
            rows.tolist(), newer_cosines, self._probe(vectors, k, PROBED_BEFORE, selected), strict=True
        ):
            newer = between < row
            near = np.concatenate([older, between[newer]])
            cosines = np.concatenate([cosines, products[newer]])
            order = best(cosines, near, k)
            nearest.append((near[order], cosines[order].astype(np.float32)))
        return nearest

    def _probe(self, vectors: Floats, k: int, probed: int, selected: Bools | None) -> FoundRows:
        """Return rows and cosines from the nearest lists, of the ``selected`` slots if given."""
        import faiss

        selector = {} if selected is None else {"sel": faiss.IDSelectorBitmap(np.packbits(selected, bitorder="little"))}
        cosines, slots = self._index.search(vectors, k, params=faiss.SearchParametersIVF(nprobe=probed, **selector))
        rows = np.where(slots == _NO_SLOT, _NO_ROW, self._slots["row"][slots])
        return [(row[row != _NO_ROW], cosine[row != _NO_ROW]) for row, cosine in zip(rows, cosines, strict=True)]

    def renumber(self, rows: Ints, total: int) -> None:
        """Move the vector of row i to ``rows[i]`` of ``total`` rows; -1 deletes it."""
        slots = self._rows["slot"]
        self._slots["row"][slots] = rows
        self._rows = Table(slot=(np.int64, ()))
        self._rows.append(slot=np.full(total, _NO_SLOT))
        live = rows != _NO_ROW
        self._rows["slot"][rows[live]] = slots[live]
        self._dead += int((~live).sum())

    def lists(self, rows: Ints) -> Ints:
        """Return the list of each row; the rows must have vectors."""
        lists: Ints = self._slots["list"][self._rows["slot"][rows]].astype(np.int64)
        return lists

    def save(self) -> SavedArrays:
        """Yield the number of codes of each list, and rows and codes list by list."""
        slots = np.flatnonzero(self._slots["row"] != _NO_ROW)
        slots = slots[np.lexsort((self._slots["row"][slots], self._slots["list"][slots]))]
        yield "size", np.bincount(self._slots["list"][slots], minlength=len(self._centroids))
        yield "row", self._slots["row"][slots]
        yield "code", RowSelection(self._slots["code"], slots)

    def load(self, saved: dict[str, NDArray[Any]], rows: int) -> None:
        import faiss

        sizes, count = saved["size"], len(saved["row"])
        require(sizes.dtype == np.int64 and sizes.shape == (len(self._centroids),) and within(sizes, 0, count + 1))
        require(int(sizes.sum()) == count)
        codes, lists = saved["code"], np.repeat(np.arange(len(sizes), dtype=np.uint16), sizes)
        require(codes.dtype == np.uint8 and codes.shape == (count, self._index.code_size))
        self._slots.load({"row": saved["row"], "list": lists, "code": codes if self._code_table else codes[:, :0]})
        require(within(self._slots["row"], 0, rows))
        self._rows.append(slot=np.full(rows, _NO_SLOT))
        places = np.arange(count)
        self._rows["slot"][self._slots["row"]] = places
        require(int(self.embedded.sum()) == count)  # each row once
        for number, (start, size) in enumerate(zip((np.cumsum(sizes) - sizes).tolist(), sizes.tolist(), strict=True)):
            chunk = slice(start, start + size)
            self._index.invlists.add_entries(number, size, faiss.swig_ptr(places[chunk]), faiss.swig_ptr(codes[chunk]))
        self._index.ntotal = count

    def copy(self) -> IvfIndex:
        """Copy rows and slots. The copy shares the codes in the lists, so only ``drop`` may change it."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy._rows, copy._slots = self._rows.copy(), self._slots.copy()
        return copy

    @property
    def nbytes(self) -> int:
        codes: int = self._slots.used * (self._dim + (8 if self._code_table else 16))  # 8 bytes more for a direct map
        return self._rows.nbytes + self._slots.nbytes + codes


class CompactIndex(IvfIndex):
    """2-bit codes in lists. The vectors in the store rank the neighbours that the codes find.

    A random rotation spreads the variance of the vectors evenly over their numbers; each number is then rounded to one
    of four values (Zandieh et al., TurboQuant, 2025). :meth:`take` reads vectors from the store, so set ``read`` before
    searches: it returns the stored vectors, (m, dim), of rows that have one.
    """

    read: Callable[[Ints], Floats]

    def __init__(self, centroids: Floats, code_range: Floats) -> None:
        """See :class:`IvfIndex`; the codes do not depend on ``code_range``."""
        self._rotation = _rotation(centroids.shape[1])
        super().__init__(centroids @ self._rotation, code_range, code_table=False)

    def _empty(self) -> Any:
        import faiss

        index = faiss.IndexIVFScalarQuantizer(
            self._quantizer, self._dim, len(self._centroids), faiss.ScalarQuantizer.QT_2bit_tqmse,
            faiss.METRIC_INNER_PRODUCT, False,
        )  # fmt: skip
        index.train(self._code_range)
        return index

    @property
    def few_allowed(self) -> int:
        return FEW_READ

    @property
    def together(self) -> int:
        return READ_TOGETHER

    def put(self, rows: Ints, vectors: Floats, lists: Ints | None = None) -> None:
        super().put(rows, vectors @ self._rotation, lists)

    def take(self, rows: Ints) -> Floats:
        vectors = np.zeros((len(rows), self._dim), np.float32)
        places = np.flatnonzero(rows < self._rows.used)
        places = places[self._rows["slot"][rows[places]] != _NO_SLOT]
        if len(places):
            vectors[places] = self.read(rows[places])
        return vectors

    def _probe(self, vectors: Floats, k: int, probed: int, selected: Bools | None) -> FoundRows:
        found = super()._probe(vectors @ self._rotation, RESCORED * k + SLACK, probed, selected)
        return [(rows, exact(self.take(rows), vector)) for vector, (rows, _) in zip(vectors, found, strict=True)]

    def _compact(self) -> None:
        """Remove the codes of deleted vectors."""
        live, rows = dict(self.save()), self._rows.used
        self._index, self._slots, self._dead = self._empty(), self._no_slots(), 0
        self._rows = Table(slot=(np.int64, ()))
        self.load(live, rows)

    def save(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the number of codes of each list, and rows and codes list by list."""
        import faiss

        lists, rows_of = self._index.invlists, self._slots["row"]
        sizes = np.zeros(lists.nlist, np.int64)
        rows, codes = [np.zeros(0, np.int64)], [np.zeros((0, lists.code_size), np.uint8)]
        for number in range(lists.nlist):
            size = lists.list_size(number)
            if size:
                row = rows_of[faiss.rev_swig_ptr(lists.get_ids(number), size)]
                code = faiss.rev_swig_ptr(lists.get_codes(number), size * lists.code_size).reshape(size, -1)
                rows.append(row[row != _NO_ROW])
                codes.append(code[row != _NO_ROW])
                sizes[number] = len(rows[-1])
        yield "size", sizes
        yield "row", np.concatenate(rows)
        yield "code", np.concatenate(codes)

    @property
    def nbytes(self) -> int:
        codes: int = self._slots.used * (self._index.code_size + 8)
        return self._rows.nbytes + self._slots.nbytes + codes


def _rotation(dim: int) -> Floats:
    """Return a (dim, dim) orthogonal matrix, the same on every machine up to rounding."""
    columns, triangle = np.linalg.qr(np.random.Generator(np.random.PCG64(dim)).random((dim, dim)) - 0.5)
    return np.ascontiguousarray(columns * np.sign(np.diag(triangle)), np.float32)
