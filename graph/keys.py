"""Keyed hashes of index entries: words, terms, title keys and facets.

Postings contain 64-bit hashes, keyed with the scope's secret, in place of words. They are small and of fixed size, and
unreadable once the secret is destroyed, so no stem of a deleted text remains in the file. Two of 100,000 words of a
large scope share a hash with a probability of 3e-10.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from zettel.model import Note, as_metadata_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.model import NoteIndex
    from zettel.ports.query import Filter

Entry = tuple[int, int]
"""A key with its count: occurrences of a word, else FACET or TITLE."""
FACET, TITLE = 0, -1
"""Counts of entries that are not words: facets, which filters use, and title keys."""

ENTRY = np.dtype([("key", "<i8"), ("count", "<i4")])
"""One packed entry: 12 bytes."""

MAX_CACHED = 100_000
"""Cached hashes of one kind, about 15 MB."""
LONGEST_CACHED = 200
"""Characters of a cached name: longer ones are metadata that rarely occurs twice."""


class _Hashes(dict[str, int]):
    """A cache of the hashes of one kind of names; a missing hash is computed."""

    def __init__(self, secret: bytes, mark: str) -> None:
        self._secret = secret
        self._mark = mark

    def __missing__(self, name: str) -> int:
        digest = hashlib.blake2b((self._mark + name).encode(), digest_size=8, key=self._secret).digest()
        key = int.from_bytes(digest, "little", signed=True)
        if len(name) <= LONGEST_CACHED:
            if len(self) >= MAX_CACHED:
                self.clear()
            self[name] = key
        return key


class Keys:
    """Hashes with one scope's secret. ``int`` keys are signed 64-bit, as SQLite's are.

    ``word`` hashes a token, ``term`` and ``title`` the normal form of a term or title, ``tag`` a tag, ``metadata`` a
    flat ``key=value``, and ``source`` the file of an event.
    """

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self.word = _Hashes(secret, "w").__getitem__
        self.term = _Hashes(secret, "k").__getitem__
        self.title = _Hashes(secret, "t").__getitem__
        self.tag = _Hashes(secret, "g").__getitem__
        self.metadata = _Hashes(secret, "m").__getitem__
        self.source = _Hashes(secret, "s").__getitem__

    def entries(self, index: NoteIndex) -> list[Entry]:
        """Return the entries of an index, without facets."""
        words = list(zip(map(self.word, index.tokens), index.tokens.values(), strict=True))
        return words + [(self.title(name), TITLE) for name in index.title_keys]

    def facets(self, note: Note, sources: Iterable[str]) -> list[Entry]:
        """Return the facets of a note whose events are from these files."""
        keys = {self.tag(tag) for tag in note.tags}
        keys.update(map(self.metadata, as_metadata_pairs(note.metadata)))
        keys.update(map(self.source, sources))
        return [(key, FACET) for key in keys]

    def filter_facets(self, filter: Filter) -> tuple[list[int], list[int]]:
        """Return the facets that a filter requires: any of the first list (if not empty), and all of the second."""
        every = [self.metadata(pair) for pair in filter.metadata]
        if filter.source is not None:
            every.append(self.source(filter.source))
        return [self.tag(tag) for tag in filter.tags], every


def packed(entries: Sequence[Entry]) -> bytes:
    """Pack entries for a note's row."""
    return struct.pack("<" + "qi" * len(entries), *chain.from_iterable(entries))


def unpacked(blob: bytes) -> list[Entry]:
    """The inverse of :func:`packed`."""
    return list(struct.iter_unpack("<qi", blob))


def columns_of(blobs: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Return keys and counts of many notes' entries, end to end, and the number of entries of each note."""
    entries = np.frombuffer(b"".join(blobs), dtype=ENTRY)
    sizes = np.fromiter(map(len, blobs), np.int64, len(blobs)) // ENTRY.itemsize
    return entries["key"].astype(np.int64), entries["count"].astype(np.int32), sizes
