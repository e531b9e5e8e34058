"""Meetings as Zoom and Teams save them as plain text: a line with a name and a time, and what was said below it.

::

    [Ann Lee] 09:00:05                      (Zoom's captions; the clock's time)
    Good morning.

    Ann Lee   0:05                          (Teams; the time since the beginning)
    Good morning.

    09:00:12 From Ann Lee to Everyone:      (Zoom's chat; until 2021 without "to", and with the words behind it)
        Here is the link.

    00:05:12   Ann Lee:   Here is the link.   (Zoom's chat beside a recording in its cloud, parted by tabs)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from zettel.model import MAX_CONTENT_BYTES, Source

from . import Rejected, plain
from .records import rejected


class Cue(NamedTuple):
    """Something said, at a time in seconds; the line it begins on."""

    line: int
    start: float
    end: float
    speaker: str | None
    text: str
    turn: int = 0
    """Counts turns of speakers where the file has them; 0 where it has subtitles."""
    is_clock: bool = False
    """Whether the time is that of the day, and not that of the recording."""


_TIME = r"(?:(?P<hours>\d{1,2}):)?(?P<minutes>\d{1,2}):(?P<seconds>\d\d)"
_HEADS = (
    (re.compile(rf"\[(?P<name>[^\]\n]{{1,100}})\] {_TIME}"), True),
    (re.compile(rf"{_TIME}\s+From\s+(?P<name>.{{1,100}}?)(?:\s+to\s+[^:\n]{{1,100}}?)?\s?:(?P<text>.*)"), True),
    (re.compile(rf"(?P<name>\S.{{0,100}}?)(?: {{2,}}|\t){_TIME}"), False),
    (re.compile(rf"{_TIME}\t\s*(?P<name>[^\t:]{{1,100}}?)\s?:\t(?P<text>.*)"), False),
)
_DATED = re.compile(r"\b(?:19|20)\d\d\b")
_STARTED = re.compile(r".{1,100} (?:started|stopped) transcription")
_PREAMBLE = 8  # lines with title, date and length above the first speaker, as Teams has them
_HALF_A_DAY, _DAY = 43_200, 86_400  # seconds


def begins_as_meeting(text: str) -> bool:
    """Whether one of a text's first lines is the head of a turn."""
    return any(_head(line) is not None for line in _first_lines(text)[:_PREAMBLE])


def is_meeting(text: str) -> bool:
    """Whether a text is one even if nobody said so.

    A name and a time without a sign between them stand in many a timetable too. In a meeting words stand below them,
    and above them no message of a chat.
    """
    first = _first_lines(text)
    heads = [_head(line) for line in first]
    # A title may have a colon as a message has; the date stands below it.
    titles = 1 if len(first) > 1 and _DATED.search(first[1]) else 0
    for place, head in enumerate(heads[:_PREAMBLE]):
        if head is not None and (head.is_clock or head.text):
            return True
        if head is not None and heads[place + 1 : place + 2] == [None]:
            return not any(map(plain.begins_message, first[titles:place]))
    return False


def _first_lines(text: str) -> list[str]:
    """Those in which a first turn begins, and one more; blank ones do not count."""
    return [line for line in text.splitlines() if line.strip()][: _PREAMBLE + 1]


def cues_of_meeting(lines: Iterator[tuple[int, str | Rejected]], where: str) -> Iterator[Cue | Rejected]:
    """Each turn with its speaker. Lines above the first one are passed over, as far as they are few."""
    cue: Cue | None = None
    said: list[str] = []
    length = before = 0
    for number, line in lines:
        if isinstance(line, Rejected):
            yield line
            continue
        begun = _head(line)
        if begun is not None:
            yield from _said(cue, said)
            start = begun.start
            if cue is not None and begun.is_clock and start < cue.start - _HALF_A_DAY:
                start += _DAY  # past midnight
            turn = 1 if cue is None else cue.turn + 1
            cue = begun._replace(line=number, start=start, end=start, turn=turn)
            said, length = [begun.text], len(begun.text)
        elif cue is not None:
            if length <= MAX_CONTENT_BYTES and not _STARTED.fullmatch(line):
                said.append(line.strip())
                length += len(line)
        elif line.strip():
            before += 1
            if before > _PREAMBLE:
                yield rejected(Source(file=where, position=str(number)), "no speaker and no time above this text")
    yield from _said(cue, said)


def _said(cue: Cue | None, lines: list[str]) -> Iterator[Cue]:
    text = "\n".join(lines).strip()
    if cue is not None and text:
        yield cue._replace(text=text)


def _head(line: str) -> Cue | None:
    for pattern, is_clock in _HEADS:
        found = pattern.fullmatch(line.strip("\ufeff\r\n "))
        if found is not None:
            seconds = int(found["hours"] or 0) * 3600 + int(found["minutes"]) * 60 + int(found["seconds"])
            text = (found.groupdict().get("text") or "").strip()
            return Cue(0, seconds, seconds, found["name"].strip(), text, 0, is_clock)
    return None
