"""Splits long content into parts, each a note of the same event."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

from zettel.text.markdown import TABLE, Line, LineKind, lines_of

PART_CHARS = 1500
"""Longest part, in characters: about half a page, which a vector can still represent."""

_CLOSING = "\"')]"
_PARAGRAPH_END = re.compile(r"\n\s*\n")
_LINE_END = re.compile(r"\n")
_SENTENCE_END = re.compile(rf"(?<=[.!?…])[{re.escape(_CLOSING)}]*\s+|(?<=[。！？])")
_WORD_END = re.compile(r"\s+")
_MARKER = re.compile(r"\s*\S+\s+\S")
_BORDERS = (_PARAGRAPH_END, _LINE_END, _SENTENCE_END, _WORD_END)
"""Borders of text without Markdown, from coarse to fine."""


class _Rank(IntEnum):
    """The start of a line as a place for a cut, from the best to the worst."""

    HEADING = 0
    BLOCK = 1
    ITEM = 2
    SUBITEM = 3  # a nested item, or another block in a list
    ROW = 4
    CODE_BLOCK = 5  # after a blank line in code
    CODE_LINE = 6
    LINE = 7


class _Border(NamedTuple):
    """The start of a line, and the end of the text before it: a cut may be anywhere between."""

    text_end: int
    start: int
    rank: _Rank


def split_parts(content: str, longest: int = PART_CHARS) -> list[str]:
    """Split ``content`` into parts of at most ``longest`` characters, without losing any.

    A cut is after the last paragraph that fits, else after the last sentence, else between words, else anywhere. In
    Markdown it is before the last heading that fits, else between paragraphs, lists, tables and code blocks, else
    between list items, table rows, lines of code, sentences or words. A table or a code block that fits into one part,
    with the heading before it, is not cut. A part does not end with a heading. White space at the end of the content
    does not count.
    """
    if len(content) <= longest:
        return [content]
    next_cut = _cutter(content, longest)
    parts: list[str] = []
    start = 0
    while len(content) - start > longest:
        cut = next_cut(start, start + longest)
        parts.append(content[start:cut])
        start = cut
    rest = content[start:]
    if parts and not rest.strip():
        parts[-1] += rest
    else:
        parts.append(rest)
    return parts


def _cutter(content: str, longest: int) -> Callable[[int, int], int]:
    """Return the function that finds the cut of a part, given its start and its latest end."""
    lines = lines_of(content)
    if any(line.kind not in (LineKind.TEXT, LineKind.BLANK) for line in lines):
        return _MarkdownCutter(content, lines, longest).cut
    return lambda start, end: _last_border(content, start, end) or end


def _last_border(
    content: str,
    start: int,
    end: int,
    borders: Sequence[re.Pattern[str]] = _BORDERS,
    allows: Callable[[int], bool] = lambda cut: True,
) -> int | None:
    """The last border of the coarsest kind; None if there is none."""
    # A cut in the first half would leave a short part; then the next finer border is used.
    half = first = (start + end) // 2
    while first > start and (content[first - 1].isspace() or content[first - 1] in _CLOSING):
        first -= 1  # so that a border matches as a whole
    for border in borders:
        cuts = [cut for match in border.finditer(content, first, end) if (cut := match.end()) > half and allows(cut)]
        if cuts:
            return cuts[-1]
    return None


class _MarkdownCutter:
    """Finds the cuts of one Markdown text."""

    def __init__(self, content: str, lines: Sequence[Line], longest: int) -> None:
        self._content = content
        self._wholes = _Spans(_wholes(content, lines, longest))
        self._line_starts = _borders(lines)
        self._borders = [border for border in self._line_starts if self._wholes.allows(border.start)]

    def cut(self, start: int, end: int) -> int:
        """Return the end of the part that begins at ``start`` and ends at ``end`` at the latest."""
        half = (start + end) // 2
        borders = _within(self._borders, start, end)
        if late := [border for border in borders if min(border.start, end) > half]:
            best = min(border.rank for border in late)
            return min([border for border in late if border.rank == best][-1].start, end)
        cut = _last_border(self._content, start, end, (_SENTENCE_END, _WORD_END), self._wholes.allows)
        if cut is None and self._wholes.allows(end):
            cut = end  # within a word
        if cut is not None:
            return cut
        # Only wholes follow: a short part is better than half a table. Else a whole is too long and must be cut.
        if last := borders or _within(self._line_starts, start, end):
            return min(last[-1].start, end)
        return _last_border(self._content, start, end) or end


def _within(borders: Sequence[_Border], start: int, end: int) -> Sequence[_Border]:
    """The borders at which a part from ``start`` to at most ``end`` may end."""
    first = bisect_right(borders, start, key=lambda border: border.text_end)
    return borders[first : bisect_right(borders, end, key=lambda border: border.text_end)]


def _borders(lines: Sequence[Line]) -> list[_Border]:
    """The starts of all lines with text, except the first."""
    borders: list[_Border] = []
    base: dict[int, int] = {}  # the indentation of the first item of each list
    last: Line | None = None
    for line in lines:
        is_item = line.kind is LineKind.ITEM
        if is_item:
            base.setdefault(line.block, line.indent)
        if line.text_end == line.start:  # blank
            continue
        if last is not None:
            is_base = is_item and line.indent <= base[line.block]
            is_later = line.start > last.end  # a blank line is between them
            borders.append(_Border(last.text_end, line.start, _rank(last, line, is_base=is_base, is_later=is_later)))
        last = line
    return borders


def _rank(last: Line, line: Line, *, is_base: bool, is_later: bool) -> _Rank:
    if line.kind is LineKind.HEADING:
        return _Rank.HEADING
    if line.block != last.block:
        return _Rank.BLOCK
    if line.unit >= 0 and line.unit == last.unit:
        if line.kind in TABLE:
            return _Rank.ROW
        return _Rank.CODE_BLOCK if is_later else _Rank.CODE_LINE
    if line.kind is LineKind.ITEM:
        return _Rank.ITEM if is_base else _Rank.SUBITEM
    return _Rank.SUBITEM if is_later or line.unit != last.unit else _Rank.LINE


class _Spans:
    """Spans of a text that a cut may not divide, in order."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(spans):
            if self._ends and start < self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def allows(self, cut: int) -> bool:
        """Return True if no span contains both characters beside the cut."""
        place = bisect_left(self._starts, cut) - 1
        return place < 0 or cut >= self._ends[place]


def _wholes(content: str, lines: Sequence[Line], longest: int) -> Iterator[tuple[int, int]]:
    """Spans that are not cut, if possible: (start, end).

    These are headings with the first character after them, a list item's marker with the first character after it,
    table rows, the header of a table with its first row, lines of code, a fence with the line next to it, and whole
    tables and code blocks with their heading, each at most ``longest``.
    """
    filled = [line for line in lines if line.text_end > line.start]
    heading: int | None = None  # where the headings directly before the line start
    begun: int | None = None  # where the table or code block of the line starts, with its headings
    for line, following in pairwise([*filled, None]):
        assert line is not None
        if line.kind is LineKind.HEADING:
            heading = line.start if heading is None else heading
            yield heading, (line.text_end if following is None else following.start + 1)
            continue
        if line.kind is LineKind.ITEM and (marker := _MARKER.match(content, line.start)):
            yield line.start, marker.end()
        if line.unit >= 0:
            if line.text_end - line.start <= longest:
                yield line.start, line.text_end
            begun = (line.start if heading is None else heading) if begun is None else begun
            if following is None or following.unit != line.unit:
                if line.text_end - begun <= longest:
                    yield begun, line.text_end
                begun = None
            elif LineKind.FENCE in (line.kind, following.kind) or line.kind in (LineKind.HEADER, LineKind.RULE):
                yield line.start, following.start + 1
        heading = None
