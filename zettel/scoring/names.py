"""Which names mean the same person or thing though they are written differently: "Jon" and "Jonathan", "Katherine" and
"Catherine"."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from zettel.annotate.tokens import phrase_key, tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zettel.query import Ints, Question

MOST_NAMES = 32
"""Capitalised words of a question that may be names: beyond it a document was pasted."""
SHORTEST_PREFIX = 3
"""Letters that a name must have to be taken for the beginning of another."""
SHORTEST_SPELLING = 5
"""Letters that it must have to be taken for another spelling: Jon, Joan and John are three people."""
LONGER = 2
"""Letters by which two spellings may differ in length."""
PREFIX = 0.9
"""Likeness of a name and its beginning, as high as that of a misspelling which counts."""
ALIKE = 0.9
"""Likeness from which two spellings count as one name: Winkler's matches among Census names begin about here."""
WINKLER = 0.1
"""What each of up to four equal letters at the beginning gives, of what Jaro's measure lacks."""

_CAPITALISED = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def likeness(one: str, other: str) -> float:
    """How alike two spellings of a name are, 0..1: Jaro-Winkler, and PREFIX where one is the beginning of the other."""
    shorter, longer = sorted((one, other), key=len)
    if shorter == longer:
        return 1.0
    beginning = PREFIX if len(shorter) >= SHORTEST_PREFIX and longer.startswith(shorter) else 0.0
    return max(beginning, jaro_winkler(shorter, longer) if len(shorter) >= SHORTEST_SPELLING else 0.0)


def may_be_alike(one: str, other: str) -> bool:
    """Whether their likeness may reach ALIKE, by the letters of both in whatever order: a small part of its work."""
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) < SHORTEST_SPELLING:
        return longer.startswith(shorter)
    m = sum(min(shorter.count(letter), longer.count(letter)) for letter in set(shorter))
    jaro = (m / len(shorter) + m / len(longer) + 1) / 3
    return jaro + WINKLER * 4 * (1 - jaro) >= ALIKE or longer.startswith(shorter)


def jaro_winkler(one: str, other: str) -> float:
    """Jaro's measure with Winkler's prefix (Winkler 1990, "String Comparator Metrics and Enhanced Decision Rules in the
    Fellegi-Sunter Model of Record Linkage").

    With m letters in common no further apart than half the longer word, and t pairs of them out of order,

        jaro = (m / |one| + m / |other| + (m - t) / m) / 3;   + WINKLER · equal letters at the beginning · (1 - jaro)
    """
    reach = max(len(one), len(other)) // 2 - 1
    free = list(range(len(other)))
    places: list[int] = []
    letters = []
    for at, letter in enumerate(one):
        place = next((place for place in free if abs(place - at) <= reach and other[place] == letter), None)
        if place is not None:
            free.remove(place)
            places.append(place)
            letters.append(letter)
    if not places:
        return 0.0
    m = len(places)
    swapped = sum(letter != other[place] for letter, place in zip(letters, sorted(places), strict=True)) / 2
    jaro = (m / len(one) + m / len(other) + (m - swapped) / m) / 3
    same = next((n for n, (a, b) in enumerate(zip(one[:4], other[:4], strict=False)) if a != b), min(4, len(one)))
    return jaro + WINKLER * same * (1 - jaro)


def speakers_named(question: Question, role_names: Sequence[str]) -> list[float]:
    """How surely the question names each speaker, 0..1.

    1 for who is named in full; else, if nobody is, for who has a name that the question has ("Ann" of "Ann Lee"); else
    the likeness of those whose name is nearly what it has in capitals.
    """
    keys = [phrase_key(name) for name in role_names]
    names = set(question.names)
    whole = [float(key in names) for key in keys]
    if any(whole):
        return whole
    words = [[word for word in key.split() if tokenize(word)] for key in keys]
    part = [float(any(word in names for word in own)) for own in words]
    if any(part):
        return part
    asked = capitalised(question.text)
    likes = [
        max((likeness(a, word) for a in asked for word in own if may_be_alike(a, word)), default=0.0) for own in words
    ]
    best = max(likes, default=0.0)
    return [like if like >= ALIKE and like == best else 0.0 for like in likes]


def terms_meant(unknown: Sequence[str], term_keys: Sequence[str]) -> list[int]:
    """Which Terms a question may mean by the ``unknown`` words, names that the scope has never heard.

    Only those with the same first letter are compared, or with the same letters after it, as in Karl and Carl.
    """
    return [
        place
        for name in unknown
        for place, key in enumerate(term_keys)
        if (key[:1] == name[:1] or key[1:] == name[1:])
        and (abs(len(key) - len(name)) <= LONGER or key.startswith(name))
        and likeness(name, key) >= ALIKE
    ]


def unheard(question: Question, df: Ints) -> list[str]:
    """The question's capitalised words that no note of the scope holds; ``df`` is that of its tokens."""
    known = {token for token, count in zip(question.tokens, df.tolist(), strict=True) if count}
    return [word for word in capitalised(question.text) if known.isdisjoint(tokenize(word))]


def capitalised(text: str) -> list[str]:
    """Its first MOST_NAMES words with a capital letter that are no function words, each once, in their normal form."""
    found = (word for word in _CAPITALISED.findall(text) if word[0].isupper() and tokenize(word))
    return list(dict.fromkeys(phrase_key(word) for word in islice(found, MOST_NAMES)))
