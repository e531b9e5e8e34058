"""Split of a chat into sessions at long gaps.

A session is named after its channel (else its file) and its first day, with a number from the second of that day on:
``Rowing Club 2024-05-01``, ``Rowing Club 2024-05-01/2``.

A message without an id gets one from channel, time, speaker and text, not from its session. So an overlapping export
identifies the same message, wherever that export begins.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import datetime, timedelta, tzinfo
from pathlib import PurePath

from zettel.model import Event, storable

from . import GapFormat
from .records import ContentKeys
from .sources import TranscriptPart

DEFAULT_GAP = timedelta(hours=6)
"""The default gap between sessions: longer than a meeting, shorter than a night."""

SERVER, CHANNEL = "server", "channel"
"""Metadata keys of the server and channel of a message."""

_COPY = re.compile(r"[ _-]*(\(\d{1,3}\)|\d)$")  # a suffix of copied files
_NAME_CHARACTERS = 200  # of a place in a session's name


class SessionSplitter:
    """Assigns the messages of one part, in order, to sessions. A message with a session keeps it."""

    def __init__(self, gap: timedelta, file: str, zone: tzinfo) -> None:
        self._gap = gap
        self._file = file
        self._zone = zone
        self._keys = ContentKeys()
        self._last: dict[str, tuple[datetime, str]] = {}  # by place: the last message's time and session
        self._begun: Counter[str] = Counter()

    @classmethod
    def for_part(cls, part: TranscriptPart, gap: timedelta | None, zone: tzinfo) -> SessionSplitter | None:
        """Return the splitter of a part: by ``gap``, else ``DEFAULT_GAP`` for a format with ``gaps = True``.

        A gap of zero makes no sessions.
        """
        if gap is None and not (isinstance(part.format, GapFormat) and part.format.gaps):
            return None
        return cls(DEFAULT_GAP if gap is None else gap, PurePath(part.where).stem, zone)

    def assign(self, event: Event) -> Event:
        """Return the event with its session and id."""
        if event.session is not None or event.occurred_at is None:
            return event
        place = channel_of(event)
        changed: dict[str, str] = {}
        if event.external_id is None:
            key_parts = json.dumps(
                [_COPY.sub("", place or ""), event.occurred_at.isoformat(), event.title, event.payload]
            )
            changed["external_id"] = self._keys.key(key_parts, event.speaker, event.content)
        if self._gap:
            changed["session"] = self._session((place or self._file)[:_NAME_CHARACTERS], event.occurred_at)
        return event.model_copy(update=changed)

    def _session(self, place: str, at: datetime) -> str:
        last = self._last.get(place)
        if last is not None and abs(at - last[0]) <= self._gap:
            name = last[1]
        else:
            day = f"{place} {_day(at, self._zone)}"
            self._begun[day] += 1
            name = day if self._begun[day] == 1 else f"{day}/{self._begun[day]}"
        self._last[place] = (at, name)
        return name


def channel_of(event: Event) -> str | None:
    """Return ``server/channel`` of an event from its metadata, or None."""
    named = [event.metadata.get(key) for key in (SERVER, CHANNEL)]
    place = "/".join(name for name in named if isinstance(name, str))
    try:
        return storable(place) or None
    except ValueError:  # invalid as a session
        return None


def _day(at: datetime, zone: tzinfo) -> str:
    try:
        return at.astimezone(zone).date().isoformat()
    except OverflowError:  # the first or last day of the calendar
        return at.date().isoformat()
