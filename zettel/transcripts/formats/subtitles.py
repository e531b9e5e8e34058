"""Subtitles (SRT, WebVTT), and transcripts of Zoom and Teams (.vtt, .txt).

A file is one session with the file's name. Consecutive cues of one speaker are one event of up to a few sentences.
Speakers come from ``<v Ann>`` (Teams) or ``Ann: `` (Zoom). ``offset`` in the metadata is the time in the recording, in
seconds. ``occurred_at`` is set only if the file, its name or its folder contains the start time of the recording.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta, timezone, tzinfo
from pathlib import Path

from zettel.model import Source
from zettel.transcripts import Record, Rejected
from zettel.transcripts.archive_tree import File, files
from zettel.transcripts.parsing.html_tokens import unescaped
from zettel.transcripts.parsing.lines import head_text, lines
from zettel.transcripts.records import ContentKeys, record, rejected

from .meeting_text import Cue, begins_as_meeting, cues_of_meeting, is_meeting
from .recording_start import RecordingStart, recording_start

name = "subtitles"
local_times = True

_PAUSE = 3.0  # seconds of silence between two events
_ENOUGH, _MAX = 200, 1000  # characters from which an event ends with its sentence, and with any cue
_CLOCK = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMING = re.compile(rf"\s*{_CLOCK}\s*-->\s*{_CLOCK}(?:\s.*)?")
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s(?P<name>[^<>]+)>")
_VOICES = re.compile(r"(?<=[\n>])\s*(?=<v[\s.])")
_TAG = re.compile(
    r"</?(?:v|c|i|b|u|s|em|strong|font|lang|ruby|rt)(?:[\s.][^<>]*)?>|<[\d:.]+>|\{\\[^{}]*\}", re.IGNORECASE
)
_ROLLING = re.compile(r"<\d[\d:.]*><c>")  # automatic captions, which repeat lines of the cue before
_NAMED = re.compile(r"(?P<name>[^\W_][^:<>\n]{0,60}?):\s+(?P<text>\S.*)", re.DOTALL)
_MAX_LINES = 1000  # of one cue: a file without its blank lines is one cue
_ENDS = (".", "!", "?", "…", "。", "！", "？", "؟", "।")
_HEAD_BYTES = 4096
_SECTIONS = ("NOTE", "STYLE", "REGION", "WEBVTT")


def sniff(path: Path, head: bytes) -> bool:
    """Recognise ``WEBVTT``, a time with an arrow in one of the first lines, and texts of Zoom and Teams."""
    text = head_text(head).lstrip("\ufeff")
    if text.startswith("WEBVTT"):
        return True
    first_lines = [line for line in text.splitlines() if line.strip()][:2]
    return any(map(_TIMING.fullmatch, first_lines)) or (path.suffix.lower() == ".txt" and is_meeting(text))


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """Yield the events in order. Dates without a zone are in ``zone``."""
    file = next(files(path))
    head = head_text(file.head(_HEAD_BYTES)).lstrip("\ufeff")
    recording = recording_start(path, head, zone)
    if begins_as_meeting(head):
        with file.open() as stream:
            yield from _events(cues_of_meeting(lines(stream, file.where), file.where), file, recording)
    else:
        yield from _events(_speaker_cues(file), file, recording)


def _speaker_cues(file: File) -> Iterator[Cue | Rejected]:
    """Yield the cues with their speakers, and without repeated lines."""
    has_names, is_rolling = _survey(file)
    lines_before: list[str] = []
    for cue in _cues(file):
        if isinstance(cue, Rejected):
            yield cue
            continue
        cue_lines: list[str] = []
        for part in _VOICES.split(cue.text):  # a cue may have several speakers
            voice = _VOICE.search(part)
            speaker = " ".join(unescaped(voice["name"]).split()) or None if voice else None
            part_lines = [line for line in map(_clean, part.split("\n")) if line]
            cue_lines += part_lines
            text = "\n".join(line for line in part_lines if not is_rolling or line not in lines_before)
            if has_names and speaker is None and (match := _NAMED.fullmatch(text)):
                speaker, text = match["name"].strip(), match["text"]
            if text:
                yield cue._replace(speaker=speaker, text=text)
        lines_before = cue_lines


def _survey(file: File) -> tuple[bool, bool]:
    """Return whether most cues begin with a name and a colon, and whether lines are repeated."""
    count = with_name = 0
    is_rolling = False
    for cue in _cues(file):
        if isinstance(cue, Cue):
            count += 1
            with_name += _NAMED.fullmatch(_clean(cue.text)) is not None
            is_rolling = is_rolling or _ROLLING.search(cue.text) is not None
    return with_name * 2 > count, is_rolling


def _cues(file: File) -> Iterator[Cue | Rejected]:
    """Yield the cues of a file with their markup."""
    cue: Cue | None = None
    cue_lines: list[str] = []
    stray = 0  # the number of a line without a time
    is_skipping = False
    with file.open() as stream:
        for number, line in lines(stream, file.where):
            if isinstance(line, Rejected):
                yield line
                continue
            timing = _TIMING.fullmatch(line) if "-->" in line else None
            # A line of blanks does not end a cue without text: automatic captions begin with one.
            if timing is not None or not (line if cue is not None and not cue_lines else line.strip()):
                if cue is not None:
                    yield cue._replace(text="\n".join(cue_lines))
                if stray and timing is None:
                    yield rejected(Source(file=file.where, position=str(stray)), "a text without a time")
                cue, cue_lines, stray, is_skipping = None, [], 0, False
            if timing is not None:
                parts = timing.groups()
                cue = Cue(number, _seconds(parts[:4]), _seconds(parts[4:]), None, "")
            elif cue is not None:
                if len(cue_lines) < _MAX_LINES:
                    cue_lines.append(line)
            elif "-->" in line:
                source = Source(file=file.where, position=str(number))
                yield rejected(source, f"{line.strip()[:60]!r} is not a time")
                is_skipping = True
            elif line.strip() and not is_skipping:
                is_skipping = line.startswith(_SECTIONS)
                # A number or a name may precede a time.
                is_valid = is_skipping or line.strip().isdecimal()
                stray = 0 if is_valid else number
    if cue is not None:
        yield cue._replace(text="\n".join(cue_lines))


def _seconds(clock: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, parts = (part or "0" for part in clock)
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + int(parts.ljust(3, "0")) / 1000


def _clean(text: str) -> str:
    return " ".join(unescaped(_TAG.sub("", text)).split())


def _events(cues: Iterator[Cue | Rejected], file: File, recording: RecordingStart) -> Iterator[Record]:
    keys = ContentKeys()
    merged: Cue | None = None
    first: float | None = None
    for cue in cues:
        if isinstance(cue, Rejected):
            yield cue
            continue
        first = cue.start if first is None else first
        if merged is not None and _continues(merged, cue):
            merged = merged._replace(end=cue.end, text=f"{merged.text} {cue.text}")
            continue
        if merged is not None:
            yield _event(merged, file, recording, first, keys)
        merged = cue
    if merged is not None:
        yield _event(merged, file, recording, first or 0.0, keys)


def _continues(merged: Cue, cue: Cue) -> bool:
    if merged.speaker != cue.speaker or merged.turn != cue.turn or cue.start < merged.start:
        return False
    length = len(merged.text)
    is_complete = length + len(cue.text) > _MAX or (length >= _ENOUGH and merged.text.endswith(_ENDS))
    return cue.start - merged.end <= _PAUSE and not is_complete


def _event(cue: Cue, file: File, recording: RecordingStart, first: float, keys: ContentKeys) -> Record:
    occurred_at = None
    offset = cue.start - first if cue.is_clock else cue.start
    if recording.at is not None:
        start = recording.at.replace(hour=0, minute=0, second=0) if cue.is_clock else recording.at
        occurred_at = start + timedelta(seconds=cue.start)
    fields = {
        "content": " ".join(cue.text.split()) if not cue.turn else cue.text,
        "speaker": cue.speaker,
        "occurred_at": occurred_at,
        "session": recording.session,
        "metadata": {"offset": round(offset, 3)},
    }
    return record(fields, Source(file=file.where, position=str(cue.line)), keys)
