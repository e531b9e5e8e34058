"""Times in whatever form people and programs write them, read as moments.

ISO 8601 in its usual forms; seconds, milliseconds, microseconds or nanoseconds since 1970; digits alone
(``202405010900``); days with dots (``1.5.2024 09:00``, which is always the first of May); the dates of e-mail. What
could be two days, as ``1/5/2024``, is none of them, nor is what names a zone by letters that are not known. ``9:05 PM``
is told as well as ``21:05``.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate_to_datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from zettel.model import in_utc

_ISO: TypeAdapter[datetime] = TypeAdapter(datetime)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NUMBER = re.compile(r"(\d{9,19})(?:\.(\d+))?")
_COMPACT = re.compile(r"(?:19|20)\d{6}(?:\d{4}(?:\d{2})?)?")
_COMPACT_FORMATS = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_LOOKS_ISO = re.compile(r"\d{4}[-/]\d\d[-/]\d\d(?!\d)")
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:,? +(\d{1,2}:\d\d(?::\d\d)?))?")
_CLOCK = re.compile(r"(?<![\d:])(\d{1,2})(:\d\d(?::\d\d(?:[.,]\d+)?)?)(?: ?([ap])\.?m\b\.?)?", re.IGNORECASE)
_NAMED_OFFSET = re.compile(r"\b(?:GMT|UTC)(?=[+-]\d)")  # as JavaScript writes them
_UNKNOWN_ZONE = re.compile(r"\d:\d\d[^(]*[A-Za-z]")
_LONGEST = 80  # characters: no time is longer, with the zone's name in brackets
_UNITS = ((10**17, 10**9), (10**14, 10**6), (10**11, 10**3), (0, 1))
"""From which number on it counts what part of a second: 10^11 seconds would be in the year 5138."""


def moment(told: Any, zone: tzinfo = timezone.utc) -> datetime | None:
    """The moment that ``told`` names, in UTC, or None if it names none; one without a zone is of ``zone``."""
    if isinstance(told, datetime):
        return _in_utc(told, zone)
    if isinstance(told, date):
        return _in_utc(datetime(told.year, told.month, told.day), zone)
    if isinstance(told, float):
        return _since_epoch(f"{told:.6f}")
    if isinstance(told, int) and not isinstance(told, bool):
        told = str(told) if 0 < told < 10**20 else ""
    if not isinstance(told, str) or len(told) > _LONGEST:
        return None
    told = " ".join(told.split())  # newer programs put fixed blanks before AM and PM
    if not told.isascii():
        return None
    told = _CLOCK.sub(_of_24_hours, told, count=1)
    return _compact(told, zone) or _since_epoch(told) or _iso(told, zone) or _dotted(told, zone) or _mailed(told, zone)


def _of_24_hours(clock: re.Match[str]) -> str:
    hour, rest, half = int(clock[1]), clock[2], (clock[3] or "").lower()
    if half and 1 <= hour <= 12:
        hour = hour % 12 + (12 if half == "p" else 0)
    return f"{hour:02d}{rest}"


def _compact(told: str, zone: tzinfo) -> datetime | None:
    if not _COMPACT.fullmatch(told):
        return None
    try:
        return _in_utc(datetime.strptime(told, _COMPACT_FORMATS[len(told)]), zone)
    except ValueError:
        return None


def _since_epoch(told: str) -> datetime | None:
    number = _NUMBER.fullmatch(told)
    if number is None:
        return None
    whole, fraction = int(number[1]), number[2] or ""
    parts = next(parts for least, parts in _UNITS if whole >= least)
    # In whole numbers: a float has too few digits for nanoseconds.
    micros = whole * 1_000_000 // parts + (int(fraction[:6].ljust(6, "0")) // parts)
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None


def _iso(told: str, zone: tzinfo) -> datetime | None:
    if not _LOOKS_ISO.match(told):
        return None
    # Some put a space before the zone, write "UTC" for it, or leave out its minutes.
    told = re.sub(r" ?(?:UTC|GMT)$", "Z", told.replace("/", "-"))
    told = re.sub(r" ([+-]\d\d)", r"\1", told)
    told = re.sub(r"(:.*[+-]\d\d)$", r"\1:00", told)
    try:
        return _in_utc(_ISO.validate_python(told), zone)
    except ValidationError:
        return None


def _dotted(told: str, zone: tzinfo) -> datetime | None:
    match = _DOTTED.fullmatch(told)
    if match is None:
        return None
    day, month, year, clock = match.groups()
    hour, minute, second = ([int(part) for part in (clock or "0:0").split(":")] + [0])[:3]
    try:
        return _in_utc(datetime(int(year), int(month), int(day), hour, minute, second), zone)
    except ValueError:
        return None


def _mailed(told: str, zone: tzinfo) -> datetime | None:
    told = _NAMED_OFFSET.sub("", told).replace(" -0000", " +0000")  # which mails write for UTC, and Python for none
    try:
        moment = parsedate_to_datetime(told)
        # Of a zone that it does not know, the library tells as little as where none is named.
        return None if moment.tzinfo is None and _UNKNOWN_ZONE.search(told) else _in_utc(moment, zone)
    except (TypeError, ValueError, IndexError, OverflowError):  # Python 3.10 says TypeError for what is no date
        return None


def _in_utc(moment: datetime, zone: tzinfo) -> datetime | None:
    try:
        return in_utc(moment if moment.tzinfo is not None else moment.replace(tzinfo=zone))
    except (ValueError, OverflowError):  # at the ends of the calendar
        return None
