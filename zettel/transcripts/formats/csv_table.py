"""Tables of messages with a line of column names: CSV with any usual delimiter.

The delimiter is a comma, semicolon, tab or vertical bar; quoted cells may contain line ends. The text is UTF-8, or
UTF-16 with a byte order mark. :mod:`~zettel.transcripts.formats.tables` describes the columns. Without a column for
threads or channels an event has no session.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from datetime import timezone, tzinfo
from pathlib import Path
from typing import TextIO

from zettel.errors import BadRecord
from zettel.model import MAX_CONTENT_BYTES, Source
from zettel.transcripts import Record
from zettel.transcripts.parsing.json_stream import encoding_of
from zettel.transcripts.parsing.lines import MAX_LINE, head_text
from zettel.transcripts.records import ContentKeys, rejected

from .tables import FIELDS, TableColumns, folded, looks_like_messages

name = "csv"
local_times = True
"""Times may have no zone."""

DELIMITERS = (",", ";", "\t", "|")
"""Delimiters, the most usual first."""
MAX_COLUMN_NAME = 100
"""Longest name of a column, in characters: a longer text is a sentence, and the file is not a table."""

_NO_UTF8 = re.compile("[\udc80-\udcff]")  # escapes of bytes that are not UTF-8
_SEPARATOR = re.compile(r"sep=(.)\s*")  # a first line that only Excel reads
_OPEN_AT_END = "unexpected end of data"  # Python's message for an open quotation mark
_USUAL = frozenset(name for names in FIELDS.values() for name in names)


def sniff(path: Path, head: bytes) -> bool:
    """Recognise a first line with columns for content, and for speaker or time."""
    first = head_text(head).lstrip("\n\r")[: MAX_COLUMN_NAME * 100].splitlines()[:2]
    lines = first[1:] if first and _SEPARATOR.fullmatch(first[0]) else first
    if not lines or "\0" in lines[0]:
        return False
    columns = _cells(lines[0], _delimiter(lines[0], ()))
    has_sentence = any(": " in column or len(column) > MAX_COLUMN_NAME for column in columns)
    return looks_like_messages(columns) and not has_sentence


def read(
    path: Path,
    zone: tzinfo = timezone.utc,
    columns: Mapping[str, str] | None = None,
    called: str | None = None,
) -> Iterator[Record]:
    """Yield the rows in order; a damaged row is rejected.

    ``columns`` maps event fields (``content``, ``speaker``, ``occurred_at``, ``session``, ``id``, ``title``) to columns
    with unusual names. ``called`` replaces the file's name. Raises ``InvalidInput`` as ``TableColumns``, and
    ``BadRecord`` if the rest cannot be read.
    """
    with path.open("rb") as file:
        encoding = encoding_of(file.read(4))
    # A byte that is not UTF-8 damages one row, not the file.
    errors = "strict" if encoding == "utf-16" else "surrogateescape"
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CONTENT_BYTES))
    with path.open(encoding=encoding, errors=errors, newline="") as text:
        lines = _NumberedLines(text, str(path))
        first, delimiter = next(lines, ""), ""
        if separator := _SEPARATOR.fullmatch(first):
            first, delimiter = next(lines, ""), separator[1]
        delimiter = delimiter or _delimiter(first, tuple((columns or {}).values()))
        names = [cell.strip() for cell in _cells(first, delimiter)]
        table = TableColumns(path, names, columns, called)
        keys = ContentKeys()
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        while True:
            start_line = lines.number + 1
            source = Source(file=str(path), position=str(start_line))
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                reason = f"the row is damaged: {error}"
                if str(error) == _OPEN_AT_END:
                    lost = lines.number - start_line
                    reason = f"a quotation mark is opened here and never closed: {lost:,} lines are lost"
                yield rejected(source, reason)
                continue
            while len(cells) > len(names) and not cells[-1]:  # some programs end each row with a comma
                cells.pop()
            if any(map(_NO_UTF8.search, cells)):
                yield rejected(source, "the row is not UTF-8")
            elif len(cells) > len(names):
                yield rejected(source, f"the row has {len(cells)} cells for {len(names)} columns")
            elif any(cells):
                # Among columns with equal names the first counts.
                row = dict(zip(reversed(names[: len(cells)]), reversed(cells), strict=True))
                yield table.event(row, source, zone, keys)


def _delimiter(line: str, named_columns: tuple[str, ...]) -> str:
    """Return the delimiter with the most named or usual columns, else with the most columns."""

    def rank(delimiter: str) -> tuple[int, int]:
        names = [cell.strip() for cell in _cells(line, delimiter)]
        return sum(name in named_columns or folded(name) in _USUAL for name in names), len(names)

    return max(DELIMITERS, key=rank)


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


class _NumberedLines:
    """The lines of a text with their numbers. Too long a line raises ``csv.Error``; the iteration may continue."""

    def __init__(self, text: TextIO, where: str) -> None:
        self._text = text
        self._where = where
        self.number = 0

    def __iter__(self) -> _NumberedLines:
        return self

    def __next__(self) -> str:
        self.number += 1
        line = self._read_part()
        if _is_cut(line):
            while _is_cut(self._read_part()):
                pass
            raise csv.Error(f"the line is longer than {MAX_LINE:,} characters")
        if not line:
            raise StopIteration
        return line

    def _read_part(self) -> str:
        try:
            return self._text.readline(MAX_LINE)
        except UnicodeDecodeError as error:
            raise BadRecord(f"{self._where}:{self.number}: the text is not valid UTF-16 ({error.reason})") from None


def _is_cut(line: str) -> bool:
    return len(line) == MAX_LINE and not line.endswith(("\n", "\r"))
