"""Words in scripts that write no spaces, found by how strongly their characters hold together.

A run of Katakana is a word. In a run of Han, the pairs of characters that meet far more often than by chance (after the
pointwise mutual information of Church and Hanks 1990, from the background table) are taken as words, the strongest
first. A run of Hangul is written with spaces, so it is a word, less the particle at its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from zettel.annotate.background import is_known, rarity_of, zipf

COHESION = 1.0
"""A pair that meets ten times as often as chance is a word."""
_PER_BILLION = 9.0

_RUNS = re.compile(
    "([\u30a1-\u30fa\u30fc]{2,})|([\u3005\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]{2,})|([\uac00-\ud7a3]{2,})"
)
_PARTICLE = re.compile("(?<=..)(?:에서|에게|한테|으로|까지|부터|처럼|은|는|이|가|을|를|에|의|도|와|과|로|만)$")


def unspaced_words(text: str) -> Iterator[tuple[str, int, float]]:
    """Words of ``text`` (as ``clean`` leaves it) in Katakana, Han or Hangul: (word, where, rarity 0..1)."""
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
    """Where the words of two characters begin in a run, none overlapping."""
    held = sorted(
        (-cohesion, at) for at in range(len(run) - 1) if (cohesion := _cohesion(run[at : at + 2])) >= COHESION
    )
    taken: list[int] = []
    free = [True] * len(run)
    for _, at in held:
        if free[at] and free[at + 1]:
            free[at] = free[at + 1] = False
            taken.append(at)
    return sorted(taken)


def _cohesion(pair: str) -> float:
    """Decimal logarithm of how much more often the two meet than by chance; 0 for a pair that is not in the table."""
    return zipf(pair) - (zipf(pair[0]) + zipf(pair[1]) - _PER_BILLION) if is_known(pair) else 0.0
