"""Inverted index in memory: sorted segments that are merged as their number grows."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from zettel.graph.columnar.tables import Table, require, spans, within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike, NDArray

    from zettel.graph.columnar.tables import SavedArrays
    from zettel.ports.query import Ints

MERGE_AT = 4
"""A segment is merged with the previous one unless that one has this many times its entries."""
_NONE: Ints = np.zeros(0, np.int64)


class Segment(NamedTuple):
    """Immutable entries in the order of their keys. Lookups skip entries of rows that were dropped since."""

    number: int
    keys: Ints  # (k,) ascending
    starts: NDArray[np.integer]  # (k + 1,) first entry of each key
    rows: NDArray[np.int32]  # (m,) ascending within a key
    value: NDArray[Any]  # (m,)

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.starts.nbytes + self.rows.nbytes + self.value.nbytes


_ARRAYS = Segment._fields[1:]


class InvertedIndex:
    """Entries by key; each belongs to a row and has a value.

    New entries form a small segment. ``merge`` joins it with earlier segments of similar size, so there are few
    segments and each entry moves only a few times (O'Neil et al. 1996, the log-structured merge-tree). All entries of a
    row are in one segment; dropping a row deletes the number of its segment.
    """

    def __init__(self, value: DTypeLike) -> None:
        self._dtype = value
        self._segments: tuple[Segment, ...] = ()
        self._home = Table(segment=(np.int32, ()))  # segment of each row's entries, 0 for none
        self._last_number = 0
        self.all_live = True
        """If no segment contains entries of dropped rows."""

    def post(self, rows: Ints, keys: Ints, value: NDArray[Any]) -> None:
        """Add entries of rows that have none."""
        if not len(rows):
            return
        order = np.lexsort((rows, keys))
        self._segments = (*self._segments, self._segment(keys[order], rows[order].astype(np.int32), value[order]))

    def merge(self) -> None:
        """Merge the last segments, back to the first that is much larger than those after it."""
        sizes = [len(segment.rows) for segment in self._segments]
        first = len(sizes) - 1
        while first > 0 and sizes[first - 1] < MERGE_AT * sum(sizes[first:]):
            first -= 1
        if 0 <= first < len(sizes) - 1:
            self._segments = (*self._segments[:first], self._join(self._segments[first:]))
            self.all_live = self.all_live or len(self._segments) == 1

    def drop(self, rows: Ints) -> None:
        """Drop the entries of these rows."""
        rows = rows[rows < self._home.used]
        if self._home["segment"][rows].any():
            self._home["segment"][rows] = 0
            self.all_live = False

    def find(self, key: int) -> tuple[Ints, NDArray[Any]]:
        """Return the rows and values of a key's entries."""
        parts = [self._entries(segment, key) for segment in self._segments]
        parts = [(rows, value) for rows, value in parts if len(rows)]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return _NONE, np.zeros(0, self._dtype)
        return np.concatenate([rows for rows, _ in parts]), np.concatenate([value for _, value in parts])

    def counts(self, keys: Sequence[int]) -> list[int]:
        """Return the number of entries of each key."""
        wanted, total = np.array(keys, np.int64), np.zeros(len(keys), np.int64)
        if not self.all_live:
            total += np.bincount(self.find_many(wanted)[0], minlength=len(keys))
            return list(total.tolist())
        for segment in self._segments:
            total += _spans_of(segment, wanted)[1]
        return list(total.tolist())

    def among(self, key: int, rows: Ints) -> tuple[Ints, NDArray[Any]]:
        """Return the positions in ``rows`` of the rows with an entry for the key, and its values."""
        positions, values = [_NONE], [np.zeros(0, self._dtype)]
        for segment in self._segments:
            start, end = _bounds(segment, key)
            if start == end:
                continue
            key_rows = segment.rows[start:end]
            places = np.minimum(np.searchsorted(key_rows, rows), len(key_rows) - 1)
            hits = np.flatnonzero(key_rows[places] == rows)
            hits = hits[self._home["segment"][rows[hits]] == segment.number]
            positions.append(hits)
            values.append(segment.value[start + places[hits]])
        return np.concatenate(positions), np.concatenate(values)

    def find_many(self, keys: Ints) -> tuple[Ints, Ints, NDArray[Any]]:
        """Return all entries of these keys: each entry's position in ``keys``, its row and its value."""
        positions, rows, values = [_NONE], [_NONE], [np.zeros(0, self._dtype)]
        for segment in self._segments:
            position, at = spans(*_spans_of(segment, keys))
            if len(at):
                row = segment.rows[at].astype(np.int64)
                if not self.all_live:
                    live = self._home["segment"][row] == segment.number
                    position, at, row = position[live], at[live], row[live]
                positions.append(position)
                rows.append(row)
                values.append(segment.value[at])
        if len(positions) == 2:  # usually one segment has them
            return positions[1], rows[1], values[1]
        return np.concatenate(positions), np.concatenate(rows), np.concatenate(values)

    def _entries(self, segment: Segment, key: int) -> tuple[Ints, NDArray[Any]]:
        start, end = _bounds(segment, key)
        rows = segment.rows[start:end].astype(np.int64)
        value = segment.value[start:end]
        if self.all_live or start == end:
            return rows, value
        live = self._home["segment"][rows] == segment.number
        return rows[live], value[live]

    def _segment(self, keys: Ints, rows: NDArray[np.int32], value: NDArray[Any]) -> Segment:
        """Build a segment of entries in the order of their keys, and assign their rows to it."""
        missing = int(rows.max(initial=-1)) + 1 - self._home.used
        if missing > 0:
            self._home.append(segment=np.zeros(missing, np.int32))
        self._last_number += 1
        self._home["segment"][rows] = self._last_number
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
        ends = np.append(starts, len(keys)).astype(np.int32 if len(keys) < 2**31 else np.int64)
        return Segment(self._last_number, keys[starts], ends, rows, np.ascontiguousarray(value, self._dtype))

    def _join(self, segments: Sequence[Segment]) -> Segment:
        keys = np.concatenate([np.repeat(segment.keys, np.diff(segment.starts)) for segment in segments])
        rows = np.concatenate([segment.rows for segment in segments])
        value = np.concatenate([segment.value for segment in segments])
        if not self.all_live:
            number = np.repeat([segment.number for segment in segments], [len(segment.rows) for segment in segments])
            live = self._home["segment"][rows] == number
            keys, rows, value = keys[live], rows[live], value[live]
        ends = [(segment.rows.min(), segment.rows.max()) for segment in segments if len(segment.rows)]
        if all(last < first for (_, last), (first, _) in pairwise(ends)):
            order = np.argsort(keys, kind="stable")  # merges the sorted segments
        else:
            order = np.lexsort((rows, keys))
        return self._segment(keys[order], rows[order], value[order])

    def copy(self) -> InvertedIndex:
        """Return an independent copy, which shares the immutable segments."""
        copy = InvertedIndex(self._dtype)
        copy._segments, copy._home = self._segments, self._home.copy()
        copy._last_number, copy.all_live = self._last_number, self.all_live
        return copy

    def save(self) -> SavedArrays:
        """Yield the live entries, segment by segment."""
        numbers = []
        for segment in self._segments:
            live = segment if self.all_live else self._live(segment)
            if len(live.rows):
                numbers.append(live.number)
                yield from ((f"{live.number}.{name}", getattr(live, name)) for name in _ARRAYS)
        yield "numbers", np.array(numbers, np.int32)
        yield from self._home.save()

    def _live(self, segment: Segment) -> Segment:
        """Return a segment with the live entries only."""
        live = self._home["segment"][segment.rows] == segment.number
        ends = np.append(0, np.cumsum(live))[segment.starts]
        used = np.flatnonzero(np.diff(ends))
        starts = np.append(ends[used], ends[-1]).astype(segment.starts.dtype)
        return Segment(segment.number, segment.keys[used], starts, segment.rows[live], segment.value[live])

    def load(self, saved: dict[str, NDArray[Any]], rows: int) -> None:
        """Replace the entries by saved ones of at most so many rows. Raises as :meth:`Table.load`."""
        self._home.load(saved)
        numbers = saved["numbers"].tolist()
        segments = [Segment(number, *(saved[f"{number}.{name}"] for name in _ARRAYS)) for number in numbers]
        kind = np.dtype(self._dtype)
        for _, keys, starts, segment_rows, value in segments:
            require([keys.dtype, segment_rows.dtype, value.dtype] == [np.dtype(np.int64), np.dtype(np.int32), kind])
            require(starts.dtype in (np.int32, np.int64) and len(starts) == len(keys) + 1)
            require(len(keys) > 0 and len(segment_rows) == len(value) == starts[-1] and starts[0] == 0)
            require(bool((keys[1:] > keys[:-1]).all()) and bool((np.diff(starts) > 0).all()))
            require(within(segment_rows, 0, min(rows, self._home.used)))
        self._segments, self._last_number, self.all_live = tuple(segments), max(numbers, default=0), True

    @property
    def nbytes(self) -> int:
        return sum(segment.nbytes for segment in self._segments) + self._home.nbytes


def _bounds(segment: Segment, key: int) -> tuple[int, int]:
    place = int(np.searchsorted(segment.keys, key))
    if place == len(segment.keys) or segment.keys[place] != key:
        return 0, 0
    return int(segment.starts[place]), int(segment.starts[place + 1])


def _spans_of(segment: Segment, keys: Ints) -> tuple[Ints, Ints]:
    """Return the first entry and the number of entries of each key."""
    if not len(segment.keys):  # all its rows were dropped
        return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
    places = np.searchsorted(segment.keys, keys)
    np.minimum(places, len(segment.keys) - 1, out=places)
    starts = segment.starts[places].astype(np.int64)
    return starts, np.where(segment.keys[places] == keys, segment.starts[places + 1] - starts, 0)
