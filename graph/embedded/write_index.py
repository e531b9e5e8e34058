"""A scope in memory for writers: notes, vectors, and document frequencies of words.

It is sufficient for linking and annotating new notes: about 20 bytes a note instead of a thousand, and one vector code
instead of two. A search, or a change to an existing note, replaces it with columns.
"""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, cast

import numpy as np

from zettel.graph.columnar.columns import MISSING, as_ints, places_of
from zettel.graph.columnar.ingest import stamps
from zettel.graph.columnar.ivf import IvfLists, empty_index
from zettel.graph.columnar.tables import Table
from zettel.graph.keys import columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zettel.ports.query import Bools, Ints

READ_AT_ONCE = 2_000
"""Notes fetched at once: about 6 MB."""
_CHANGED = "SELECT number FROM notes WHERE scope = ? AND changed > ?"
_REMOVED = "SELECT EXISTS (SELECT 1 FROM removed WHERE scope = ? AND changed > ?)"
_NOTES = """SELECT n.number, n.archived, n.entries, v.vector FROM json_each(?) CROSS JOIN notes n ON n.number = value
    LEFT JOIN vectors v ON v.note = n.number AND v.space = ?"""


class WordCounts:
    """The number of notes with each word, by word key."""

    def __init__(self) -> None:
        self._keys: Ints = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int32)

    def add(self, keys: Ints) -> None:
        """Count one more note for every occurrence of a key."""
        distinct, counts = np.unique(keys, return_counts=True)
        places, known = self._places(distinct)
        self._counts[places[known]] += counts[known].astype(np.int32)
        self._keys = np.insert(self._keys, places[~known], distinct[~known])
        self._counts = np.insert(self._counts, places[~known], counts[~known])

    def counts(self, keys: Sequence[int]) -> list[int]:
        """Return the number of notes with each key."""
        places, known = self._places(np.array(keys, np.int64))
        counts = np.zeros(len(keys), np.int32)
        counts[known] = self._counts[places[known]]
        return cast("list[int]", counts.tolist())

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._counts.nbytes

    def _places(self, keys: Ints) -> tuple[Ints, Bools]:
        """Return where each key is or belongs, and which keys are known."""
        places = np.searchsorted(self._keys, keys)
        known = np.zeros(len(keys), np.bool_)
        inside = places < len(self._keys)
        known[inside] = self._keys[places[inside]] == keys[inside]
        return places, known


class WriteIndex:
    """One scope's notes with the vectors of one set, in the state of the scope's counter ``changed``.

    Each row is a note, as in :class:`zettel.graph.columnar.columns.Columns`.
    """

    def __init__(self, scope: int, dim: int, ivf: IvfLists | None = None) -> None:
        self.scope = scope
        self.dim = dim
        self.changed = -1
        self.ivf = ivf
        self.notes = Table(number=(np.int64, ()), stamp=(np.int64, ()), shown=(np.bool_, ()))
        self.vectors = empty_index(dim, ivf, searched=False)
        self.words = WordCounts()

    @property
    def rows(self) -> int:
        return self.notes.used

    @property
    def nbytes(self) -> int:
        return self.notes.nbytes + self.vectors.nbytes + self.words.nbytes

    def rows_of(self, numbers: Ints) -> Ints:
        """Return the rows of notes by number, MISSING for unknown ones."""
        return places_of(self.notes["number"], numbers)

    def shown(self) -> Bools:
        """Return which rows are not archived."""
        shown: Bools = self.notes["shown"]
        return shown

    def visible(self) -> Bools:
        """Return :meth:`shown` with an additional place for MISSING."""
        return np.append(self.shown(), False)


def extend(sql: sqlite3.Connection, index: WriteIndex, space: int) -> bool:
    """Add new notes. Returns False after a deletion or a change of content, which the index does not support."""
    since = (index.scope, index.changed)
    if sql.execute(_REMOVED, since).fetchone()[0]:
        return False
    changed = np.sort(np.fromiter((number for (number,) in sql.execute(_CHANGED, since)), np.int64))
    for start in range(0, len(changed), READ_AT_ONCE):
        wanted = json.dumps(changed[start : start + READ_AT_ONCE].tolist())
        numbers, archived, entries, vectors = zip(*sql.execute(_NOTES, (wanted, space)), strict=True)
        if not _add_notes(index, as_ints(numbers), as_ints(archived) == 0, entries, vectors):
            return False
    return True


def _add_notes(
    index: WriteIndex, numbers: Ints, shown: Bools, entries: Sequence[bytes], vectors: Sequence[bytes | None]
) -> bool:
    rows, notes = index.rows_of(numbers), index.notes
    old = rows != MISSING
    text_stamps = full_stamps = stamps(entries)
    if index.dim:
        full_stamps = stamps(entries, vectors)
    stamp = notes["stamp"][rows[old]]
    same = (stamp == full_stamps[old]) | (stamp == text_stamps[old])  # a vector alone may have been added
    if not (same & (notes["shown"][rows[old]] == shown[old])).all():
        return False
    newly_embedded = (stamp != full_stamps[old]) & same
    notes["stamp"][rows[old]] = full_stamps[old]
    new = np.flatnonzero(~old)
    rows[new] = np.arange(index.rows, index.rows + len(new))
    notes.append(number=numbers[new], stamp=full_stamps[new], shown=shown[new])
    keys, counts, _ = columns_of([entries[place] for place in new.tolist()])
    index.words.add(keys[counts > 0])
    put = np.sort(np.append(new, np.flatnonzero(old)[newly_embedded]))
    put = put[[vectors[place] is not None for place in put.tolist()]]
    if index.dim and len(put):
        blob = b"".join(vectors[place] or b"" for place in put.tolist())
        lists = None if index.ivf is None else index.ivf.of(numbers[put])
        index.vectors.put(rows[put], np.frombuffer(blob, "<f4").reshape(-1, index.dim), lists)
    return True
