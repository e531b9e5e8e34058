"""Word frequencies in general text, for scopes with too few notes for statistics of their own.

``frequencies.bin`` contains a Zipf value (the decimal logarithm of occurrences per 10^9 words, after van Heuven et al.
2014) for the commoner tokens of twelve languages, keyed by the CRC-32 of the token: n little-endian uint32 keys in
rising order, then n bytes with the Zipf value in steps of ``1 / STEPS_PER_ZIPF`` and, as the top bit, whether the
word is mostly a name. An unknown word shares the key of another token with a chance of 1 in 30,000;
its rarity is then wrong. ``PROVENANCE.md`` names the sources of the numbers; ``zettel.text.build_background`` writes
the file.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from zettel.text.tokens import is_unspaced

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STEPS_PER_ZIPF = 15
"""Resolution of a stored Zipf value: seven bits for 0 to 8."""
NAME_BIT = 0x80
"""Set on words that are mostly names."""

COMMON_ZIPF = 7.0
"""As common as "the" (6.9 or so): rarity 0."""
UNSEEN_ZIPF = 2.0
"""Zipf value of a word that is not in the table, below the rarest word in it: rarity 1."""
NUMBER_ZIPF = 4.0
"""Zipf value of all numbers, which are not in the table: that of a word of medium frequency."""

_CACHED_TOKENS = 32_768
_PER_BILLION = 9.0


@cache
def _table() -> tuple[array[int], bytes]:
    data = files(__name__).joinpath("frequencies.bin").read_bytes()
    size = len(data) // 5
    keys = array("I", data[: 4 * size])
    if sys.byteorder == "big":
        keys.byteswap()
    return keys, data[4 * size :]


def _entry(token: str) -> int:
    """Return the stored byte of a token, or -1."""
    keys, values = _table()
    key = zlib.crc32(token.encode("utf-8", "replace"))
    at = bisect_left(keys, key)
    return values[at] if at < len(keys) and keys[at] == key else -1


@lru_cache(maxsize=_CACHED_TOKENS)
def zipf(token: str) -> float:
    """Return the Zipf value of a token in general text: from ``UNSEEN_ZIPF`` to about 7.

    The value of an unknown pair of characters assumes that the two characters are independent.
    """
    if token[:1].isdecimal():
        return NUMBER_ZIPF
    entry = _entry(token)
    if entry >= 0:
        return (entry & ~NAME_BIT) / STEPS_PER_ZIPF
    if len(token) == 2 and is_unspaced(token):
        return max(UNSEEN_ZIPF, zipf(token[0]) + zipf(token[1]) - _PER_BILLION)
    return UNSEEN_ZIPF


@lru_cache(maxsize=_CACHED_TOKENS)
def is_namelike(token: str) -> bool:
    """Return True if the token is mostly a name: about as common in languages that lack the word as in English."""
    entry = _entry(token)
    return entry >= NAME_BIT


@lru_cache(maxsize=_CACHED_TOKENS)
def rarity_of(token: str) -> float:
    """Return the rarity of a token, 0 (most common) to 1 (unknown): linear in the Zipf value, and so in idf."""
    return min(1.0, max(0.0, (COMMON_ZIPF - zipf(token)) / (COMMON_ZIPF - UNSEEN_ZIPF)))


def background_rarity(tokens: Sequence[str]) -> NDArray[np.float32]:
    """Return the rarity of each token, (len(tokens),) float32."""
    import numpy as np

    return np.fromiter(map(rarity_of, tokens), dtype=np.float32, count=len(tokens))


def is_known(token: str) -> bool:
    """Return True if the table contains the token."""
    return _entry(token) >= 0
