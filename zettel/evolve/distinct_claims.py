"""Detects claims that can both be true, because they concern two things of one kind, or two times.

"A small coffee" differs from "a large coffee", "for children" differs from "for adults", and a person may work in one
place on Saturdays and in another on weekdays. A qualifier precedes its word, or follows it after a preposition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise, takewhile

from zettel.evolve.claims import GENERIC, Claim
from zettel.text.stopwords import FILLER
from zettel.text.tokens import Word, tokenize, words

MAX_QUALIFIER_WORDS = 3
"""The most words of an object after its preposition."""
_PREPOSITIONS = frozenset("for of to from on in at with without behind under".split())
_BEFORE, _FOR = "", "for"
"""The position of a qualifier: its preposition, or "" if it precedes the word."""
_FILLER = frozenset(token for word in FILLER for token in tokenize(word))
"""Words that are not qualifiers: a "good" teacher, unlike a "piano" teacher."""
_TIMES = re.compile(
    r"\b(?:weekdays|weekends|(?:mon|tues|wednes|thurs|fri|satur|sun)days|(?:morning|afternoon|evening|night)s"
    r"|(?:spring|summer|autumn|winter)s"
    r"|in (?:the )?(?:morning|afternoon|evening|spring|summer|autumn|winter)|at night)\b"
)
_ADDS = re.compile(r"\b(?:also|both|besides|in addition|as well(?! as\b))\b|\btoo(?=\s*(?:[.,;!?]|$))")
"""Words that add a claim to an earlier one."""
_CHARGES = frozenset(
    tokenize("rent deposit fee fine tax salary wage tip bill insurance mortgage loan refund fare shipping toll")
)
"""Charges for the same thing that may exist together."""


def adds_to_earlier(new: Claim) -> bool:
    """Return whether a claim adds to an earlier one."""
    return _ADDS.search(new.statement.low) is not None


def recur_at_different_times(old: Claim, new: Claim) -> bool:
    """Return whether both claims recur at different times."""
    before, after = _times(old), _times(new)
    return bool(before and after) and before.isdisjoint(after)


def concern_two_things(old: Claim, new: Claim, shared: frozenset[str]) -> bool:
    """Return whether both claims have qualifiers that differ, so that they concern two things."""
    before, after = _qualifiers(old, new, shared), _qualifiers(new, old, shared)
    if any(before[position].isdisjoint(after[position]) for position in before.keys() & after.keys()):
        return True
    old_charges, new_charges = old.topic & _CHARGES, new.topic & _CHARGES
    return bool(old_charges and new_charges) and old_charges.isdisjoint(new_charges)


def is_only_one_qualified(old: Claim, new: Claim) -> bool:
    """Return whether only one claim has a qualifier, so that they may concern two things."""
    shared = old.topic & new.topic
    first, second = _qualifiers(old, new, shared), _qualifiers(new, old, shared)
    return (
        not _times(new) <= _times(old)
        or (_FOR in first) != (_FOR in second)
        or bool(_definite_qualifiers(old, first)) != bool(_definite_qualifiers(new, second))
    )


def _definite_qualifiers(claim: Claim, by_position: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the qualifiers that distinguish "my piano teacher" from "my teacher", but not "such a fine teacher"."""
    return by_position.get(_BEFORE, frozenset()) & claim.statement.definite - _FILLER


def _qualifiers(claim: Claim, other: Claim, shared: frozenset[str]) -> dict[str, frozenset[str]]:
    """Return the qualifiers of shared words and values by position, without people that both claims concern."""
    statement = claim.statement
    common_people = frozenset(token for word in claim.people & other.people for token in tokenize(word))
    values = (*statement.amounts, *statement.days, *statement.numbers)
    value_tokens = frozenset(token for value in values for token in tokenize(value))
    qualifiers: dict[str, frozenset[str]] = {}
    for part in _phrases(statement.text):
        for position, word in enumerate(part):
            before, after = part[position - 1] if position else None, part[position + 1 :]
            if word.token in shared and before and _is_qualifier(before):
                qualifiers[_BEFORE] = qualifiers.get(_BEFORE, frozenset()) | {before.token} - shared - common_people
            if after and word.token and word.token in shared | value_tokens:
                preposition = after[0].text.lower()
                if preposition == "back":  # "my seat to Oslo", "my seat back"
                    qualifiers["to"] = frozenset({preposition})
                elif preposition in _PREPOSITIONS:
                    tokens = _object(after[1:], common_people) - shared
                    qualifiers[preposition] = qualifiers.get(preposition, frozenset()) | tokens
    return {position: tokens for position, tokens in qualifiers.items() if tokens}


def _times(claim: Claim) -> frozenset[str]:
    return frozenset(_TIMES.findall(claim.statement.low))


def _is_qualifier(word: Word) -> bool:
    return _is_specific(word) and word.token.isalpha() and not word.text.endswith("'s")


def _object(after: list[Word], common_people: frozenset[str]) -> frozenset[str]:
    """Return the object of a preposition, unless it is a value or a person that both claims concern."""
    while after and not after[0].token:
        after = after[1:]
    tokens = [word.token for word in takewhile(_is_specific, after[:MAX_QUALIFIER_WORDS])]
    is_qualifier = bool(tokens) and not tokens[0][0].isdecimal() and tokens[0] not in common_people
    return frozenset(tokens) if is_qualifier else frozenset()


def _is_specific(word: Word) -> bool:
    return bool(word.token) and word.token not in GENERIC


def _phrases(text: str) -> list[list[Word]]:
    """Split the words of a sentence at punctuation."""
    all_words = words(text)
    phrases = [all_words[:1]]
    for word, following in pairwise(all_words):
        if text[word.end : following.start].strip(" -\u20ac$\u00a3"):
            phrases.append([])
        phrases[-1].append(following)
    return phrases
