"""Frames: patterns of statements about home, work, diet, prices, deadlines and so on, and the language of a text.

:mod:`zettel.text.language_files` loads them, and describes the files.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal, NamedTuple, TypeAlias

from zettel.text.expressions import Expression

Exclusive: TypeAlias = Literal["dated", "marked", "known", "never"]
"""When different values of an attribute exclude each other.

``dated``: if their times give the order; ``marked``: if the later one reports a change; ``known``: as ``marked``, and
for two well-known towns; ``never``: a person may have several.
"""
Sense: TypeAlias = Literal["changes", "ends", "states", "topics"]
"""A pattern reports a change to a value, its end, or the value; or it names a thing for a following clause."""

CACHED_WORDS = 20_000
"""Words whose patterns are cached."""

_DIGIT = re.compile(r"\d")
_LETTERS = re.compile(r"[^\W\d_]+")


class Pattern(NamedTuple):
    """A pattern, compiled when first needed. ``positive`` is None but for likings.

    A word of every matching clause begins with one of the ``cues``; without cues, this is not known.
    """

    expression: str
    sense: Sense
    positive: bool | None
    cues: tuple[str, ...]
    is_numeric: bool

    @property
    def regex(self) -> re.Pattern[str]:
        return _compiled(self.expression)


@dataclass(frozen=True)
class Frame:
    """An attribute of a person or thing, with its patterns: changes first, then ends and states."""

    attribute: str
    owner: Literal["person", "thing"]
    exclusive: Exclusive
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True)
class Language:
    """The words and frames of one language. The expressions ignore case. See the module for the fields."""

    common: frozenset[str]
    frequent: frozenset[str]
    me: str
    my: str
    first: frozenset[str]
    mine: frozenset[str]
    theirs: frozenset[str]
    pronouns: frozenset[str]
    it: frozenset[str]
    after_name: frozenset[str]
    plain_verbs: frozenset[str]
    articles: frozenset[str]
    determiners: frozenset[str]
    negators: frozenset[str]
    descriptions: frozenset[str]
    owned_by: frozenset[str]
    of: frozenset[str]
    qualifying: frozenset[str]
    possessive: str
    neutral: frozenset[str]
    """The tokens of ``neutral``."""
    titles: frozenset[str]
    capital_nouns: bool
    names_may_follow: re.Pattern[str]
    names_follow: re.Pattern[str]
    relations: frozenset[str]
    genitive: re.Pattern[str]
    owned: re.Pattern[str]
    """Finds "dentist Dr. Okafor" in "a letter to my dentist Dr. Okafor", as a group."""
    contractions: tuple[tuple[Expression, str], ...]
    negations: tuple[tuple[Expression, str], ...]
    opening: re.Pattern[str]
    adverb: Expression
    breaks: re.Pattern[str]
    """Finds the end of a clause, as a group."""
    contrast: re.Pattern[str]
    beside: re.Pattern[str]
    phrase_end: re.Pattern[str]
    future: Expression
    now: Expression
    adds: Expression
    temporary: Expression
    unasserted: Expression
    reported: Expression
    former: Expression
    corrects: Expression
    quotes: Expression
    letter: re.Pattern[str]
    effective: re.Pattern[str]
    ends: re.Pattern[str] | None
    clock: re.Pattern[str]
    date: re.Pattern[str]
    weekday: re.Pattern[str]
    month: re.Pattern[str]
    months: Mapping[str, int]
    english_months: Mapping[str, str]
    weekdays: Mapping[str, int]
    recurring: frozenset[str]
    numbers: Mapping[str, int]
    units: Mapping[str, str]
    currencies: Mapping[str, str]
    classes: tuple[tuple[str, str, re.Pattern[str]], ...]
    """(class, member, its forms)."""
    copula: str
    today: Expression
    frames: tuple[Frame, ...]
    asks: tuple[tuple[str, re.Pattern[str]], ...]
    """The attributes that whole questions ask for (:mod:`zettel.search.asked_fact`)."""
    about: tuple[tuple[re.Pattern[str], float], ...]
    """Cues of a sentence about its speaker, with their weights (:mod:`zettel.evolve.about`)."""
    about_numbers: tuple[float, ...]
    about_bias: float

    def candidates(self, clause: str) -> list[tuple[Frame, Pattern]]:
        """Return the patterns that may match a clause, in order."""
        words = _LETTERS.findall(clause.lower())
        indices = self._by_cue[""].union(*map(self._indices_of, words))
        is_numeric = bool(_DIGIT.search(clause)) or not self._counted.isdisjoint(words)
        patterns = (self._patterns[index] for index in sorted(indices))
        return [(frame, pattern) for frame, pattern in patterns if is_numeric or not pattern.is_numeric]

    @cached_property
    def starting(self) -> frozenset[str]:
        """Words that begin a clause with a subject."""
        return self.first | self.determiners | self.mine | self.pronouns | self.it

    @cached_property
    def ordinary(self) -> frozenset[str]:
        """Frequent words, number words, months and weekdays: no names in a text in lower case."""
        return self.common | self.frequent | self._counted

    @cached_property
    def _patterns(self) -> tuple[tuple[Frame, Pattern], ...]:
        return tuple((frame, pattern) for frame in self.frames for pattern in frame.patterns)

    def _indices_of(self, word: str) -> frozenset[int]:
        """Return the indices of the patterns that a clause with a word may match."""
        cached = self._cached_indices.get(word)
        if cached is None:
            by_cue = self._by_cue
            cues = (word[:end] for end in range(1, len(word) + 1))
            cached = frozenset[int]().union(*(by_cue[cue] for cue in cues if cue in by_cue))
            if len(self._cached_indices) < CACHED_WORDS:
                self._cached_indices[word] = cached
        return cached

    @cached_property
    def _cached_indices(self) -> dict[str, frozenset[int]]:
        return {}

    @cached_property
    def _by_cue(self) -> dict[str, frozenset[int]]:
        by_cue: defaultdict[str, set[int]] = defaultdict(set)
        for index, (_, pattern) in enumerate(self._patterns):
            for cue in pattern.cues or ("",):
                by_cue[cue].add(index)
        return {"": frozenset()} | {cue: frozenset(indices) for cue, indices in by_cue.items()}

    @cached_property
    def _counted(self) -> frozenset[str]:
        return frozenset((*self.numbers, *self.months, *self.weekdays))


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.IGNORECASE)
