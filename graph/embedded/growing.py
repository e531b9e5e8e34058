"""Columns that grow, and lists of entries that are found by row or by key: what a scope in memory is made of."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike, NDArray

    from zettel.query import Bools, Ints

_FIRST_ROOM = 16
_SMALL_ROOM, _GROWTH = 4096, 1.25
"""Up to so many rows room is doubled; in a large scope that would leave a third of the memory empty."""
MERGE_AT = 4
"""A segment is merged with the one before it unless that has this many times its entries."""
FEW = 4096
"""Dead entries that are not worth clearing away."""


class Table:
    """Columns of one length that grow at the end; a column is one- or two-dimensional."""

    def __init__(self, **kinds: tuple[DTypeLike, tuple[int, ...]]) -> None:
        self._columns = {name: np.zeros((_FIRST_ROOM, *shape), dtype) for name, (dtype, shape) in kinds.items()}
        self.used = 0

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name][: self.used]

    def reserve(self, rows: int) -> None:
        """Make room for so many rows at once."""
        for name, room in self._columns.items():
            if rows > len(room):
                self._columns[name] = np.concatenate([room, np.zeros((rows - len(room), *room.shape[1:]), room.dtype)])

    def append(self, **columns: NDArray[Any]) -> None:
        """Add rows: every column, all of one length."""
        added = len(next(iter(columns.values())))
        for name, room in self._columns.items():
            if self.used + added > len(room):
                more = 2 * len(room) if len(room) < _SMALL_ROOM else int(_GROWTH * len(room))
                wider = np.zeros((max(more, self.used + added), *room.shape[1:]), room.dtype)
                wider[: self.used] = room[: self.used]
                self._columns[name] = room = wider
            room[self.used : self.used + added] = columns[name]
        self.used += added

    def keep(self, chosen: Ints | Bools) -> None:
        """Leave only these rows, in this order."""
        for name in self._columns:
            self._columns[name] = self[name][chosen]
        self.used = len(next(iter(self._columns.values())))

    def copied(self) -> Table:
        """The same, to be changed apart."""
        copy = Table()
        copy._columns = {name: self[name].copy() for name in self._columns}
        copy.used = self.used
        return copy

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(self._columns)

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return sum(column.nbytes for column in self._columns.values())


class Numbers:
    """Keys by small numbers, in the order they came; a dictionary would take five times the memory."""

    def __init__(self) -> None:
        self._keys = Table(key=(np.int64, ()))
        self._sorted: Ints = np.zeros(0, np.int64)
        self._number: NDArray[np.int32] = np.zeros(0, np.int32)  # of each sorted key
        self._recent: dict[int, int] = {}

    @property
    def keys(self) -> Ints:
        """All keys, by their numbers."""
        keys: Ints = self._keys["key"]
        return keys

    def find(self, key: int) -> int:
        """The number of a key, -1 if it never came."""
        place = int(np.searchsorted(self._sorted, key))
        if place < len(self._sorted) and self._sorted[place] == key:
            return int(self._number[place])
        return self._recent.get(key, -1)

    def take(self, keys: Ints) -> NDArray[np.int32]:
        """The numbers of keys, new ones where need be."""
        distinct, inverse = np.unique(keys, return_inverse=True)
        numbers = np.full(len(distinct), -1, np.int32)
        if len(self._sorted):
            places = np.minimum(np.searchsorted(self._sorted, distinct), len(self._sorted) - 1)
            numbers = np.where(self._sorted[places] == distinct, self._number[places], numbers)
        missing = np.flatnonzero(numbers < 0)
        if self._recent:
            numbers[missing] = [self._recent.get(key, -1) for key in distinct[missing].tolist()]
            missing = missing[numbers[missing] < 0]
        numbers[missing] = np.arange(self._keys.used, self._keys.used + len(missing))
        fresh = distinct[missing]
        self._keys.append(key=fresh)
        if len(self._recent) + len(fresh) > max(FEW, len(self._sorted) // 8):
            self._merge(fresh, numbers[missing])
        else:
            self._recent.update(zip(fresh.tolist(), numbers[missing].tolist(), strict=True))
        return numbers[inverse]

    def _merge(self, fresh: Ints, numbers: NDArray[np.int32]) -> None:
        """Sort recent and ``fresh`` keys in among the others."""
        recent = sorted(self._recent)
        keys = np.concatenate([self._sorted, np.array(recent, np.int64), fresh])
        order = np.argsort(keys, kind="stable")  # of sorted runs: sorting them is merging them
        held = np.array([self._recent[key] for key in recent], np.int32)
        self._number = np.concatenate([self._number, held, numbers])[order]
        self._sorted, self._recent = keys[order], {}

    def copied(self) -> Numbers:
        """The same, to be added to apart."""
        copy = Numbers()
        copy._keys, copy._sorted, copy._number = self._keys.copied(), self._sorted, self._number
        copy._recent = self._recent.copy()
        return copy

    @property
    def nbytes(self) -> int:
        """Memory taken; 100 bytes for an entry of the dictionary."""
        return self._keys.nbytes + self._sorted.nbytes + self._number.nbytes + 100 * len(self._recent)


class Lists:
    """For every row a short list of entries; an entry is a value in each of the columns."""

    def __init__(self, **kinds: tuple[DTypeLike, tuple[int, ...]]) -> None:
        self._entries = Table(**kinds)
        self._places = Table(start=(np.int64, ()), size=(np.int32, ()))
        self._live = 0

    def put(self, rows: Ints, sizes: Ints, **columns: NDArray[Any]) -> None:
        """Give rows their lists, one behind the other in ``columns``, in place of those they had."""
        self._reach(int(rows.max(initial=-1)) + 1)
        self._live += int(sizes.sum()) - int(self._places["size"][rows].sum())
        self._places["start"][rows] = self._entries.used + np.cumsum(sizes) - sizes
        self._places["size"][rows] = sizes
        self._entries.append(**columns)
        if self._entries.used > 2 * self._live + FEW:
            self._tidy()

    def drop(self, rows: Ints) -> None:
        """Empty the lists of these rows."""
        rows = rows[rows < self._places.used]
        self._live -= int(self._places["size"][rows].sum())
        self._places["size"][rows] = 0

    def take(self, rows: Ints) -> tuple[Ints, Ints]:
        """All entries of these rows: whose each is, as a position in ``rows``, and where it stands in the columns."""
        if not self._places.used:
            return _NONE, _NONE
        known = np.minimum(rows, self._places.used - 1)
        sizes = np.where(rows < self._places.used, self._places["size"][known], 0)
        return spans(self._places["start"][known], sizes)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._entries[name]

    def _reach(self, rows: int) -> None:
        missing = rows - self._places.used
        if missing > 0:
            self._places.append(start=np.zeros(missing, np.int64), size=np.zeros(missing, np.int32))

    def _tidy(self) -> None:
        """Leave out entries that no row has any more."""
        _, places = self.take(np.arange(self._places.used))
        self._entries.keep(places)
        self._places["start"][:] = np.cumsum(self._places["size"]) - self._places["size"]

    def copied(self) -> Lists:
        """The same, to be changed apart."""
        copy = Lists()
        copy._entries, copy._places, copy._live = self._entries.copied(), self._places.copied(), self._live
        return copy

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self._entries.nbytes + self._places.nbytes


class Segment(NamedTuple):
    """Entries in the order of their keys. Never changed: those whose row has moved on are passed over."""

    number: int
    keys: Ints  # (k,) ascending
    starts: NDArray[np.integer]  # (k + 1,) where each key's entries begin
    rows: NDArray[np.int32]  # (m,) ascending within a key
    value: NDArray[Any]  # (m,)

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.starts.nbytes + self.rows.nbytes + self.value.nbytes


class Index:
    """Entries found by key: each belongs to a row and has a value.

    New entries make a small segment; ``settle`` merges it with those before until one is much larger, so that there are
    few of them and each entry is moved a few times only (O'Neil et al. 1996, the log-structured merge-tree). A row's
    entries come all at once and stand in one segment; dropping a row forgets in which.
    """

    def __init__(self, value: DTypeLike) -> None:
        self._dtype = value
        self._segments: tuple[Segment, ...] = ()
        self._home = Table(segment=(np.int32, ()))  # per row: the segment of its entries, 0: none
        self._made = 0
        self.whole = True
        """Whether every entry of every segment counts."""

    def post(self, rows: Ints, keys: Ints, value: NDArray[Any]) -> None:
        """Add entries of rows that have none."""
        if not len(rows):
            return
        order = np.lexsort((rows, keys))
        self._segments = (*self._segments, self._segment(keys[order], rows[order].astype(np.int32), value[order]))

    def settle(self) -> None:
        """Merge the last segments, as many as are not much larger than what comes after them."""
        sizes = [len(segment.rows) for segment in self._segments]
        first = len(sizes) - 1
        while first > 0 and sizes[first - 1] < MERGE_AT * sum(sizes[first:]):
            first -= 1
        if 0 <= first < len(sizes) - 1:
            self._segments = (*self._segments[:first], self._merged(self._segments[first:]))
            self.whole = self.whole or len(self._segments) == 1

    def drop(self, rows: Ints) -> None:
        """Forget the entries of these rows."""
        rows = rows[rows < self._home.used]
        if self._home["segment"][rows].any():
            self._home["segment"][rows] = 0
            self.whole = False

    def find(self, key: int) -> tuple[Ints, NDArray[Any]]:
        """The rows and values of a key's entries."""
        found = [self._of(segment, key) for segment in self._segments]
        found = [(rows, value) for rows, value in found if len(rows)]
        if len(found) == 1:
            return found[0]
        if not found:
            return _NONE, np.zeros(0, self._dtype)
        return np.concatenate([rows for rows, _ in found]), np.concatenate([value for _, value in found])

    def count(self, key: int) -> int:
        """How many entries a key has."""
        if not self.whole:
            return len(self.find(key)[0])
        return sum(end - start for start, end in (_bounds(segment, key) for segment in self._segments))

    def among(self, key: int, rows: Ints) -> tuple[Ints, NDArray[Any]]:
        """Of ``rows`` those that have an entry for the key, as positions, and its value."""
        where, values = [_NONE], [np.zeros(0, self._dtype)]
        for segment in self._segments:
            start, end = _bounds(segment, key)
            if start == end:
                continue
            held = segment.rows[start:end]
            places = np.minimum(np.searchsorted(held, rows), len(held) - 1)
            here = np.flatnonzero(held[places] == rows)
            here = here[self._home["segment"][rows[here]] == segment.number]
            where.append(here)
            values.append(segment.value[start + places[here]])
        return np.concatenate(where), np.concatenate(values)

    def find_many(self, keys: Ints) -> tuple[Ints, Ints, NDArray[Any]]:
        """All entries of these keys: whose each is, as a position in ``keys``, its row and its value."""
        whose, rows, values = [_NONE], [_NONE], [np.zeros(0, self._dtype)]
        for segment in self._segments:
            if not len(segment.keys):  # all of it has gone
                continue
            places = np.minimum(np.searchsorted(segment.keys, keys), len(segment.keys) - 1)
            sizes = np.where(segment.keys[places] == keys, segment.starts[places + 1] - segment.starts[places], 0)
            which, at = spans(segment.starts[places].astype(np.int64), sizes)
            if len(at):
                row = segment.rows[at].astype(np.int64)
                if not self.whole:
                    live = self._home["segment"][row] == segment.number
                    which, at, row = which[live], at[live], row[live]
                whose.append(which)
                rows.append(row)
                values.append(segment.value[at])
        return np.concatenate(whose), np.concatenate(rows), np.concatenate(values)

    def _of(self, segment: Segment, key: int) -> tuple[Ints, NDArray[Any]]:
        start, end = _bounds(segment, key)
        rows = segment.rows[start:end].astype(np.int64)
        value = segment.value[start:end]
        if self.whole or start == end:
            return rows, value
        live = self._home["segment"][rows] == segment.number
        return rows[live], value[live]

    def _segment(self, keys: Ints, rows: NDArray[np.int32], value: NDArray[Any]) -> Segment:
        """A segment of entries in the order of their keys, which is the home of their rows from now on."""
        missing = int(rows.max(initial=-1)) + 1 - self._home.used
        if missing > 0:
            self._home.append(segment=np.zeros(missing, np.int32))
        self._made += 1
        self._home["segment"][rows] = self._made
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
        ends = np.append(starts, len(keys)).astype(np.int32 if len(keys) < 2**31 else np.int64)
        return Segment(self._made, keys[starts], ends, rows, np.ascontiguousarray(value, self._dtype))

    def _merged(self, segments: Sequence[Segment]) -> Segment:
        keys = np.concatenate([np.repeat(one.keys, np.diff(one.starts)) for one in segments])
        rows = np.concatenate([one.rows for one in segments])
        value = np.concatenate([one.value for one in segments])
        if not self.whole:
            number = np.repeat([one.number for one in segments], [len(one.rows) for one in segments])
            live = self._home["segment"][rows] == number
            keys, rows, value = keys[live], rows[live], value[live]
        ends = [(one.rows.min(), one.rows.max()) for one in segments if len(one.rows)]
        if all(last < first for (_, last), (first, _) in pairwise(ends)):
            order = np.argsort(keys, kind="stable")  # each is in order: sorting them is merging them
        else:
            order = np.lexsort((rows, keys))
        return self._segment(keys[order], rows[order], value[order])

    def copied(self) -> Index:
        """The same, to be changed apart; segments are shared, for they never change."""
        copy = Index(self._dtype)
        copy._segments, copy._home = self._segments, self._home.copied()
        copy._made, copy.whole = self._made, self.whole
        return copy

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return sum(segment.nbytes for segment in self._segments) + self._home.nbytes


_NONE: Ints = np.zeros(0, np.int64)


def spans(starts: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """The places start .. start + size - 1 of every span, one behind the other: whose each is, and the place."""
    ends = np.cumsum(sizes)
    whose = np.repeat(np.arange(len(sizes)), sizes)
    return whose, np.arange(len(whose)) + (starts - ends + sizes)[whose]


def _bounds(segment: Segment, key: int) -> tuple[int, int]:
    place = int(np.searchsorted(segment.keys, key))
    if place == len(segment.keys) or segment.keys[place] != key:
        return 0, 0
    return int(segment.starts[place]), int(segment.starts[place + 1])
