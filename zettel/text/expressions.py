r"""Regular expressions that are tried only on texts with their letters, which is several times as fast.

An expression such as ``\b(?:would|could|might)\b`` is tried at every character of a text. Most texts contain none of
its words, and to look for each word is quicker than to try the expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

_ITEM = re.compile(
    r"(?P<letter>[\w ',:=-](?![?*{+]))|(?P<open>\()|\\.|\[\^?\]?(?:\\.|[^]\\])*\]|\{[^}]*\}|.", re.DOTALL
)
"""A character that only matches itself, the start of a group, or anything else in an expression."""
_GROUP = re.compile(r"\((?:\?(?:P<\w+>|-?[aimsx]+:|:))?")
_LOOK = re.compile(r"\(\?<?[=!]")
_OPTIONAL = re.compile(r"[?*]|\{0?,")


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
        if not self._literals:
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
    found: list[str] = []
    for alternative in _alternatives(expression):
        best = max(_required(alternative), key=_selectivity)
        if not best:
            return ()
        found += best
    return tuple(dict.fromkeys(found))


def _selectivity(texts: tuple[str, ...]) -> tuple[int, int]:
    return min(map(len, texts), default=0), -len(texts)


def _alternatives(expression: str) -> Iterator[str]:
    """Yield the alternatives of an expression outside of its groups."""
    starts, depth = [0], 0
    for item in _ITEM.finditer(expression):
        depth += (item.group() == "(") - (item.group() == ")")
        if item.group() == "|" and not depth:
            starts.append(item.end())
    return (expression[start : end - 1] for start, end in pairwise([*starts, len(expression) + 1]))


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
            start, place = item.start(), _group_end(expression, item.start())
            if not _LOOK.match(expression, start) and not _OPTIONAL.match(expression, place):
                opening = _GROUP.match(expression, start)
                yield literals(expression[opening.end() if opening else start : place - 1])
    yield (run,) if run else ()


def _group_end(expression: str, start: int) -> int:
    """Return where the group that begins at ``start`` ends."""
    depth = 0
    for item in _ITEM.finditer(expression, start):
        depth += (item.group() == "(") - (item.group() == ")")
        if not depth:
            return item.end()
    return len(expression)
