"""The person or thing that a stated fact is about: "I", "my wife's boss", "the rent of Ann's garage"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from zettel.text.frames import Language
from zettel.text.tokens import tokenize

MAX_THING = 6
"""The most tokens of a thing."""

_APOSTROPHE = re.compile("'s?$")


class Owner(NamedTuple):
    """Whose fact it is: the tokens of a person's name, and the path from there: ("wife", "boss").

    Without tokens it is a thing that the conversation is about: "the rent". ``relation`` is what the name comes with:
    {"sister"} of "my sister Laura".
    """

    person: frozenset[str]
    path: tuple[str, ...] = ()
    relation: frozenset[str] = frozenset()


NOBODY = Owner(frozenset())


def owner_of(subject: str, speaker: str, language: Language) -> Owner | None:
    """Return the person that a subject names ("I", "my wife", "Ann's boss"), or None for a thing or a pronoun."""
    words = subject.split()
    low = [word.lower() for word in words]
    if len(words) == 1 and (low[0] in language.first or low[0] in language.mine):
        return Owner(name_tokens(speaker))
    if any(word in language.common - language.mine for word in low):
        return None
    if low[0] in language.mine:
        is_named = len(words) > 2 and words[-1][:1].isupper()
        if is_named and (not language.capital_nouns or low[-2] in language.relations):  # "my son Alfie"
            return Owner(name_tokens(words[-1]), relation=frozenset(_path(low[1:-1], language)))
        return Owner(name_tokens(speaker), _path(low[1:], language))
    name = list(takewhile(lambda word: word[:1].isupper() and word.lower() not in language.relations, words))
    if not name or low[0] in language.determiners:
        return None
    path = words[len(name) :]
    name[-1] = (language.genitive if path else _APOSTROPHE).sub("", name[-1])
    return Owner(name_tokens(" ".join(name)), _path(path, language))


def _path(words: Iterable[str], language: Language) -> tuple[str, ...]:
    """Return the tokens of "wife's boss", without words that do not tell owners apart."""
    bare = (language.genitive.sub("", word) for word in words if word.lower() not in language.descriptions)
    return tuple(token for word in bare for token in tokenize(word) if token not in language.neutral)


def name_tokens(name: str) -> frozenset[str]:
    """Return the parts of a name in lower case: {"ann", "berg"} of "Ann Berg"."""
    return frozenset(part.strip(".,").lower() for part in name.split() if part)


def thing_of(
    text: str | None, speaker: str, holder: Owner | None, language: Language
) -> tuple[Owner, frozenset[str]] | None:
    """Return whose thing a phrase names, and its tokens: "the rent of my garage", "Ann's door code".

    ``holder`` is whom "his" or "her" means: the subject of the clause, if it is not the speaker.
    """
    words = (text or "").split()
    person: frozenset[str] = frozenset()
    own_words: list[str] = []
    dates: list[str] = []
    if not words or words[0].lower() in language.of - language.articles:
        return None
    ignored = language.determiners | language.descriptions | language.of
    for place, word in enumerate(words):
        low = word.lower()
        bare = language.genitive.sub("", word)
        if low in language.mine:
            person = person or name_tokens(speaker)
        elif low in language.theirs:
            if holder is None or holder.path:
                return None
            person = holder.person
        elif not place and _is_possessor(words, language):  # Ann's
            person = name_tokens(bare)
        elif place and words[place - 1].lower() in language.owned_by and word[:1].isupper():
            person = name_tokens(word)
        elif low in language.first or low in language.common - language.of - language.determiners:
            return None  # a sentence, not a thing: "I think that it"
        elif low not in ignored:
            (dates if low in language.months or low in language.weekdays else own_words).append(bare)
    tokens = frozenset(token for word in own_words or dates for token in tokenize(word))
    tokens = tokens - language.neutral or tokens
    return (Owner(person), tokens) if tokens and len(tokens) <= MAX_THING else None


def _is_possessor(words: list[str], language: Language) -> bool:
    """Return whether a phrase begins with a name in the genitive: "Ann's rent", "Annas Miete"."""
    if not words[0][:1].isupper() or not language.genitive.search(words[0]):
        return False
    is_article = words[0].lower() in language.determiners
    return not is_article and (not language.capital_nouns or (len(words) > 1 and words[1][:1].isupper()))
