"""Columns that grow, names and keys by number, and lists of entries by row: what a scope in memory is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import DTypeLike, NDArray

    from zettel.query import Bools, Ints

    Saved: TypeAlias = "Iterator[tuple[str, NDArray[Any] | Gathered]]"
    """Arrays by name, each made when its turn comes: what a part of a scope's columns holds, for a file."""

_FIRST_ROOM = 16
_SMALL_ROOM, _GROWTH = 4096, 1.25
"""Up to so many rows room is doubled; in a large scope that would leave a third of the memory empty."""
FEW = 4096
"""Dead entries that are not worth clearing away."""


@dataclass(frozen=True)
class Gathered:
    """Some of an array's rows, copied only as far as they are asked for."""

    array: NDArray[Any]
    places: Ints

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the array."""
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the rows."""
        return (len(self.places), *self.array.shape[1:])

    def __getitem__(self, some: slice) -> NDArray[Any]:
        return self.array[self.places[some]]


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

    def saved(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Every column."""
        return ((name, self[name]) for name in self._columns)

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        """Hold these columns from now on. Raises ``ValueError``, ``KeyError`` if they cannot be such as were saved."""
        columns = {name: saved[name] for name in self._columns}
        used = {len(column) for column in columns.values()}
        kinds = [(room.dtype, room.shape[1:]) for room in self._columns.values()]
        require(len(used) == 1 and kinds == [(column.dtype, column.shape[1:]) for column in columns.values()])
        self._columns, self.used = columns, used.pop()

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return sum(column.nbytes for column in self._columns.values())


class Names:
    """Strings by small numbers, in the order they came."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._number: dict[str, int] = {}

    def number(self, name: str | None) -> int:
        """The number of a name, a new one if need be; None is -1."""
        if name is None:
            return -1
        number = self._number.setdefault(name, len(self.all))
        if number == len(self.all):
            self.all.append(name)
        return number

    def numbers(self, names: Sequence[str | None]) -> Ints:
        """The same for many."""
        known = self._number
        for name in names:
            if name is not None and name not in known:
                self.number(name)
        return np.array([-1 if name is None else known[name] for name in names], np.int64)

    def known(self, name: str) -> int:
        """The number of a name, or -1."""
        return self._number.get(name, -1)

    def saved(self, used: Bools) -> list[str | None]:
        """The names by number; None for one that is not ``used``: it is not told to anybody."""
        return [name if held else None for name, held in zip(self.all, used.tolist(), strict=True)]

    def restore(self, names: Sequence[str | None]) -> None:
        """Hold what was saved."""
        self.all = [name or "" for name in names]
        self._number = {name: number for number, name in enumerate(names) if name is not None}

    def copied(self) -> Names:
        """The same, to be added to apart."""
        copy = Names()
        copy.all, copy._number = self.all.copy(), self._number.copy()
        return copy


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

    def saved(self, held: Bools) -> Saved:
        """Those keys whose numbers are ``held``; the other numbers stay taken."""
        self._merge(_NONE, np.zeros(0, np.int32))
        kept = held[self._number]
        yield "key", self._sorted[kept]
        yield "number", self._number[kept]

    def restore(self, saved: dict[str, NDArray[Any]], count: int) -> None:
        """Hold these keys of ``count`` numbers. Raises as :meth:`Table.restore`."""
        by_key = Table(key=(np.int64, ()), number=(np.int32, ()))
        by_key.restore(saved)
        keys, numbers = by_key["key"], by_key["number"]
        require(bool((keys[1:] > keys[:-1]).all()) and within(numbers, 0, count))
        self._sorted, self._number, self._recent = keys, numbers, {}
        self._keys = Table(key=(np.int64, ()))
        self._keys.append(key=np.zeros(count, np.int64))
        self._keys["key"][numbers] = keys

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

    def saved(self) -> Saved:
        """How long each row's list is, and the entries that are in one, in the order of the rows."""
        size, start = self._places["size"], self._places["start"]
        behind = np.cumsum(size) - size  # where each would begin
        if self._entries.used > self._live or ((start != behind) & (size > 0)).any():
            self._tidy()
        yield "size", size
        yield from self._entries.saved()

    def restore(self, saved: dict[str, NDArray[Any]], rows: int) -> None:
        """Hold these lists of at most so many rows. Raises as :meth:`Table.restore`."""
        self._entries.restore(saved)
        sizes = saved["size"]
        require(sizes.dtype == np.int32 and len(sizes) <= rows and within(sizes, 0, self._entries.used + 1))
        ends = np.cumsum(sizes, dtype=np.int64)
        self._live = int(ends[-1]) if len(ends) else 0
        require(self._live == self._entries.used)
        self._places.restore({"start": ends - sizes, "size": sizes})

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self._entries.nbytes + self._places.nbytes


_NONE: Ints = np.zeros(0, np.int64)


def spans(starts: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """The places start .. start + size - 1 of every span, one behind the other: whose each is, and the place."""
    ends = np.cumsum(sizes)
    whose = np.repeat(np.arange(len(sizes)), sizes)
    return whose, np.arange(len(whose)) + (starts - ends + sizes)[whose]


def within(values: NDArray[Any], low: int, high: int) -> bool:
    """Whether all are in low .. high - 1."""
    return not values.size or bool(values.min() >= low and values.max() < high)


def require(sound: bool) -> None:
    """Raise ``ValueError`` if what was restored does not hold together."""
    if not sound:
        raise ValueError("what was restored does not hold together")
