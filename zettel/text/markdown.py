"""Classifies the lines of Markdown text: headings, list items, table rows, code and ordinary text."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

MAX_HEADING = 200
"""Longest heading, in characters: a longer line is text."""
LIST_INDENT = 2
"""Least indentation of text after a blank line that continues a list item, in columns."""
TAB = 4
"""Columns of a tab."""

FENCED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
"""Code between backticks, in blocks and in lines."""


class Line(NamedTuple):
    """A line of a text.

    ``start`` and ``end`` are its span with the line break, and ``text_end`` is the end of its last visible character.
    ``block`` numbers paragraphs, whole lists, tables and code blocks; a blank line has -1. ``unit`` numbers tables and
    code blocks, also those inside a list; other lines have -1. ``indent`` is its indentation in columns.
    """

    start: int
    end: int
    text_end: int
    kind: LineKind
    block: int
    unit: int
    indent: int


class LineKind(Enum):
    """The kinds of lines: FENCE opens or closes a code block, RULE is the line below the HEADER of a table."""

    BLANK = "blank"
    TEXT = "text"
    HEADING = "heading"
    ITEM = "item"
    HEADER = "header"
    RULE = "rule"
    ROW = "row"
    FENCE = "fence"
    CODE = "code"


TABLE = frozenset({LineKind.HEADER, LineKind.RULE, LineKind.ROW})
CODE = frozenset({LineKind.FENCE, LineKind.CODE})
_IN_UNITS = TABLE | CODE

_HEADING = re.compile(r"#{1,6}(?:\s|$)")
_BOLD = re.compile(r"(?:\*\*[^*]+\*\*|__[^_]+__):?$")
_ITEM = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)])\s+\S")
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_STARTS = frozenset("#*_-+`~0123456789")
"""First characters of lines that may be more than text."""
_RULE_SIGNS = frozenset("|-: \t")


def lines_of(content: str) -> list[Line]:
    """Return the lines of a text, in order. Together they cover the text."""
    return _Reader(content).read()


class _Reader:
    """Reads the lines of one text."""

    def __init__(self, content: str) -> None:
        self._raw = _split_lines(content)
        self._lines: list[Line] = []
        self._block = self._unit = -1
        self._start = 0
        self._last = LineKind.BLANK  # of the last line that is not blank
        self._is_after_blank = True
        self._in_list = False

    def read(self) -> list[Line]:
        fence = ""
        raw, place = self._raw, 0
        while place < len(raw):
            line = raw[place]
            text = line.strip()
            if fence:
                is_end = text[:1] == fence[0] and len(text) >= len(fence) and not text.strip(fence[0])
                self._add(line, text, LineKind.FENCE if is_end else LineKind.CODE)
                fence = "" if is_end else fence
            elif not text:
                self._add(line, text, LineKind.BLANK)
            elif text[0] in "`~" and (match := _FENCE.match(text)):
                fence = match[1] or match[2]
                self._unit += 1
                self._begin(line)
                self._add(line, text, LineKind.FENCE)
            elif "|" in text and place + 1 < len(raw) and _is_rule(raw[place + 1]):
                place = self._add_table(place)
            else:
                kind = self._kind(text)
                self._begin(line, kind)
                self._add(line, text, kind)
            place += 1
        return self._lines

    def _add_table(self, place: int) -> int:
        """Add the rows of the table at a place, and return the place of its last row."""
        raw = self._raw
        self._unit += 1
        self._begin(raw[place])
        for kind in (LineKind.HEADER, LineKind.RULE):
            self._add(raw[place], raw[place].strip(), kind)
            place += 1
        while place < len(raw) and "|" in raw[place]:
            self._add(raw[place], raw[place].strip(), LineKind.ROW)
            place += 1
        return place - 1

    def _kind(self, text: str) -> LineKind:
        if text[0] not in _STARTS:
            return LineKind.TEXT
        if len(text) <= MAX_HEADING:
            if _HEADING.match(text):
                return LineKind.HEADING
            if (self._is_after_blank or self._last is LineKind.HEADING) and _BOLD.match(text):
                return LineKind.HEADING
        return LineKind.ITEM if _ITEM.match(text) else LineKind.TEXT

    def _begin(self, line: str, kind: LineKind | None = None) -> None:
        """Begin a new block, unless the line continues one. ``kind`` is None for a table or a code block."""
        if self._in_list and kind is not LineKind.HEADING:
            is_inside = kind is LineKind.ITEM or _indent(line, len(line) - len(line.lstrip())) >= LIST_INDENT
            if is_inside or (kind is LineKind.TEXT and not self._is_after_blank and self._last not in _IN_UNITS):
                return
        self._in_list = kind is LineKind.ITEM
        if kind is LineKind.TEXT and self._last is LineKind.TEXT and not self._is_after_blank:
            return
        self._block += 1

    def _add(self, line: str, text: str, kind: LineKind) -> None:
        start, end = self._start, self._start + len(line)
        self._start = end
        if kind is LineKind.BLANK:
            self._lines.append(Line(start, end, start, kind, -1, -1, 0))
            self._is_after_blank = True
            return
        unit = self._unit if kind in _IN_UNITS else -1
        lead = len(line) - len(line.lstrip()) if text else 0
        text_end = start + lead + len(text)
        self._lines.append(Line(start, end, text_end, kind, self._block, unit, _indent(line, lead)))
        self._last = kind
        self._is_after_blank = False


def _split_lines(content: str) -> list[str]:
    """Lines that end with a line feed; ``str.splitlines`` also ends them at other characters."""
    *lines, last = content.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _indent(line: str, lead: int) -> int:
    return lead + line[:lead].count("\t") * (TAB - 1) if lead else 0


def _is_rule(line: str) -> bool:
    return "-" in line and "|" in line and _RULE_SIGNS.issuperset(line.strip())
