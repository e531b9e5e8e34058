"""Plain text: ``Speaker: what was said``, a line for each message, as chats are copied and pasted.

::

    [2024-05-01 09:00] Ann: Shall we?
    Ben: Give me ten minutes.
      I am still at the dentist's.

A line that names no speaker goes on with the message above it, and so does an indented one. The stamp in
brackets is optional: an ISO date or time, taken as UTC without a zone; a message without one is undated. The
file is one session and has its name, without the ending. A message without a stamp gets an id (see
:class:`~zettel.transcripts.records.ContentKeys`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone, tzinfo
from pathlib import Path

from zettel.model import Source

from . import Record, Rejected
from .lines import head_text, lines
from .records import ContentKeys, record, rejected

name = "plain"
local_times = True

MAX_SPEAKER = 40
"""Longest name of a speaker, in characters: what stands longer before a colon is a sentence."""

# A speaker has up to four words without a sentence's signs; the colon is followed by a space, so no address
# is one.
_SPEAKER = r"(?P<role>[^\W_][\w.'’()+-]*(?: [\w.'’()+-]+){0,3})"
_MESSAGE = re.compile(rf"(?:\[(?P<stamp>\d[^\]]*)\] *)?{_SPEAKER}:(?: +(?P<text>.*))?")
_ENDINGS = (".txt", ".text", ".log", ".chat", ".md", ".markdown")
_SNIFFED_LINES = 50
_SPOKEN_SHARE = 0.3  # of the lines: long messages have several


def sniff(path: Path, head: bytes) -> bool:
    """Text whose first line names a speaker, as does at least a third of the lines after it, with stamps as here."""
    text = head_text(head)
    if "\0" in text:
        return False
    spoken = [_is_readable(line) for line in text.splitlines()[:_SNIFFED_LINES] if line.strip()]
    return bool(spoken) and spoken[0] and sum(spoken) >= _SPOKEN_SHARE * len(spoken)


def sniff_found(path: Path, head: bytes) -> bool:
    """The same, by its name a text: settings and programs have lines with colons too."""
    ending = path.suffix.lower()
    return (ending in _ENDINGS or not ending[1:2].isalpha()) and sniff(path, head)


def begins_message(line: str) -> bool:
    """Whether somebody begins to speak on that line."""
    return _parse(line) is not None


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """The messages in order; lines before the first speaker, or that cannot be read, are rejected.

    ``zone`` is that of times that name none.
    """
    keys = ContentKeys()
    message: _Message | None = None
    with path.open("rb") as file:
        for number, text in lines(file, str(path)):
            source = Source(file=str(path), position=str(number))
            if isinstance(text, Rejected):
                yield text
                continue
            begun = _parse(text)
            if begun is None:
                if message is not None:
                    message.lines.append(text.strip())
                elif text.strip():
                    yield rejected(source, "no speaker: a message begins with 'Name: '")
                continue
            if message is not None:
                yield message.record(path, keys, zone)
            message = _Message(begun, source)
        if message is not None:
            yield message.record(path, keys, zone)


class _Message:
    def __init__(self, begun: re.Match[str], source: Source) -> None:
        self.stamp: str | None = begun["stamp"]
        self.role = begun["role"]
        self.lines = [begun["text"] or ""]
        self.source = source

    def record(self, path: Path, keys: ContentKeys, zone: tzinfo) -> Record:
        occurred_at = None
        if self.stamp is not None:
            try:
                occurred_at = _moment(self.stamp)
            except ValueError:
                return rejected(self.source, f"{self.stamp!r} is no ISO date, as 2024-05-01 09:00 is")
            occurred_at = occurred_at if occurred_at.tzinfo else occurred_at.replace(tzinfo=zone)
        fields = {
            "content": "\n".join(self.lines).strip(),
            "role": self.role,
            "occurred_at": occurred_at,
            "session": path.stem,
        }
        return record(fields, self.source, keys)


def _is_readable(line: str) -> bool:
    """Whether a message begins there, at a time that can be read if there is one."""
    begun = _parse(line)
    if begun is None or begun["stamp"] is None:
        return begun is not None
    try:
        _moment(begun["stamp"])
    except ValueError:
        return False
    return True


def _moment(stamp: str) -> datetime:
    # Python 3.10 reads no "Z".
    return datetime.fromisoformat(re.sub("[zZ]$", "+00:00", stamp.strip()))


def _parse(line: str) -> re.Match[str] | None:
    match = _MESSAGE.fullmatch(line.rstrip())
    return match if match and len(match["role"]) <= MAX_SPEAKER else None
