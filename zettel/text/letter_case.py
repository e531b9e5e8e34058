"""Restores the capitals of names that people type in lower case: "im moving to porto" becomes "im moving to Porto".

Capitals are restored only in a text without any inside a sentence. They leave the places of words as they are; an
apostrophe in a genitive does not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from zettel.text.background import is_known, is_namelike, zipf
from zettel.text.frames import Language
from zettel.text.language_files import language_of
from zettel.text.name_lists import given_names, place_words, regions, towns
from zettel.text.tokens import token_of

RARE_ZIPF = 4.8
"""A more frequent word, such as "rose", is too often another word."""
FOLLOWING_ZIPF = 5.15
"""A more frequent word, such as "least" and "home", does not name a thing even after "works at"."""
MIN_CHARS = 3
"""The least letters of a name that no list contains."""

_CAPITAL = re.compile(r"(?<=[^\W\d_A-Z] )(?!I\b)[A-Z\u00c0-\u00de]|(?<=, )(?!I\b)[A-Z\u00c0-\u00de]")
"""A capital inside a sentence."""
_OPENING = re.compile(r"(?:^|[.!?]\s|\n)\W*(?=[^\W\d_])")
_WORD = re.compile(r"(?<![\w@./:-])[^\W\d_]+(?:[-'][^\W\d_]+)*(?![\w@/]|\.\w)")
"""A word outside of addresses and file names."""
_GENITIVE = re.compile(r"(?<![\w@./:'-])([^\W\d_]{3,}[^\W\d_s])s(?![\w@/']|\.\w)")


def names_in_capitals(text: str) -> str:
    """Return a text in lower case with capitals for its likely names; any other text as it is."""
    language = language_of(text) if is_in_lower_case(text) else None
    return text if language is None else with_capitals(with_apostrophes(text), language, are_new_names=False)


def is_in_lower_case(text: str) -> bool:
    """Return whether the writer of a text set no capitals."""
    return text[:1].islower() and not _CAPITAL.search(text)


def with_apostrophes(text: str) -> str:
    """Return a text in lower case with an apostrophe in the genitive of listed names: "priya's wedding"."""
    if not is_in_lower_case(text):
        return text
    return _GENITIVE.sub(lambda word: f"{word[1]}'s" if _has_genitive(word[1]) else word[0], text)


def with_capitals(text: str, language: Language, *, are_new_names: bool = True) -> str:
    """Return a text with capitals for the names in it, if its writer set none.

    ``are_new_names``: whether words that no list of words contains are names. They may be typing errors too.
    """
    if _CAPITAL.search(text):
        return text
    words = [word for word in _WORD.finditer(text) if word.group().lower() not in language.common]
    after_hint = {match.end() for match in language.names_may_follow.finditer(text)}
    starts = _listed(words, after_hint)
    if text[:1].islower() and not language.capital_nouns:
        starts |= {opening.end() for opening in _OPENING.finditer(text)}
        starts |= _guessed(text, language, after_hint, are_new_names)
    letters = list(text)
    for start in starts:
        if len(capital := letters[start].upper()) == 1:
            letters[start] = capital
    return "".join(letters)


def _listed(words: Sequence[re.Match[str]], after_hint: Collection[int]) -> set[int]:
    """Return where the given names, towns and regions of the lists begin; "reading" only after a hint."""
    starts = {
        word.start()
        for word in words
        if (_is_place(word.group()) and (word.group().lower() not in place_words() or word.start() in after_hint))
        or _is_given(word.group())
    }
    for word, after in pairwise(words):
        if after.start() == word.end() + 1 and _is_place(f"{word.group()} {after.group()}"):
            starts |= {word.start(), after.start()}
    return starts


def _guessed(text: str, language: Language, after_hint: Collection[int], are_new_names: bool) -> set[int]:
    """Return where words begin that are names by the words before them, or because no list of words contains them."""
    after_cue = {match.end() for match in language.names_follow.finditer(text)}
    starts: set[int] = set()
    second = -1  # where the second word of a name after a cue would begin
    before = ""
    for word in _WORD.finditer(text):
        start, token = word.start(), token_of(word.group())
        follows, before = before, word.group()
        if word.group() == language.me and len(language.me) == 1:  # English "I"
            starts.add(start)
        if word.group() in language.ordinary or len(word.group()) < MIN_CHARS or not token:
            continue
        is_cued = start in after_cue and zipf(token) < FOLLOWING_ZIPF
        is_hinted = start in after_hint and is_namelike(token) and zipf(token) < RARE_ZIPF
        is_new = are_new_names and not is_known(token) and follows and follows not in language.determiners
        if is_cued:
            second = word.end() + 1
        if is_cued or is_hinted or is_new or start == second:
            starts.add(start)
    return starts


def _is_place(words: str) -> bool:
    return words.lower() in towns() or words.lower() in regions()


def _has_genitive(word: str) -> bool:
    return _is_given(word) or (_is_place(word) and word.lower() not in place_words())


def _is_given(word: str) -> bool:
    return word.lower() in given_names() and zipf(token_of(word)) < RARE_ZIPF
