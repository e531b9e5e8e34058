"""Matches names that are spelled differently, such as "Jon" and "Jonathan", "Katherine" and "Catherine"."""

from __future__ import annotations

import re
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from zettel.text.tokens import phrase_key, tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zettel.ports.query import Ints, Question

MOST_NAMES = 32
"""Capitalised words of a question to examine. A text with more is a pasted document."""
SHORTEST_PREFIX = 3
"""Letters of the shortest name that can be a prefix of another."""
SHORTEST_SPELLING = 5
"""Letters of the shortest name that can be misspelled: Jon, Joan and John are three people."""
MAX_LENGTH_DIFFERENCE = 2
"""Largest difference in length between two spellings."""
PREFIX = 0.9
"""Likeness of a name and a prefix of it."""
ALIKE = 0.9
"""Likeness from which two spellings are one name, as among Census names (Winkler 1990)."""
WINKLER = 0.1
"""Bonus for each of up to four equal first letters, as a share of 1 - jaro."""

_CAPITALISED = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def likeness(first: str, second: str) -> float:
    """Return the likeness of two spellings, 0..1: Jaro-Winkler, and at least PREFIX if one is a prefix of the other."""
    shorter, longer = sorted((first, second), key=len)
    if shorter == longer:
        return 1.0
    prefix = PREFIX if len(shorter) >= SHORTEST_PREFIX and longer.startswith(shorter) else 0.0
    return max(prefix, jaro_winkler(shorter, longer) if len(shorter) >= SHORTEST_SPELLING else 0.0)


def may_be_alike(first: str, second: str) -> bool:
    """True if the likeness may reach ALIKE: a fast upper bound from the letters in any order."""
    shorter, longer = sorted((first, second), key=len)
    if len(shorter) < SHORTEST_SPELLING:
        return longer.startswith(shorter)
    m = sum(min(shorter.count(letter), longer.count(letter)) for letter in set(shorter))
    jaro = (m / len(shorter) + m / len(longer) + 1) / 3
    return jaro + WINKLER * 4 * (1 - jaro) >= ALIKE or longer.startswith(shorter)


def jaro_winkler(first: str, second: str) -> float:
    """Jaro's measure with Winkler's prefix (Winkler 1990, "String Comparator Metrics and Enhanced Decision Rules in the
    Fellegi-Sunter Model of Record Linkage").

    With m common letters at most half the longer word apart, t pairs of them out of order, and p equal first letters:

        jaro = (m / |first| + m / |second| + (m - t) / m) / 3;    jaro + WINKLER · p · (1 - jaro)
    """
    reach = max(len(first), len(second)) // 2 - 1
    free = list(range(len(second)))
    places: list[int] = []
    letters = []
    for at, letter in enumerate(first):
        place = next((place for place in free if abs(place - at) <= reach and second[place] == letter), None)
        if place is not None:
            free.remove(place)
            places.append(place)
            letters.append(letter)
    if not places:
        return 0.0
    m = len(places)
    swapped = sum(letter != second[place] for letter, place in zip(letters, sorted(places), strict=True)) / 2
    jaro = (m / len(first) + m / len(second) + (m - swapped) / m) / 3
    prefix = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first[:4], second, strict=False)))
    return jaro + WINKLER * prefix * (1 - jaro)


def speakers_named(question: Question, speaker_names: Sequence[str]) -> list[float]:
    """Return the confidence that the question names each speaker, 0..1.

    1 for speakers with their full name in the question. If there are none, 1 for speakers with a part of it ("Ann" of
    "Ann Lee"). Else the likeness to the capitalised words of the question, for the most alike speakers.
    """
    keys = [phrase_key(name) for name in speaker_names]
    names = set(question.names)
    exact = [float(key in names) for key in keys]
    if any(exact):
        return exact
    words = [[word for word in key.split() if tokenize(word)] for key in keys]
    partial = [float(any(word in names for word in own)) for own in words]
    if any(partial):
        return partial
    spellings = capitalised_words(question.text)
    likenesses = [
        max((likeness(x, word) for x in spellings for word in own if may_be_alike(x, word)), default=0.0)
        for own in words
    ]
    best = max(likenesses, default=0.0)
    return [value if value >= ALIKE and value == best else 0.0 for value in likenesses]


def similar_terms(unknown: Sequence[str], term_keys: Sequence[str]) -> list[int]:
    """Return the places of the terms with a spelling similar to the ``unknown`` names of a question.

    Compares only terms with the same first letter, or with equal letters after it, as in Karl and Carl.
    """
    return [
        place
        for name in unknown
        for place, key in enumerate(term_keys)
        if (key[:1] == name[:1] or key[1:] == name[1:])
        and (abs(len(key) - len(name)) <= MAX_LENGTH_DIFFERENCE or key.startswith(name))
        and likeness(name, key) >= ALIKE
    ]


def unknown_names(question: Question, df: Ints) -> list[str]:
    """Return the question's capitalised words that no note contains; ``df`` is that of its tokens."""
    known = {token for token, count in zip(question.tokens, df.tolist(), strict=True) if count}
    return [word for word in capitalised_words(question.text) if known.isdisjoint(tokenize(word))]


def capitalised_words(text: str) -> list[str]:
    """Return keys of the first MOST_NAMES capitalised words, without function words and repetitions."""
    words = (word for word in _CAPITALISED.findall(text) if word[0].isupper() and tokenize(word))
    return list(dict.fromkeys(phrase_key(word) for word in islice(words, MOST_NAMES)))
