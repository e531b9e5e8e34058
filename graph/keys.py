"""What a note is found by, as keyed hashes: words, Terms, title keys and what filters ask for.

Postings hold 64-bit hashes keyed with the scope's secret and not the words: they are small and of one size, they tell
nothing once the secret is gone, and no stem of a deleted text can linger between the pages of the file. Among the
100,000 different words of a large scope two share a hash with a probability of 3e-10.
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

    from zettel.batch import NoteIndex
    from zettel.query import Filter

Entry = tuple[int, int]
"""A key with its count: of a word how often it stands there, else one of these two."""
FACET, TITLE = 0, -1
"""Counts of entries that are no words: what a filter asks for, and title keys."""

ENTRY = np.dtype([("key", "<i8"), ("count", "<i4")])
"""One entry in a note's row: 12 bytes."""

MAX_REMEMBERED = 100_000
"""Hashes of one kind kept for the next note, about 15 MB: hashing a word again costs more than storing it."""
LONGEST_REMEMBERED = 200
"""Characters of a name that is kept: what is longer is metadata that hardly comes twice."""


class _Hashes(dict[str, int]):
    """Hashes of one kind of names, looked up like a dict's values and made when first asked for."""

    def __init__(self, secret: bytes, mark: str) -> None:
        self._secret = secret
        self._mark = mark

    def __missing__(self, name: str) -> int:
        digest = hashlib.blake2b((self._mark + name).encode(), digest_size=8, key=self._secret).digest()
        key = int.from_bytes(digest, "little", signed=True)
        if len(name) <= LONGEST_REMEMBERED:
            if len(self) >= MAX_REMEMBERED:
                self.clear()
            self[name] = key
        return key


class Keys:
    """Hashes with one scope's secret. ``int`` keys are signed 64-bit, as SQLite's are.

    ``word`` gives the key of a token, ``term`` that of a Term's normal form, ``title`` that of a title's, ``tag`` and
    ``metadata`` those of a tag and of a flat ``key=value`` as filters ask for them, ``source`` that of a file that an
    event was read from.
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
        """What an index says, without facets."""
        words = list(zip(map(self.word, index.tokens), index.tokens.values(), strict=True))
        return words + [(self.title(name), TITLE) for name in index.title_keys]

    def facets(self, note: Note, sources: Iterable[str]) -> list[Entry]:
        """What filters may ask of a note whose events were read from these files."""
        keys = {self.tag(tag) for tag in note.tags}
        keys.update(map(self.metadata, as_metadata_pairs(note.metadata)))
        keys.update(map(self.source, sources))
        return [(key, FACET) for key in keys]

    def asked(self, filter: Filter) -> tuple[list[int], list[int]]:
        """The facets a filter asks for: any of the first (if there are any), and all of the second."""
        every = [self.metadata(pair) for pair in filter.metadata]
        if filter.source is not None:
            every.append(self.source(filter.source))
        return [self.tag(tag) for tag in filter.tags], every


def packed(entries: Sequence[Entry]) -> bytes:
    """Entries as they stand in a note's row."""
    return struct.pack("<" + "qi" * len(entries), *chain.from_iterable(entries))


def unpacked(blob: bytes) -> list[Entry]:
    """The inverse of :func:`packed`."""
    return list(struct.iter_unpack("<qi", blob))


def columns_of(blobs: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Many notes' entries at once: keys and counts, end to end, and how many each note has."""
    entries = np.frombuffer(b"".join(blobs), dtype=ENTRY)
    sizes = np.fromiter(map(len, blobs), np.int64, len(blobs)) // ENTRY.itemsize
    return entries["key"].astype(np.int64), entries["count"].astype(np.int32), sizes
