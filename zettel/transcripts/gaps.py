"""Sessions of messages that have none of their own: a long silence ends one.

A session is called by its place and the day on which it began, the second of a day with a number: ``Rowing Club
2024-05-01``, ``Rowing Club 2024-05-01/2``. Places are the channels that messages tell in their metadata, else the file.

What such messages are known by must not depend on where an export begins. So one without an id gets one, made of its
place, time, speaker and words and not of its session: an overlapping export finds it again, whatever session it has.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import datetime, timedelta, tzinfo
from pathlib import PurePath

from zettel.model import Event, storable

from .parts import Part
from .records import ContentKeys

USUAL_GAP = timedelta(hours=6)
"""A silence that ends a session of a chat: longer than a meal or a meeting, and shorter than a night."""

SERVER, CHANNEL = "server", "channel"
"""The keys in an event's metadata that say where it was said."""

_COPY = re.compile(r"[ _-]*(\(\d{1,3}\)|\d)$")  # put behind the name of a file that is there already
_NAME_CHARACTERS = 200  # of a place in a session's name: more would be no name any store keeps


class Gaps:
    """Puts the messages of one part, in their order, into sessions; those that have one keep it."""

    def __init__(self, gap: timedelta, file: str, zone: tzinfo) -> None:
        self._gap = gap
        self._file = file
        self._zone = zone
        self._keys = ContentKeys()
        self._last: dict[str, tuple[datetime, str]] = {}  # by place: the last message's time and session
        self._begun: Counter[str] = Counter()

    @classmethod
    def of(cls, part: Part, gap: timedelta | None, zone: tzinfo) -> Gaps | None:
        """Those of a part: by ``gap`` if there is one, else ``USUAL_GAP`` for a format with ``gaps = True``.

        A gap of zero makes no sessions.
        """
        if gap is None and not getattr(part.format, "gaps", False):
            return None
        return cls(USUAL_GAP if gap is None else gap, PurePath(part.where).stem, zone)

    def placed(self, event: Event) -> Event:
        """The event, in its session."""
        if event.session is not None or event.occurred_at is None:
            return event
        place = place_of(event)
        changed: dict[str, str] = {}
        if event.id is None:
            told = json.dumps([_COPY.sub("", place or ""), event.occurred_at.isoformat(), event.title, event.payload])
            changed["id"] = self._keys.key(told, event.role, event.content)
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


def place_of(event: Event) -> str | None:
    """The channel in which it was said, with its server, if its metadata tell one."""
    named = [event.metadata.get(key) for key in (SERVER, CHANNEL)]
    place = "/".join(name for name in named if isinstance(name, str))
    try:
        return storable(place) or None
    except ValueError:  # what no session can be called
        return None


def _day(at: datetime, zone: tzinfo) -> str:
    try:
        return at.astimezone(zone).date().isoformat()
    except OverflowError:  # the first or last day of the calendar
        return at.date().isoformat()
