"""What was said in a recording: subtitles (SRT, WebVTT), and the transcripts of Zoom and Teams (.vtt, .txt).

A file is one session, called as the file. What one person goes on saying is one event, up to a few sentences, for a
subtitle alone is a torn-off piece. Who speaks is told by ``<v Ann>`` (Teams), by ``Ann: `` (Zoom) or by nobody. Times
are those of the recording: ``offset`` in the metadata, in seconds. Only where the file, its name or its folder tells
when the recording was made, as Zoom and Teams do, ``occurred_at`` is given.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import timedelta, timezone, tzinfo
from pathlib import Path

from zettel.model import Source

from . import Record, Rejected
from .lines import head_text, lines
from .meeting_text import Cue, begins_as_meeting, cues_of_meeting, is_meeting
from .recorded_at import Beginning, beginning
from .records import ContentKeys, record, rejected
from .trees import File, files

name = "subtitles"
local_times = True

_PAUSE = 3.0  # seconds of silence after which somebody begins anew
_ENOUGH, _MOST = 200, 1000  # characters of an event that ends with its sentence, and that ends anywhere
_CLOCK = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMING = re.compile(rf"\s*{_CLOCK}\s*-->\s*{_CLOCK}(?:\s.*)?")
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+(?P<name>[^>]+)>")
_VOICES = re.compile(r"(?<=[\n>])\s*(?=<v[\s.])")
_TAG = re.compile(
    r"</?(?:v|c|i|b|u|s|em|strong|font|lang|ruby|rt)(?:[\s.][^<>]*)?>|<[\d:.]+>|\{\\[^{}]*\}", re.IGNORECASE
)
_ROLLING = re.compile(r"<\d[\d:.]*><c>")  # captions made by machine, whose lines come again in the next one
_NAMED = re.compile(r"(?P<name>[^\W_][^:<>\n]{0,60}?):\s+(?P<text>\S.*)", re.DOTALL)
_MOST_LINES = 1000  # of one subtitle: a file whose blank lines are lost is one from end to end
_ENDS = (".", "!", "?", "…", "。", "！", "？", "؟", "।")
_SECTIONS = ("NOTE", "STYLE", "REGION", "WEBVTT")


def sniff(path: Path, head: bytes) -> bool:
    """``WEBVTT``, or a time with an arrow in one of the first lines; or a text as Zoom and Teams save it."""
    text = head_text(head).lstrip("\ufeff")
    if text.startswith("WEBVTT"):
        return True
    first = [line for line in text.splitlines() if line.strip()][:2]
    return any(map(_TIMING.fullmatch, first)) or (path.suffix.lower() == ".txt" and is_meeting(text))


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """What was said, in order. ``zone`` is that of dates that tell none."""
    file = next(files(path))
    with file.open() as stream:
        head = head_text(stream.read(_HEAD_BYTES)).lstrip("\ufeff")
    begun = beginning(path, head, zone)
    if begins_as_meeting(head):
        with file.open() as stream:
            cues: Iterator[Cue | Rejected] = cues_of_meeting(lines(stream, file.where), file.where)
            yield from _events(cues, path, file, begun)
        return
    named, rolling = _survey(file)
    yield from _events(_subtitles(file, named, rolling), path, file, begun)


_HEAD_BYTES = 4096


def _survey(file: File) -> tuple[bool, bool]:
    """Whether most subtitles begin with a name and a colon, and whether lines come twice."""
    count = with_name = 0
    rolling = False
    for cue in _cues(file):
        if isinstance(cue, Cue):
            count += 1
            with_name += _NAMED.fullmatch(_clean(cue.text)) is not None
            rolling = rolling or _ROLLING.search(cue.text) is not None
    return with_name * 2 > count, rolling


def _subtitles(file: File, named: bool, rolling: bool) -> Iterator[Cue | Rejected]:
    shown: list[str] = []
    for cue in _cues(file):
        if isinstance(cue, Rejected):
            yield cue
            continue
        before, shown = shown, []
        for said in _VOICES.split(cue.text):  # several may speak in one
            voice = _VOICE.search(said)
            speaker = " ".join(html.unescape(voice["name"]).split()) if voice else None
            told = [line for line in map(_clean, said.split("\n")) if line]
            shown += told
            text = "\n".join(line for line in told if line not in before) if rolling else "\n".join(told)
            if named and speaker is None and (found := _NAMED.fullmatch(text)):
                speaker, text = found["name"].strip(), found["text"]
            if text:
                yield cue._replace(speaker=speaker, text=text)


def _cues(file: File) -> Iterator[Cue | Rejected]:
    """The subtitles as they stand there."""
    cue: Cue | None = None
    said: list[str] = []
    stray: Rejected | None = None
    skipping = False
    with file.open() as stream:
        for number, line in lines(stream, file.where):
            if isinstance(line, Rejected):
                yield line
                continue
            timing = _TIMING.fullmatch(line)
            # A line of blanks ends nothing before something was said: captions made by machine begin with one.
            if timing is not None or not (line if cue is not None and not said else line.strip()):
                if cue is not None:
                    yield cue._replace(text="\n".join(said))
                if stray is not None and timing is None:
                    yield stray
                cue, said, stray, skipping = None, [], None, False
            source = Source(file=file.where, position=str(number))
            if timing is not None:
                told = timing.groups()
                cue = Cue(number, _seconds(told[:4]), _seconds(told[4:]), None, "")
            elif cue is not None:
                if len(said) < _MOST_LINES:
                    said.append(line)
            elif "-->" in line:
                yield rejected(source, f"no time: {line.strip()[:60]!r}")
                skipping = True
            elif line.strip() and not skipping:
                skipping = line.startswith(_SECTIONS)
                # A number or a name may stand above a time.
                stray = None if skipping or line.strip().isdecimal() else rejected(source, "a text without a time")
    if cue is not None:
        yield cue._replace(text="\n".join(said))


def _seconds(told: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, parts = (one or "0" for one in told)
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + int(parts.ljust(3, "0")) / 1000


def _clean(text: str) -> str:
    return " ".join(html.unescape(_TAG.sub("", text)).split())


def _events(cues: Iterator[Cue | Rejected], path: Path, file: File, begun: Beginning) -> Iterator[Record]:
    keys = ContentKeys()
    said: Cue | None = None
    first: float | None = None
    for cue in cues:
        if isinstance(cue, Rejected):
            yield cue
            continue
        first = cue.start if first is None else first
        if said is not None and _goes_on(said, cue):
            said = said._replace(end=cue.end, text=f"{said.text} {cue.text}")
            continue
        if said is not None:
            yield _event(said, path, file, begun, first, keys)
        said = cue
    if said is not None:
        yield _event(said, path, file, begun, first or 0.0, keys)


def _goes_on(said: Cue, cue: Cue) -> bool:
    if said.speaker != cue.speaker or said.turn != cue.turn or cue.start < said.start:
        return False
    length = len(said.text)
    is_done = length + len(cue.text) > _MOST or (length >= _ENOUGH and said.text.endswith(_ENDS))
    return cue.start - said.end <= _PAUSE and not is_done


def _event(cue: Cue, path: Path, file: File, begun: Beginning, first: float, keys: ContentKeys) -> Record:
    occurred_at = None
    offset = cue.start - first if cue.is_clock else cue.start
    if begun.at is not None:
        start = begun.at.replace(hour=0, minute=0, second=0) if cue.is_clock else begun.at
        occurred_at = start + timedelta(seconds=cue.start)
    fields = {
        "content": " ".join(cue.text.split()) if not cue.turn else cue.text,
        "role": cue.speaker,
        "occurred_at": occurred_at,
        "session": begun.session,
        "metadata": {"offset": round(offset, 3)},
    }
    return record(fields, Source(file=file.where, position=str(cue.line)), keys)
