"""Entries found by key, in segments that are merged as they become many: what a scope in memory is searched by."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from zettel.graph.columnar.growing import Table, require, spans, within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike, NDArray

    from zettel.graph.columnar.growing import Saved
    from zettel.query import Ints

MERGE_AT = 4
"""A segment is merged with the one before it unless that has this many times its entries."""
_NONE: Ints = np.zeros(0, np.int64)


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


_SAVED = Segment._fields[1:]
"""Arrays of a segment."""


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

    def counts(self, keys: Sequence[int]) -> list[int]:
        """The same for each of these."""
        return [self.count(key) for key in keys]

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

    def saved(self) -> Saved:
        """The entries that count, segment by segment; see :meth:`Table.saved`."""
        numbers = []
        for segment in self._segments:
            live = segment if self.whole else self._live(segment)
            if len(live.rows):
                numbers.append(live.number)
                yield from ((f"{live.number}.{name}", getattr(live, name)) for name in _SAVED)
        yield "numbers", np.array(numbers, np.int32)
        yield from self._home.saved()

    def _live(self, segment: Segment) -> Segment:
        """Only the entries whose row has not moved on."""
        live = self._home["segment"][segment.rows] == segment.number
        ends = np.append(0, np.cumsum(live))[segment.starts]
        kept = np.flatnonzero(np.diff(ends))
        starts = np.append(ends[kept], ends[-1]).astype(segment.starts.dtype)
        return Segment(segment.number, segment.keys[kept], starts, segment.rows[live], segment.value[live])

    def restore(self, saved: dict[str, NDArray[Any]], rows: int) -> None:
        """Hold these entries of at most so many rows. Raises as :meth:`Table.restore`."""
        self._home.restore(saved)
        numbers = saved["numbers"].tolist()
        segments = [Segment(number, *(saved[f"{number}.{name}"] for name in _SAVED)) for number in numbers]
        kind = np.dtype(self._dtype)
        for one in segments:
            require([one.keys.dtype, one.rows.dtype, one.value.dtype] == [np.dtype(np.int64), np.dtype(np.int32), kind])
            require(one.starts.dtype in (np.int32, np.int64) and len(one.starts) == len(one.keys) + 1)
            require(len(one.keys) > 0 and len(one.rows) == len(one.value) == one.starts[-1] and one.starts[0] == 0)
            require(bool((one.keys[1:] > one.keys[:-1]).all()) and bool((np.diff(one.starts) > 0).all()))
            require(within(one.rows, 0, min(rows, self._home.used)))
        self._segments, self._made, self.whole = tuple(segments), max(numbers, default=0), True

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return sum(segment.nbytes for segment in self._segments) + self._home.nbytes


def _bounds(segment: Segment, key: int) -> tuple[int, int]:
    place = int(np.searchsorted(segment.keys, key))
    if place == len(segment.keys) or segment.keys[place] != key:
        return 0, 0
    return int(segment.starts[place]), int(segment.starts[place + 1])
