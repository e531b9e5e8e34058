"""Plain text of a copied chat, with ``Speaker: text`` on a line for each message.

::

    [2024-05-01 09:00] Ann: Shall we?
    Ben: Give me ten minutes.
      I am still at the dentist's.

A line without a speaker, or an indented line, continues the message above it. The stamp in brackets is optional: an ISO
date or time, in UTC without a zone. The file is one session with the file's name. A message without a stamp is undated
and gets an id (see :class:`~zettel.transcripts.records.ContentKeys`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone, tzinfo
from pathlib import Path

from zettel.model import Source
from zettel.transcripts import Record, Rejected
from zettel.transcripts.parsing.lines import head_text, lines
from zettel.transcripts.records import ContentKeys, record, rejected

name = "plain"
local_times = True

MAX_SPEAKER = 40
"""Longest name of a speaker, in characters: a longer text before a colon is a sentence."""

# A speaker has up to four words without punctuation; a space follows the colon, so URLs do not match.
_SPEAKER = r"(?P<speaker>[^\W_][\w.'’()+-]*(?: [\w.'’()+-]+){0,3})"
_MESSAGE = re.compile(rf"(?:\[(?P<stamp>\d[^\]]*)\] *)?{_SPEAKER}:(?: +(?P<text>.*))?")
_ENDINGS = (".txt", ".text", ".log", ".chat", ".md", ".markdown")
_SNIFFED_LINES = 50
_MIN_SPOKEN_SHARE = 0.3  # of the lines: long messages have several


def sniff(path: Path, head: bytes) -> bool:
    """Recognise text whose first line has a speaker and a valid stamp, as do 30 % of the first lines."""
    text = head_text(head)
    if "\0" in text:
        return False
    spoken = [_is_readable(line) for line in text.splitlines()[:_SNIFFED_LINES] if line.strip()]
    return bool(spoken) and spoken[0] and sum(spoken) >= _MIN_SPOKEN_SHARE * len(spoken)


def sniff_in_folder(path: Path, head: bytes) -> bool:
    """Recognise such a text by its suffix too: settings and programs also have lines with colons."""
    ending = path.suffix.lower()
    return (ending in _ENDINGS or not ending[1:2].isalpha()) and sniff(path, head)


def begins_message(line: str) -> bool:
    """Return whether a message begins on a line."""
    return _parse(line) is not None


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """Yield the messages in order; invalid lines and lines before the first speaker are rejected.

    Times without a zone are in ``zone``.
    """
    keys = ContentKeys()
    message: _Message | None = None
    with path.open("rb") as file:
        for number, text in lines(file, str(path)):
            if isinstance(text, Rejected):
                yield text
                continue
            start = _parse(text)
            if start is None:
                if message is not None:
                    message.lines.append(text.strip())
                elif text.strip():
                    source = Source(file=str(path), position=str(number))
                    yield rejected(source, "no speaker: a message begins with 'Name: '")
                continue
            if message is not None:
                yield message.record(path, keys, zone)
            message = _Message(start, Source(file=str(path), position=str(number)))
        if message is not None:
            yield message.record(path, keys, zone)


class _Message:
    def __init__(self, start: re.Match[str], source: Source) -> None:
        self.stamp: str | None = start["stamp"]
        self.speaker = start["speaker"]
        self.lines = [start["text"] or ""]
        self.source = source

    def record(self, path: Path, keys: ContentKeys, zone: tzinfo) -> Record:
        occurred_at = None
        if self.stamp is not None:
            try:
                occurred_at = _moment(self.stamp)
            except ValueError:
                return rejected(self.source, f"{self.stamp!r} is not an ISO date such as 2024-05-01 09:00")
            occurred_at = occurred_at if occurred_at.tzinfo else occurred_at.replace(tzinfo=zone)
        fields = {
            "content": "\n".join(self.lines).strip(),
            "speaker": self.speaker,
            "occurred_at": occurred_at,
            "session": path.stem,
        }
        return record(fields, self.source, keys)


def _is_readable(line: str) -> bool:
    """Return whether a message begins on a line, with a valid stamp or none."""
    start = _parse(line)
    if start is None or start["stamp"] is None:
        return start is not None
    try:
        _moment(start["stamp"])
    except ValueError:
        return False
    return True


def _moment(stamp: str) -> datetime:
    # Python 3.10 does not parse "Z".
    return datetime.fromisoformat(re.sub("[zZ]$", "+00:00", stamp.strip()))


def _parse(line: str) -> re.Match[str] | None:
    match = _MESSAGE.fullmatch(line.rstrip())
    return match if match and len(match["speaker"]) <= MAX_SPEAKER else None
