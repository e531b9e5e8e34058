"""Growable columns, numbered strings and keys, and lists of entries by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import DTypeLike, NDArray

    from zettel.ports.query import Bools, Ints

    SavedArrays: TypeAlias = "Iterator[tuple[str, NDArray[Any] | RowSelection]]"
    """Arrays by name, for a snapshot. Each array is computed when the iterator reaches it."""

_FIRST_CAPACITY = 16
_SMALL_CAPACITY, _GROWTH = 4096, 1.25
"""Small tables double; large ones grow by a quarter, because doubling would leave a third of the memory empty."""
FEW = 4096
"""Up to so many entries are not worth removing or merging."""


@dataclass(frozen=True)
class RowSelection:
    """Selected rows of an array, copied slice by slice."""

    array: NDArray[Any]
    places: Ints

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.places), *self.array.shape[1:])

    def __getitem__(self, part: slice) -> NDArray[Any]:
        return self.array[self.places[part]]


class Table:
    """One- or two-dimensional columns of one length that grow at the end."""

    def __init__(self, **kinds: tuple[DTypeLike, tuple[int, ...]]) -> None:
        self._columns = {name: np.zeros((_FIRST_CAPACITY, *shape), dtype) for name, (dtype, shape) in kinds.items()}
        self.used = 0

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name][: self.used]

    def reserve(self, rows: int) -> None:
        """Allocate memory for so many rows in all."""
        for name, column in self._columns.items():
            if rows > len(column):
                added = np.zeros((rows - len(column), *column.shape[1:]), column.dtype)
                self._columns[name] = np.concatenate([column, added])

    def append(self, **columns: NDArray[Any]) -> None:
        """Add rows: every column, all of one length."""
        end = self.used + len(next(iter(columns.values())))
        for name, column in self._columns.items():
            if end > len(column):
                capacity = 2 * len(column) if len(column) < _SMALL_CAPACITY else int(_GROWTH * len(column))
                larger = np.zeros((max(capacity, end), *column.shape[1:]), column.dtype)
                larger[: self.used] = column[: self.used]
                self._columns[name] = column = larger
            column[self.used : end] = columns[name]
        self.used = end

    def keep(self, chosen: Ints | Bools) -> None:
        """Remove all other rows, and put these in the given order."""
        for name in self._columns:
            self._columns[name] = self[name][chosen]
        self.used = len(next(iter(self._columns.values())))

    def copy(self) -> Table:
        copy = Table()
        copy._columns = {name: self[name].copy() for name in self._columns}
        copy.used = self.used
        return copy

    def save(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield every column."""
        return ((name, self[name]) for name in self._columns)

    def load(self, saved: dict[str, NDArray[Any]]) -> None:
        """Replace the columns by saved ones. Raises ``ValueError``, ``KeyError`` if they do not match this table."""
        columns = {name: saved[name] for name in self._columns}
        used = {len(column) for column in columns.values()}
        kinds = [(column.dtype, column.shape[1:]) for column in self._columns.values()]
        require(len(used) == 1 and kinds == [(column.dtype, column.shape[1:]) for column in columns.values()])
        self._columns, self.used = columns, used.pop()

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self._columns.values())


class StringTable:
    """Strings with small numbers, in order of first use."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._number: dict[str, int] = {}

    def number(self, name: str | None) -> int:
        """Return the number of a name, adding a new one; None is -1."""
        if name is None:
            return -1
        number = self._number.setdefault(name, len(self.all))
        if number == len(self.all):
            self.all.append(name)
        return number

    def numbers(self, names: Sequence[str | None]) -> Ints:
        """Return the numbers of names, see :meth:`number`."""
        known = self._number
        for name in names:
            if name is not None and name not in known:
                self.number(name)
        return np.array([-1 if name is None else known[name] for name in names], np.int64)

    def known(self, name: str) -> int:
        """Return the number of a name, -1 if unknown."""
        return self._number.get(name, -1)

    def save(self, used: Bools) -> list[str | None]:
        """Return the names by number, None for unused ones, which may belong to deleted notes."""
        return [name if is_used else None for name, is_used in zip(self.all, used.tolist(), strict=True)]

    def load(self, names: Sequence[str | None]) -> None:
        """Replace the names by saved ones."""
        self.all = [name or "" for name in names]
        self._number = {name: number for number, name in enumerate(names) if name is not None}

    def copy(self) -> StringTable:
        copy = StringTable()
        copy.all, copy._number = self.all.copy(), self._number.copy()
        return copy


class KeyTable:
    """Keys with small numbers, in order of first use; a dictionary takes five times the memory."""

    def __init__(self) -> None:
        self._keys = Table(key=(np.int64, ()))
        self._sorted: Ints = np.zeros(0, np.int64)
        self._number: NDArray[np.int32] = np.zeros(0, np.int32)  # of each sorted key
        self._recent: dict[int, int] = {}

    @property
    def keys(self) -> Ints:
        """Return all keys, by number."""
        keys: Ints = self._keys["key"]
        return keys

    def find(self, keys: Sequence[int]) -> list[int]:
        """Return the numbers of keys, -1 for unknown ones."""
        if not len(self._sorted):
            return [self._recent.get(key, -1) for key in keys]
        wanted = np.array(keys, np.int64)
        places = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        numbers = np.where(self._sorted[places] == wanted, self._number[places], -1).tolist()
        return [
            number if number >= 0 else self._recent.get(key, -1) for key, number in zip(keys, numbers, strict=True)
        ]

    def take(self, keys: Ints) -> NDArray[np.int32]:
        """Return the numbers of keys, adding new ones."""
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
        """Merge recent and ``fresh`` keys with the sorted ones."""
        recent = sorted(self._recent)
        keys = np.concatenate([self._sorted, np.array(recent, np.int64), fresh])
        order = np.argsort(keys, kind="stable")  # merges the sorted runs
        recent_numbers = np.array([self._recent[key] for key in recent], np.int32)
        self._number = np.concatenate([self._number, recent_numbers, numbers])[order]
        self._sorted, self._recent = keys[order], {}

    def copy(self) -> KeyTable:
        copy = KeyTable()
        copy._keys, copy._sorted, copy._number = self._keys.copy(), self._sorted, self._number
        copy._recent = self._recent.copy()
        return copy

    def save(self, used: Bools) -> SavedArrays:
        """Yield the keys with ``used`` numbers; the other numbers stay reserved."""
        self._merge(_NONE, np.zeros(0, np.int32))
        in_use = used[self._number]
        yield "key", self._sorted[in_use]
        yield "number", self._number[in_use]

    def load(self, saved: dict[str, NDArray[Any]], count: int) -> None:
        """Replace the keys by saved ones of ``count`` numbers. Raises as :meth:`Table.load`."""
        by_key = Table(key=(np.int64, ()), number=(np.int32, ()))
        by_key.load(saved)
        keys, numbers = by_key["key"], by_key["number"]
        require(bool((keys[1:] > keys[:-1]).all()) and within(numbers, 0, count))
        self._sorted, self._number, self._recent = keys, numbers, {}
        self._keys = Table(key=(np.int64, ()))
        self._keys.append(key=np.zeros(count, np.int64))
        self._keys["key"][numbers] = keys

    @property
    def nbytes(self) -> int:
        """Return the memory used; a dictionary entry counts as 100 bytes."""
        return self._keys.nbytes + self._sorted.nbytes + self._number.nbytes + 100 * len(self._recent)


class RowLists:
    """A short list of entries for every row; an entry has a value in each column."""

    def __init__(self, **kinds: tuple[DTypeLike, tuple[int, ...]]) -> None:
        self._entries = Table(**kinds)
        self._places = Table(start=(np.int64, ()), size=(np.int32, ()))
        self._live = 0

    def put(self, rows: Ints, sizes: Ints, **columns: NDArray[Any]) -> None:
        """Replace the lists of rows; ``columns`` contain the new lists end to end."""
        self._grow(int(rows.max(initial=-1)) + 1)
        self._live += int(sizes.sum()) - int(self._places["size"][rows].sum())
        self._places["start"][rows] = self._entries.used + np.cumsum(sizes) - sizes
        self._places["size"][rows] = sizes
        self._entries.append(**columns)
        if self._entries.used > 2 * self._live + FEW:
            self._compact()

    def drop(self, rows: Ints) -> None:
        """Empty the lists of these rows."""
        rows = rows[rows < self._places.used]
        self._live -= int(self._places["size"][rows].sum())
        self._places["size"][rows] = 0

    def take(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return all entries of these rows: each entry's position in ``rows``, and its place in the columns."""
        if not self._places.used:
            return _NONE, _NONE
        known = np.minimum(rows, self._places.used - 1)
        sizes = np.where(rows < self._places.used, self._places["size"][known], 0)
        return spans(self._places["start"][known], sizes)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._entries[name]

    def _grow(self, rows: int) -> None:
        missing = rows - self._places.used
        if missing > 0:
            self._places.append(start=np.zeros(missing, np.int64), size=np.zeros(missing, np.int32))

    def _compact(self) -> None:
        """Remove the entries that no row has any more."""
        _, places = self.take(np.arange(self._places.used))
        self._entries.keep(places)
        self._places["start"][:] = np.cumsum(self._places["size"]) - self._places["size"]

    def copy(self) -> RowLists:
        copy = RowLists()
        copy._entries, copy._places, copy._live = self._entries.copy(), self._places.copy(), self._live
        return copy

    def save(self) -> SavedArrays:
        """Yield the length of each row's list, and the live entries in the order of rows."""
        size, start = self._places["size"], self._places["start"]
        compact_start = np.cumsum(size) - size
        if self._entries.used > self._live or ((start != compact_start) & (size > 0)).any():
            self._compact()
        yield "size", size
        yield from self._entries.save()

    def load(self, saved: dict[str, NDArray[Any]], rows: int) -> None:
        """Replace the lists by saved ones of at most so many rows. Raises as :meth:`Table.load`."""
        self._entries.load(saved)
        sizes = saved["size"]
        require(sizes.dtype == np.int32 and len(sizes) <= rows and within(sizes, 0, self._entries.used + 1))
        ends = np.cumsum(sizes, dtype=np.int64)
        self._live = int(ends[-1]) if len(ends) else 0
        require(self._live == self._entries.used)
        self._places.load({"start": ends - sizes, "size": sizes})

    @property
    def nbytes(self) -> int:
        return self._entries.nbytes + self._places.nbytes


_NONE: Ints = np.zeros(0, np.int64)


def spans(starts: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """Return the places start .. start + size - 1 of every span, end to end: each one's span, and the place."""
    ends = np.cumsum(sizes)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return owner, np.arange(len(owner)) + (starts - ends + sizes)[owner]


def within(values: NDArray[Any], low: int, high: int) -> bool:
    """Return if all values are in low .. high - 1."""
    return not values.size or bool(values.min() >= low and values.max() < high)


def require(sound: bool) -> None:
    """Raise ``ValueError`` unless saved arrays are consistent."""
    if not sound:
        raise ValueError("the saved arrays are inconsistent")
