"""Finds keywords and names in a text, and ranks the keywords.

The terms depend only on the text and the background table, so an index with them does not depend on the order of
arrival. The ranking also uses the scope's statistics.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

from zettel.ports import TermStats
from zettel.text.background import rarity_of
from zettel.text.letter_case import names_in_capitals
from zettel.text.names import Name, find_names
from zettel.text.stopwords import CALENDAR, FILLER
from zettel.text.tokens import MAX_TOKEN, clean, spaced_words, token_of
from zettel.text.unspaced import unspaced_words

MIN_RARITY = 0.2
"""Lowest rarity of a keyword: more frequent words (Zipf 6, such as "people") do not describe a text."""
PHRASE_RARITY = 0.25
"""Lowest rarity of both words of a phrase."""
SCOPE_PRIOR = 50.0
"""With this many notes the scope's own statistics weigh as much as the background table."""
NAME_BONUS = 1.3
PHRASE_BONUS = 1.15
MIN_KEYWORDS, MAX_KEYWORDS = 3, 8
CHARS_PER_KEYWORD = 30
"""One keyword for so many characters, within the bounds above."""

_MANY = 20
_OFTEN = [1.0 + math.log(max(count, 1)) for count in range(_MANY + 1)]
"""Weight of a word by its count: 1 + ln(count), up to ``_MANY``."""
_CACHED_READINGS = 1024
"""Cached texts: fields and terms use the same result."""
_CACHED_WORDS = 32_768
_URL = re.compile(r"\w+://\S+")


class Keyword(NamedTuple):
    """A word or phrase: tokens joined by a space, spelling, count, first position, rarity 0..1."""

    key: str
    text: str
    uses: int
    start: int
    rarity: float


_Count: TypeAlias = list[Any]
"""Fields of a Keyword while counting."""
_Counted: TypeAlias = dict[str, _Count]
_keyword: partial[Keyword] = partial(tuple.__new__, Keyword)  # as Keyword(*fields), at a third of its cost


class TextTerms(NamedTuple):
    """The names of a text, its keywords, and phrases of two keywords; each in order of appearance."""

    names: tuple[Name, ...]
    words: tuple[Keyword, ...]
    phrases: tuple[Keyword, ...]


@lru_cache(maxsize=_CACHED_READINGS)
def find_terms(text: str) -> TextTerms:
    """Return the names, keywords and phrases of a text."""
    if "://" in text:
        text = _URL.sub(" ", text)
    names = find_names(names_in_capitals(text))
    named = {token_of(word) for name in names for word in name.key.split()}
    keywords: _Counted = {}
    pairs: _Counted = {}
    text = clean(text)
    if not text.isascii():
        for word, start, rarity in unspaced_words(text):
            if rarity >= MIN_RARITY and word not in CALENDAR:
                _count(keywords, word, word, start, rarity)
    before: _Count | None = None
    before_end = -1
    for word, start, end in spaced_words(text):
        keyword = _parsed(word[:MAX_TOKEN])
        if keyword is None or keyword[0] in named:
            before = None
            continue
        token, shown, rarity = keyword
        this = _count(keywords, token, shown, start, rarity)
        if rarity < PHRASE_RARITY:
            before = None
            continue
        if before is not None and start == before_end + 1:
            first, first_shown, _, at, other = before
            _count(pairs, f"{first} {token}", f"{first_shown} {shown}", at, (rarity + other) / 2)
        before, before_end = this, end
    return TextTerms(names, tuple(map(_keyword, keywords.values())), tuple(map(_keyword, pairs.values())))


def _count(counts: _Counted, key: str, shown: str, start: int, rarity: float) -> _Count:
    count = counts.get(key)
    if count is None:
        count = counts[key] = [key, shown, 1, start, rarity]
    else:
        count[2] += 1
    return count


@lru_cache(maxsize=_CACHED_WORDS)
def _parsed(word: str) -> tuple[str, str, float] | None:
    """Return a word's token, spelling and rarity; None for grammar, filler, dates, numbers and single letters."""
    token = token_of(word)
    shown = word.lower().removesuffix("'s")
    folded = word.casefold()
    if not token or len(shown) < 2 or folded in FILLER or folded in CALENDAR or folded[0].isdecimal():
        return None
    rarity = rarity_of(token)
    return (token, shown, rarity) if rarity >= MIN_RARITY else None


def blended(notes: int) -> Callable[[float, int], float]:
    """Return a function from a token's background rarity 0..1 and df to its rarity in a scope of ``notes``.

    It blends the background's rarity with the scope's, ln((n + 1) / (df + 0.5)) / ln((n + 1) / 0.5), at weight
    n / (n + SCOPE_PRIOR).
    """
    if notes <= 0:
        return lambda background, df: background
    log, greatest, whole = math.log, math.log((notes + 1) / 0.5), notes + SCOPE_PRIOR

    def rarity(background: float, df: int) -> float:
        own = log((notes + 1) / ((df if df < notes else notes) + 0.5)) / greatest
        return (notes * own + SCOPE_PRIOR * background) / whole

    return rarity


def best_keywords(text_terms: TextTerms, stats: TermStats, length: int) -> tuple[str, ...]:
    """Return the best 3 to 8 words, phrases and names of a text of ``length`` characters, best first."""
    df, rarity_in_scope = stats.df, blended(stats.notes)
    offered: list[tuple[float, int, str, str]] = []
    weights: dict[str, float] = {}
    for key, text, uses, start, rarity in text_terms.words:
        weight = weights[key] = rarity_in_scope(rarity, df.get(key, 0))
        offered.append((_OFTEN[uses if uses < _MANY else _MANY] * weight, -start, text, key))
    for key, text, uses, start, _ in text_terms.phrases:
        first, _, second = key.partition(" ")
        weight = PHRASE_BONUS * (weights[first] + weights[second]) / 2
        offered.append((_OFTEN[uses if uses < _MANY else _MANY] * weight, -start, text, key))
    for place, name in enumerate(text_terms.names):
        tokens = [token for word in name.key.split() if (token := token_of(word))]
        weight = max([rarity_in_scope(rarity_of(token), df.get(token, 0)) for token in tokens], default=1.0)
        offered.append((NAME_BONUS * _OFTEN[min(name.uses, _MANY)] * weight, -place, name.text, " ".join(tokens)))
    offered.sort(reverse=True)
    return _apart(offered, min(MAX_KEYWORDS, max(MIN_KEYWORDS, length // CHARS_PER_KEYWORD)))


def _apart(offered: list[tuple[float, int, str, str]], wanted: int) -> tuple[str, ...]:
    """Return the first ``wanted`` texts that share no token."""
    taken: list[str] = []
    used: set[str] = set()
    for _, _, text, key in offered:
        parts = key.split()
        if used.isdisjoint(parts):
            used.update(parts)
            taken.append(text)
            if len(taken) == wanted:
                break
    return tuple(taken)
