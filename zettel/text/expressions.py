r"""Regular expressions that are tried only on texts with their letters, which is several times as fast.

An expression such as ``\b(?:would|could|might)\b`` is tried at every character of a text. Most texts contain none of
its words, and to look for each word is quicker than to try the expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

_ITEM = re.compile(
    r"(?P<letter>[\w ',:=-](?![?*{+]))|(?P<open>\()|\\(?:x..|u.{4}|U.{8}|N\{[^}]*\}|[0-7]{1,3}|.)"
    r"|\[\^?\]?(?:\\.|[^]\\])*\]|\{[^}]*\}|.",
    re.DOTALL,
)
"""A character that only matches itself, the start of a group, or anything else in an expression."""
_GROUP = re.compile(r"\((?!\?)|\(\?(?:P<\w+>|-?i:|:)")
"""The beginning of a group whose match is part of the text; others, such as look-arounds, are left out."""
_OPTIONAL = re.compile(r"[?*]|\{0*[,}]")
_UNREAD = re.compile(r"\(\?(?:[a-zA-Z]+\)|#)")
"""Flags of a whole expression, and comments."""
_OTHER_CASE = re.compile("[\u0131\u0130\u017f]")
"""Letters that match "i" and "s", though their lower case is another."""


class Expression:
    r"""A regular expression that ignores case.

    >>> Expression(r"\b(?:would|could)\b").search("She could go")[0]
    'could'
    """

    __slots__ = ("_literals", "_regex")

    def __init__(self, expression: str) -> None:
        self._regex = re.compile(expression, re.IGNORECASE)
        self._literals = literals(expression)

    @property
    def pattern(self) -> str:
        return self._regex.pattern

    def search(self, text: str) -> re.Match[str] | None:
        return self._regex.search(text) if self._may_match(text) else None

    def sub(self, new: str | Callable[[re.Match[str]], str], text: str) -> str:
        return self._regex.sub(new, text) if self._may_match(text) else text

    def _may_match(self, text: str) -> bool:
        if not self._literals or (not text.isascii() and _OTHER_CASE.search(text)):
            return True
        low = text.lower()
        for literal in self._literals:  # noqa: SIM110 - any() takes four times as long
            if literal in low:
                return True
        return False


def literals(expression: str) -> tuple[str, ...]:
    r"""Return texts in lower case, one of which every match of an expression contains; () if there are none.

    >>> literals(r"\b(they|we)'re\b|cannot")
    ("'re", 'cannot')
    """
    if _UNREAD.search(expression):
        return ()
    found: list[str] = []
    for alternative in alternatives_of(expression):
        best = max(_required(alternative), key=_selectivity)
        if not best:
            return ()
        found += best
    return tuple(dict.fromkeys(found))


def _selectivity(texts: tuple[str, ...]) -> tuple[int, int]:
    return min(map(len, texts), default=0), -len(texts)


def alternatives_of(expression: str) -> list[str]:
    """Return the alternatives of an expression outside of its groups."""
    starts, depth = [0], 0
    for item in _ITEM.finditer(expression):
        depth += (item.group() == "(") - (item.group() == ")")
        if item.group() == "|" and not depth:
            starts.append(item.end())
    return [expression[start : end - 1] for start, end in pairwise([*starts, len(expression) + 1])]


def _required(expression: str) -> Iterator[tuple[str, ...]]:
    """Yield the literals of each required group and run of letters of an expression without alternatives."""
    run, place = "", 0
    while item := _ITEM.match(expression, place):
        place = item.end()
        if item["letter"]:
            run += item.group().lower()
            continue
        yield (run,) if run else ()
        run = ""
        if item["open"]:
            opening, place = _GROUP.match(expression, item.start()), _group_end(expression, item.start())
            if opening and not _OPTIONAL.match(expression, place):
                yield literals(expression[opening.end() : place - 1])
    yield (run,) if run else ()


def _group_end(expression: str, start: int) -> int:
    """Return where the group that begins at ``start`` ends."""
    depth = 0
    for item in _ITEM.finditer(expression, start):
        depth += (item.group() == "(") - (item.group() == ")")
        if not depth:
            return item.end()
    return len(expression)
