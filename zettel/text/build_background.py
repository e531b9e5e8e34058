"""Builds ``background/frequencies.bin``: ``python -m zettel.text.build_background``.

Requires the package ``wordfreq``. zettel's tokenizer splits the word lists, so the keys are the tokens of indexes.
Languages that share a script are mixed by weight: "die" is as common as in English and German together.
"""

from __future__ import annotations

import math
import sys
import zlib
from array import array
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from zettel.text.background import NAME_BIT, STEPS_PER_ZIPF
from zettel.text.tokens import is_unspaced, tokenize

MIXTURES: tuple[Mapping[str, float], ...] = (
    {"en": 0.64, "de": 0.06, "fr": 0.06, "es": 0.06, "it": 0.06, "pt": 0.06, "nl": 0.06},
    {"ru": 1.0},
    {"ar": 1.0},
    {"zh": 0.6, "ja": 0.4},
    {"ko": 1.0},
)
"""Weights of the languages within a script. About two of three texts in Latin letters are English."""

TABLE_SIZES: tuple[int, ...] = (60_000, 16_000, 16_000, 30_000, 8_000)
"""Most frequent tokens per mixture in the table: 130,000 entries of 5 bytes."""

NAME_LANGUAGES = ("de", "fr", "es", "it", "pt", "nl")
NAME_GAP = 0.8
"""A word is a name when most other languages have it within this many Zipf steps of English."""
NAME_AGREEING = 5
NAME_MIN_ZIPF = 2.5

TARGET = Path(__file__).parent / "background" / "frequencies.bin"


def main() -> None:
    """Write the table and print its size."""
    entries: dict[int, int] = {}
    names = _names()
    for mixture, size in zip(MIXTURES, TABLE_SIZES, strict=True):
        shares = _shares(mixture)
        for token in sorted(shares, key=lambda token: (-shares[token], token))[:size]:
            value = max(0, min(NAME_BIT - 1, round(STEPS_PER_ZIPF * _zipf(shares[token]))))
            value |= NAME_BIT if token in names else 0
            key = zlib.crc32(token.encode())
            entries[key] = max(entries.get(key, 0), value)
    keys = array("I", sorted(entries))
    values = bytes(entries[key] for key in keys)
    if sys.byteorder == "big":
        keys.byteswap()
    TARGET.write_bytes(keys.tobytes() + values)
    sys.stdout.write(f"{TARGET.name}: {len(values)} tokens, {TARGET.stat().st_size} bytes\n")


def _shares(mixture: Mapping[str, float]) -> dict[str, float]:
    """Return each token's share of a mixture's running text."""
    shares: dict[str, float] = defaultdict(float)
    for language, weight in mixture.items():
        counts, total = _counts(language)
        for token, count in counts.items():
            shares[token] += weight * count / total
    pairs = [token for token in shares if len(token) == 2 and is_unspaced(token)]
    for pair in pairs:  # within a word, or across two words
        shares[pair] += shares.get(pair[0], 0.0) * shares.get(pair[1], 0.0)
    return shares


def _counts(language: str) -> tuple[dict[str, float], float]:
    """Return a language's token counts per word of running text, and their total.

    Scripts without spaces count every character and every pair; the total counts only the characters.
    """
    counts: dict[str, float] = defaultdict(float)
    total = 0.0
    for word, share in _word_list(language).items():
        if any(char.isdecimal() for char in word):  # the source folds all numbers into shapes such as 0000
            continue
        for token in tokenize(word):
            unspaced = is_unspaced(token)
            if unspaced and len(token) > 1:
                counts[token] += share
            elif not unspaced:
                counts[token] += share
                total += share
        for char in filter(is_unspaced, word):
            counts[char] += share
            total += share
    return counts, total


def _names() -> set[str]:
    """Return tokens whose most frequent English form is a name: other languages use it equally often."""
    word_lists = [_word_list(language) for language in NAME_LANGUAGES]
    forms: dict[str, tuple[float, str]] = {}
    for word, share in _word_list("en").items():
        for token in tokenize(word)[:1]:
            forms[token] = max(forms.get(token, (0.0, "")), (share, word))

    def agreeing(word: str, share: float) -> int:
        floor = _zipf(share) - NAME_GAP
        return sum(_zipf(words.get(word, 0.0)) >= floor for words in word_lists)

    return {
        token
        for token, (share, word) in forms.items()
        if _zipf(share) >= NAME_MIN_ZIPF and word.isalpha() and agreeing(word, share) >= NAME_AGREEING
    }


def _zipf(share: float) -> float:
    return math.log10(share) + 9 if share > 0 else 0.0


def _word_list(language: str) -> Mapping[str, float]:
    from wordfreq import get_frequency_dict

    words: Mapping[str, float] = get_frequency_dict(language, "best")
    return words


if __name__ == "__main__":
    main()
