"""A scope in memory for who only writes: which notes there are, their vectors, and how many notes hold each word.

To link and to annotate what arrives takes no more: some 20 bytes a note, where columns take a thousand, and of a large
scope's vectors one code each instead of two. A search takes the columns, and they are kept up from then on; so they are
where a note that was there says something else, or is gone.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from typing import TYPE_CHECKING, cast

import numpy as np

from zettel.graph.columnar.columns import GONE, as_ints, places_of
from zettel.graph.columnar.growing import Table
from zettel.graph.columnar.nearest import Flat, Nearest
from zettel.graph.keys import columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zettel.graph.embedded.lists import Listed
    from zettel.query import Bools, Ints

READ_AT_ONCE = 2_000
"""Notes fetched from the file at once: about 6 MB."""
_CHANGED = "SELECT number FROM notes WHERE scope = ? AND changed > ?"
_REMOVED = "SELECT EXISTS (SELECT 1 FROM removed WHERE scope = ? AND changed > ?)"
_NOTES = """SELECT n.number, n.archived, n.entries, v.vector FROM json_each(?) CROSS JOIN notes n ON n.number = value
    LEFT JOIN vectors v ON v.note = n.number AND v.space = ?"""


class Counts:
    """How many notes hold each word."""

    def __init__(self) -> None:
        self._keys: Ints = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int32)

    def add(self, keys: Ints) -> None:
        """One more note for every time that a key stands here."""
        distinct, counts = np.unique(keys, return_counts=True)
        places, known = self._places(distinct)
        self._counts[places[known]] += counts[known].astype(np.int32)
        self._keys = np.insert(self._keys, places[~known], distinct[~known])
        self._counts = np.insert(self._counts, places[~known], counts[~known])

    def counts(self, keys: Sequence[int]) -> list[int]:
        """How many notes hold each of these."""
        asked = np.array(keys, np.int64)
        places, known = self._places(asked)
        counts = np.zeros(len(asked), np.int32)
        counts[known] = self._counts[places[known]]
        return cast("list[int]", counts.tolist())

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self._keys.nbytes + self._counts.nbytes

    def _places(self, keys: Ints) -> tuple[Ints, Bools]:
        """Where each of these stands or would stand, and whether it does."""
        places = np.searchsorted(self._keys, keys)
        known = np.zeros(len(keys), np.bool_)
        inside = places < len(self._keys)
        known[inside] = self._keys[places[inside]] == keys[inside]
        return places, known


class Outline:
    """One scope's notes with the vectors of one set, as they stood at the scope's count ``changed``.

    Rows stand for notes, as in :class:`zettel.graph.columnar.columns.Columns`.
    """

    def __init__(self, scope: int, dim: int, listed: Listed | None = None) -> None:
        self.scope = scope
        self.dim = dim
        self.changed = -1
        self.listed = listed
        self.notes = Table(number=(np.int64, ()), stamp=(np.int64, ()), shown=(np.bool_, ()))
        self.vectors: Nearest = Flat(dim) if listed is None else listed.inverted(at_hand=False)
        self.words = Counts()

    @property
    def rows(self) -> int:
        """Notes."""
        return self.notes.used

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self.notes.nbytes + self.vectors.nbytes + self.words.nbytes

    def rows_of(self, numbers: Ints) -> Ints:
        """Rows of notes by their numbers, GONE for unknown ones."""
        return places_of(self.notes["number"], numbers)

    def shown(self) -> Bools:
        """Which rows are shown."""
        shown: Bools = self.notes["shown"]
        return shown

    def visible(self) -> Bools:
        """The same, with a place for GONE."""
        return np.append(self.shown(), False)


def extend(sql: sqlite3.Connection, outline: Outline, space: int) -> bool:
    """Bring it in step; False if something is gone or says something else, which it cannot take in."""
    since = (outline.scope, outline.changed)
    if sql.execute(_REMOVED, since).fetchone()[0]:
        return False
    changed = np.sort(np.fromiter((number for (number,) in sql.execute(_CHANGED, since)), np.int64))
    for start in range(0, len(changed), READ_AT_ONCE):
        asked = json.dumps(changed[start : start + READ_AT_ONCE].tolist())
        numbers, archived, entries, vectors = zip(*sql.execute(_NOTES, (asked, space)), strict=True)
        if not _take(outline, as_ints(numbers), as_ints(archived) == 0, entries, vectors):
            return False
    return True


def _take(
    outline: Outline, numbers: Ints, shown: Bools, entries: Sequence[bytes], vectors: Sequence[bytes | None]
) -> bool:
    rows, notes = outline.rows_of(numbers), outline.notes
    old = rows != GONE
    plain = whole = _stamps(entries)
    if outline.dim:
        whole = _stamps([*map(b"".join, zip(entries, [v or b"" for v in vectors], strict=True))])
    stamp = notes["stamp"][rows[old]]
    same = (stamp == whole[old]) | (stamp == plain[old])  # it may have got its vector since, and nothing else
    if not (same & (notes["shown"][rows[old]] == shown[old])).all():
        return False
    embeds = (stamp != whole[old]) & same
    notes["stamp"][rows[old]] = whole[old]
    new = np.flatnonzero(~old)
    rows[new] = np.arange(outline.rows, outline.rows + len(new))
    notes.append(number=numbers[new], stamp=whole[new], shown=shown[new])
    keys, counts, _ = columns_of([entries[place] for place in new.tolist()])
    outline.words.add(keys[counts > 0])
    put = np.sort(np.append(new, np.flatnonzero(old)[embeds]))
    put = put[[vectors[place] is not None for place in put.tolist()]]
    if outline.dim and len(put):
        filled = b"".join(vectors[place] or b"" for place in put.tolist())
        lists = None if outline.listed is None else outline.listed.of(numbers[put])
        outline.vectors.put(rows[put], np.frombuffer(filled, "<f4").reshape(-1, outline.dim), lists)
    return True


def _stamps(told: Sequence[bytes]) -> Ints:
    """64 bits by which it is seen that what a note is found by did not change."""
    return np.frombuffer(b"".join([hashlib.sha1(one, usedforsecurity=False).digest()[:8] for one in told]), "<i8")
