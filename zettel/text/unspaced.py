"""Finds words in scripts without spaces, by the cohesion of their characters.

A run of Katakana is a word. In a run of Han, pairs of characters that are adjacent far more often than by chance are
words, the strongest first (pointwise mutual information of Church and Hanks 1990, from the background table). Hangul
has spaces, so a run is a word, without its final particle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from zettel.text.background import is_known, rarity_of, zipf

COHESION = 1.0
"""A pair ten times as frequent as by chance is a word."""
_PER_BILLION = 9.0

_RUNS = re.compile(
    "([\u30a1-\u30fa\u30fc]{2,})|([\u3005\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]{2,})|([\uac00-\ud7a3]{2,})"
)
_PARTICLE = re.compile("(?<=..)(?:에서|에게|한테|으로|까지|부터|처럼|은|는|이|가|을|를|에|의|도|와|과|로|만)$")


def unspaced_words(text: str) -> Iterator[tuple[str, int, float]]:
    """Yield the words of a cleaned text in Katakana, Han or Hangul: (word, position, rarity 0..1)."""
    for match in _RUNS.finditer(text):
        katakana, han, _ = match.groups()
        run, start = match.group(), match.start()
        if han:
            for at in _strongest_pairs(run):
                pair = run[at : at + 2]
                yield pair, start + at, rarity_of(pair)
        else:
            word = run if katakana else _PARTICLE.sub("", run)
            yield word, start, max(rarity_of(word[at : at + 2]) for at in range(len(word) - 1))


def _strongest_pairs(run: str) -> list[int]:
    """Return the positions of the words of two characters in a run, without overlaps."""
    pairs = sorted(
        (-cohesion, at) for at in range(len(run) - 1) if (cohesion := _cohesion(run[at : at + 2])) >= COHESION
    )
    taken: list[int] = []
    free = [True] * len(run)
    for _, at in pairs:
        if free[at] and free[at + 1]:
            free[at] = free[at + 1] = False
            taken.append(at)
    return sorted(taken)


def _cohesion(pair: str) -> float:
    """Return log10 of the pair's frequency relative to chance; 0 for a pair outside the table."""
    return zipf(pair) - (zipf(pair[0]) + zipf(pair[1]) - _PER_BILLION) if is_known(pair) else 0.0
