"""Tables of messages with a line of names above them: CSV, whatever parts its columns.

Commas, semicolons, tabs and vertical bars are tried; cells in quotation marks may hold line ends. The text is UTF-8,
with or without a byte order mark, or UTF-16 with one. Which column says what: see
:mod:`~zettel.transcripts.tables`. Without a column for threads or channels an event has no session.
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

from . import Record
from .json_stream import encoding_of
from .lines import MAX_LINE, head_text
from .records import ContentKeys, rejected
from .tables import FIELDS, Columns, folded, looks_like_messages

name = "csv"
local_times = True
"""Its times may have no zone."""

DELIMITERS = (",", ";", "\t", "|")
"""What may part columns, the most usual first."""
MAX_COLUMN_NAME = 100
"""Longest name of a column, in characters: what is longer is a sentence, and the file no table."""

_NO_UTF8 = re.compile("[\udc80-\udcff]")  # what bytes become that are none
_SEPARATOR = re.compile(r"sep=(.)\s*")  # a first line for Excel alone
_OPEN_AT_END = "unexpected end of data"  # Python's words for it
_USUAL = frozenset(name for names in FIELDS.values() for name in names)


def sniff(path: Path, head: bytes) -> bool:
    """The first line names a column for what was said, and one for who said it or when."""
    first = head_text(head).lstrip("\n\r")[: MAX_COLUMN_NAME * 100].splitlines()[:2]
    lines = first[1:] if first and _SEPARATOR.fullmatch(first[0]) else first
    if not lines or "\0" in lines[0]:
        return False
    columns = _cells(lines[0], _delimiter(lines[0], ()))
    sentence = any(": " in column or len(column) > MAX_COLUMN_NAME for column in columns)
    return looks_like_messages(columns) and not sentence


def read(
    path: Path,
    zone: tzinfo = timezone.utc,
    columns: Mapping[str, str] | None = None,
    called: str | None = None,
) -> Iterator[Record]:
    """The rows in order, as they are read; one that is damaged is rejected, and the next is tried.

    ``columns`` names the column of a field of an event (``content``, ``role``, ``occurred_at``, ``session``, ``id``,
    ``title``) where its name is none of the usual ones; ``called`` is another name than the file's. Raises
    ``InvalidInput`` where there is no such column or none that could be the content, ``BadRecord`` where no more can be
    read.
    """
    with path.open("rb") as file:
        encoding = encoding_of(file.read(4))
    # A byte that is not UTF-8 spoils its row, not the file.
    errors = "strict" if encoding == "utf-16" else "surrogateescape"
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CONTENT_BYTES))
    with path.open(encoding=encoding, errors=errors, newline="") as text:
        lines = _Lines(text, str(path))
        first, delimiter = next(lines, ""), ""
        if told := _SEPARATOR.fullmatch(first):
            first, delimiter = next(lines, ""), told[1]
        delimiter = delimiter or _delimiter(first, tuple((columns or {}).values()))
        names = [cell.strip() for cell in _cells(first, delimiter)]
        table = Columns(path, names, columns, called)
        keys = ContentKeys()
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        while True:
            begun = lines.number + 1
            source = Source(file=str(path), position=str(begun))
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                reason = f"no row of a table: {error}"
                if str(error) == _OPEN_AT_END:
                    lost = lines.number - begun
                    reason = f"a quotation mark is opened here and never closed: {lost:,} lines are lost"
                yield rejected(source, reason)
                continue
            while len(cells) > len(names) and not cells[-1]:  # some end each row with a comma
                cells.pop()
            if any(map(_NO_UTF8.search, cells)):
                yield rejected(source, "the row is not UTF-8")
            elif len(cells) > len(names):
                yield rejected(source, f"the row has {len(cells)} cells, and there are {len(names)} columns")
            elif any(cells):
                # Of two columns of one name the first counts.
                row = dict(zip(reversed(names[: len(cells)]), reversed(cells), strict=True))
                yield table.event(row, source, zone, keys)


def _delimiter(line: str, wanted: tuple[str, ...]) -> str:
    """What parts the names of the columns: with it most of them are ``wanted`` or usual, or else there are most."""

    def telling(delimiter: str) -> tuple[int, int]:
        names = [cell.strip() for cell in _cells(line, delimiter)]
        return sum(name in wanted or folded(name) in _USUAL for name in names), len(names)

    return max(DELIMITERS, key=telling)


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


class _Lines:
    """The lines of a text with their numbers. One that is too long raises ``csv.Error`` and is passed over."""

    def __init__(self, text: TextIO, where: str) -> None:
        self._text = text
        self._where = where
        self.number = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        self.number += 1
        line = self._more()
        if _is_cut(line):
            while _is_cut(self._more()):
                pass
            raise csv.Error(f"the line is longer than {MAX_LINE:,} characters")
        if not line:
            raise StopIteration
        return line

    def _more(self) -> str:
        try:
            return self._text.readline(MAX_LINE)
        except UnicodeDecodeError as error:
            raise BadRecord(f"{self._where}:{self.number}: the text is not UTF-16 any more ({error.reason})") from None


def _is_cut(line: str) -> bool:
    return len(line) == MAX_LINE and not line.endswith(("\n", "\r"))
