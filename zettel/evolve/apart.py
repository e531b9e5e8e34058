"""Whether two claims that tell of the same thing may both hold: they tell of two of its kind, or at two times.

"A small coffee" is no "large coffee", what is "for children" is not "for adults", and who works somewhere on Saturdays
may work elsewhere on weekdays. What narrows a thing stands at its word: right before it, or behind a preposition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from zettel.annotate.stopwords import FILLER
from zettel.annotate.tokens import Word, tokenize, words
from zettel.evolve.claims import GENERIC, Claim

MAX_NARROWING = 3
"""Words behind a preposition that are read."""
_PREPOSITIONS = frozenset("for of to from on in at with without behind under".split())
_BEFORE, _FOR = "", "for"
"""Where something narrows goes by the preposition that it stands behind, and by nothing where it stands before."""
_FILLER = frozenset(token for word in FILLER for token in tokenize(word))
"""Words before a thing that part it from no other: a "good" teacher, unlike a "piano" teacher."""
_TIMES = re.compile(
    r"\b(?:weekdays|weekends|(?:mon|tues|wednes|thurs|fri|satur|sun)days|(?:morning|afternoon|evening|night)s"
    r"|(?:spring|summer|autumn|winter)s"
    r"|in (?:the )?(?:morning|afternoon|evening|spring|summer|autumn|winter)|at night)\b"
)
_ADDS = re.compile(r"\b(?:also|both|besides|in addition|as well(?! as\b))\b|\btoo(?=\s*(?:[.,;!?]|$))")
"""What says that something holds beside what was said before."""
_CHARGES = frozenset(
    tokenize("rent deposit fee fine tax salary wage tip bill insurance mortgage loan refund fare shipping toll")
)
"""What one may have to pay for one and the same thing."""


def adds(new: Claim) -> bool:
    """Whether it says that it comes to what was so before."""
    return _ADDS.search(new.said.low) is not None


def other_times(old: Claim, new: Claim) -> bool:
    """Whether each says when it is so again and again, and at other times."""
    before, after = _times(old), _times(new)
    return bool(before and after) and before.isdisjoint(after)


def two_things(old: Claim, new: Claim, shared: frozenset[str]) -> bool:
    """Whether each is narrowed, and otherwise: they tell of two things that share a name."""
    one, other = _narrowing(old, new, shared), _narrowing(new, old, shared)
    if any(one[place].isdisjoint(other[place]) for place in one.keys() & other.keys()):
        return True
    first, second = old.topic & _CHARGES, new.topic & _CHARGES
    return bool(first and second) and first.isdisjoint(second)


def one_narrowed(old: Claim, new: Claim) -> bool:
    """Whether one is narrowed where the other is not, so that they may tell of two things."""
    shared = old.topic & new.topic
    one, other = _narrowing(old, new, shared), _narrowing(new, old, shared)
    return (
        not _times(new) <= _times(old)
        or (_FOR in one) != (_FOR in other)
        or bool(_kind(old, one)) != bool(_kind(new, other))
    )


def _kind(claim: Claim, narrowing: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """What parts "my piano teacher" from "my teacher", but not "such a fine teacher"."""
    return narrowing.get(_BEFORE, frozenset()) & claim.said.definite - _FILLER


def _narrowing(claim: Claim, beside: Claim, shared: frozenset[str]) -> dict[str, frozenset[str]]:
    """What stands at the shared words and at values, by where it stands; not whom both are about."""
    said = claim.said
    both = frozenset(token for word in claim.whom & beside.whom for token in tokenize(word))
    values = frozenset(token for value in (*said.amounts, *said.days, *said.numbers) for token in tokenize(value))
    found: dict[str, frozenset[str]] = {}
    for part in _unbroken(said.text):
        for place, word in enumerate(part):
            before, after = part[place - 1] if place else None, part[place + 1 :]
            if word.token in shared and before and _narrows(before):
                found[_BEFORE] = found.get(_BEFORE, frozenset()) | {before.token} - shared - both
            if after and word.token and word.token in shared | values:
                preposition = after[0].text.lower()
                if preposition == "back":  # "my seat to Oslo", "my seat back"
                    found["to"] = frozenset({preposition})
                elif preposition in _PREPOSITIONS:
                    found[preposition] = found.get(preposition, frozenset()) | _object(after[1:], both) - shared
    return {place: tokens for place, tokens in found.items() if tokens}


def _times(claim: Claim) -> frozenset[str]:
    return frozenset(_TIMES.findall(claim.said.low))


def _narrows(word: Word) -> bool:
    return bool(word.token) and word.token not in GENERIC and word.token.isalpha() and not word.text.endswith("'s")


def _object(after: list[Word], both: frozenset[str]) -> frozenset[str]:
    """What a preposition stands before; nothing where that is a value, or whom both are about."""
    while after and not after[0].token:
        after = after[1:]
    found: list[str] = []
    for word in after[:MAX_NARROWING]:
        if not word.token or word.token in GENERIC:
            break
        found.append(word.token)
    return frozenset(found) if found and not found[0][0].isdecimal() and found[0] not in both else frozenset()


def _unbroken(text: str) -> list[list[Word]]:
    """The words of a sentence in runs that no sign breaks."""
    found = words(text)
    runs = [found[:1]]
    for one, other in pairwise(found):
        if text[one.end : other.start].strip(" -\u20ac$\u00a3"):
            runs.append([])
        runs[-1].append(other)
    return runs
