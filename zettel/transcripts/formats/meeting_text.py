"""Plain text transcripts of Zoom and Teams: a line with a name and a time, and the text below it.

::

    [Ann Lee] 09:00:05                      (Zoom's captions; the clock's time)
    Good morning.

    Ann Lee   0:05                          (Teams; the time since the beginning)
    Good morning.

    09:00:12 From Ann Lee to Everyone:      (Zoom's chat; until 2021 without "to", with the text on this line)
        Here is the link.

    00:05:12   Ann Lee:   Here is the link.   (Zoom's chat of a cloud recording, separated by tabs)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from zettel.model import MAX_CONTENT_BYTES, Source
from zettel.transcripts import Rejected
from zettel.transcripts.records import rejected

from . import plain


class Cue(NamedTuple):
    """A text with its speaker, times in seconds, and the line on which it begins."""

    line: int
    start: float
    end: float
    speaker: str | None
    text: str
    turn: int = 0
    """The number of the speaker's turn; 0 in subtitles."""
    is_clock: bool = False
    """Whether the times are times of day, not of the recording."""


_TIME = r"(?:(?P<hours>\d{1,2}):)?(?P<minutes>\d{1,2}):(?P<seconds>\d\d)"
_HEADS = (
    (re.compile(rf"\[(?P<name>[^\]\n]{{1,100}})\] {_TIME}"), True),
    (re.compile(rf"{_TIME}\s+From\s+(?P<name>.{{1,100}}?)(?:\s+to\s+[^:\n]{{1,100}}?)?\s?:(?P<text>.*)"), True),
    (re.compile(rf"(?P<name>\S.{{0,100}}?)(?: {{2,}}|\t){_TIME}"), False),
    (re.compile(rf"{_TIME}\t\s*(?P<name>[^\t:]{{1,100}}?)\s?:\t(?P<text>.*)"), False),
)
_DATED = re.compile(r"\b(?:19|20)\d\d\b")
_NOTICE = re.compile(r".{1,100} (?:started|stopped) transcription")
_PREAMBLE = 8  # lines with title, date and length above the first speaker, as in Teams
_HALF_A_DAY, _DAY = 43_200, 86_400  # seconds


def begins_as_meeting(text: str) -> bool:
    """Return whether one of a text's first lines begins a turn."""
    return any(_head(line) is not None for line in _first_lines(text)[:_PREAMBLE])


def is_meeting(text: str) -> bool:
    """Return whether a text is certainly a meeting.

    Timetables have lines with a name and a time too. In a meeting text follows such a line, and no chat message
    precedes it.
    """
    first = _first_lines(text)
    heads = [_head(line) for line in first]
    # A title may have a colon like a message; the date is below it.
    titles = 1 if len(first) > 1 and _DATED.search(first[1]) else 0
    for place, head in enumerate(heads[:_PREAMBLE]):
        if head is not None and (head.is_clock or head.text):
            return True
        if head is not None and heads[place + 1 : place + 2] == [None]:
            return not any(map(plain.begins_message, first[titles:place]))
    return False


def _first_lines(text: str) -> list[str]:
    """Return the lines in which a first turn may begin, and one more, without blank lines."""
    return [line for line in text.splitlines() if line.strip()][: _PREAMBLE + 1]


def cues_of_meeting(lines: Iterator[tuple[int, str | Rejected]], where: str) -> Iterator[Cue | Rejected]:
    """Yield each turn with its speaker. A few lines above the first turn are skipped."""
    cue: Cue | None = None
    cue_lines: list[str] = []
    length = skipped = 0
    for number, line in lines:
        if isinstance(line, Rejected):
            yield line
            continue
        begin = _head(line)
        if begin is not None:
            yield from _with_text(cue, cue_lines)
            start = begin.start
            if cue is not None and begin.is_clock and start < cue.start - _HALF_A_DAY:
                start += _DAY  # past midnight
            turn = 1 if cue is None else cue.turn + 1
            cue = begin._replace(line=number, start=start, end=start, turn=turn)
            cue_lines, length = [begin.text], len(begin.text)
        elif cue is not None:
            if length <= MAX_CONTENT_BYTES and not _NOTICE.fullmatch(line):
                cue_lines.append(line.strip())
                length += len(line)
        elif line.strip():
            skipped += 1
            if skipped > _PREAMBLE:
                yield rejected(Source(file=where, position=str(number)), "no speaker and no time above this text")
    yield from _with_text(cue, cue_lines)


def _with_text(cue: Cue | None, lines: list[str]) -> Iterator[Cue]:
    text = "\n".join(lines).strip()
    if cue is not None and text:
        yield cue._replace(text=text)


def _head(line: str) -> Cue | None:
    for pattern, is_clock in _HEADS:
        match = pattern.fullmatch(line.strip("\ufeff\r\n "))
        if match is not None:
            seconds = int(match["hours"] or 0) * 3600 + int(match["minutes"]) * 60 + int(match["seconds"])
            text = (match.groupdict().get("text") or "").strip()
            return Cue(0, seconds, seconds, match["name"].strip(), text, 0, is_clock)
    return None
