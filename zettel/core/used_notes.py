"""Finds the notes that an answer used, without a model: those it cites, else those whose words it repeats.

A word of the answer is evidence for the notes that contain it, unless the question contains it too. A rare word counts
more, and a word that many of the offered notes share counts less. Each word is credited once, to the note that explains
the most of the answer, so that a second note needs words of its own.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping

from zettel.text.background import rarity_of
from zettel.text.tokens import tokenize

MIN_WEIGHT = 0.35
"""Least weight of the words that a note explains."""
MIN_SINGLE = 0.5
"""Least weight of a single word, unless the answer has no other: "boathouse" suffices, but not "afraid" of "I am afraid
that I do not know"."""
MIN_SHARE = 0.1
"""Least share of the answer's explained words, by weight, for which a note counts as used. The bounds were chosen on
labelled answers to questions about our own conversations: 86 % of the recognised notes are evidence, and 59 % of the
evidence is recognised, in answers of a few words."""
MAX_ANSWER = 20_000
"""Characters of an answer that are read."""

_CITED = re.compile(r"\bn_[0-9a-f]+\b")


def used_notes(answer: str, question: str, notes: Mapping[str, str]) -> list[str]:
    """Return the ids of the notes that an answer used, in order of their share of it; [] if none is recognised.

    ``notes`` are the texts of the offered notes by id, in the order in which they were offered.

    Example: ``used_notes("She keeps it in the boathouse.", "Where is the drill?", {"n_1": "The drill is in the
    boathouse.", "n_2": "The drill was a gift."})`` returns ``["n_1"]``.
    """
    answer = answer[:MAX_ANSWER]
    if cited := [id for id in dict.fromkeys(_CITED.findall(answer)) if id in notes]:
        return cited
    asked = set(tokenize(question))
    answered = set(tokenize(answer)) - asked
    matches = {id: answered.intersection(tokenize(text)) for id, text in notes.items()}
    counts = Counter(word for words in matches.values() for word in words)
    weights = {word: rarity_of(word) * _idf(count, len(notes)) for word, count in counts.items()}
    total = sum(weights.values())
    single = MIN_SINGLE if len(answered) > 1 else 0.0
    return _credited(matches, weights, max(MIN_WEIGHT, MIN_SHARE * total), single)


def _credited(
    matches: Mapping[str, set[str]], weights: Mapping[str, float], least: float, single: float
) -> list[str]:
    """Return the notes that explain at least ``least``, each by words that no earlier one explains.

    A note that explains one word must explain at least ``single``.
    """
    left = {id: set(words) for id, words in matches.items()}
    used: list[str] = []
    while left:
        best = max(left, key=lambda id: sum(weights[word] for word in sorted(left[id])))  # of equals the first
        explained = left.pop(best)
        weight = sum(weights[word] for word in sorted(explained))
        if weight < least:
            break
        if len(explained) == 1 and weight < single:
            continue
        used.append(best)
        for words in left.values():
            words -= explained
    return used


def _idf(count: int, notes: int) -> float:
    """Weight of a word in ``count`` of the offered notes: 1 if it is in one of them, 0 if it is in all."""
    return math.log((notes + 1) / count) / math.log(notes + 1)


