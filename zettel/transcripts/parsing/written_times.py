"""Parser for times in the forms that people and programs write.

ISO 8601 in its usual forms; seconds, milliseconds, microseconds or nanoseconds since 1970; digits alone
(``202405010900``); days with dots (``1.5.2024 09:00``, always the first of May); the dates of e-mail; ``9:05 PM``
as well as ``21:05``. Ambiguous days such as ``1/5/2024`` and unknown zone names are not parsed.
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
"""Least number and units per second: 10^11 seconds would be in the year 5138."""


def moment(raw: Any, zone: tzinfo = timezone.utc) -> datetime | None:
    """Parse a time to UTC, in ``zone`` if it names none; None if it is not a time."""
    if isinstance(raw, datetime):
        return _in_utc(raw, zone)
    if isinstance(raw, date):
        return _in_utc(datetime(raw.year, raw.month, raw.day), zone)
    if isinstance(raw, float):
        return _since_epoch(f"{raw:.6f}")
    if isinstance(raw, int) and not isinstance(raw, bool):
        raw = str(raw) if 0 < raw < 10**20 else ""
    if not isinstance(raw, str) or len(raw) > _LONGEST:
        return None
    raw = " ".join(raw.split())  # newer programs put fixed blanks before AM and PM
    if not raw.isascii():
        return None
    raw = _CLOCK.sub(_of_24_hours, raw, count=1)
    return _compact(raw, zone) or _since_epoch(raw) or _iso(raw, zone) or _dotted(raw, zone) or _mailed(raw, zone)


def _of_24_hours(clock: re.Match[str]) -> str:
    hour, rest, half = int(clock[1]), clock[2], (clock[3] or "").lower()
    if half and 1 <= hour <= 12:
        hour = hour % 12 + (12 if half == "p" else 0)
    return f"{hour:02d}{rest}"


def _compact(raw: str, zone: tzinfo) -> datetime | None:
    if not _COMPACT.fullmatch(raw):
        return None
    try:
        return _in_utc(datetime.strptime(raw, _COMPACT_FORMATS[len(raw)]), zone)
    except ValueError:
        return None


def _since_epoch(raw: str) -> datetime | None:
    number = _NUMBER.fullmatch(raw)
    if number is None:
        return None
    number_part, fraction = int(number[1]), number[2] or ""
    parts = next(parts for least, parts in _UNITS if number_part >= least)
    # In whole numbers: a float has too few digits for nanoseconds.
    micros = number_part * 1_000_000 // parts + (int(fraction[:6].ljust(6, "0")) // parts)
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None


def _iso(raw: str, zone: tzinfo) -> datetime | None:
    if not _LOOKS_ISO.match(raw):
        return None
    # Some put a space before the zone, write "UTC" for it, or leave out its minutes.
    raw = re.sub(r" ?(?:UTC|GMT)$", "Z", raw.replace("/", "-"))
    raw = re.sub(r" ([+-]\d\d)", r"\1", raw)
    raw = re.sub(r"(:.*[+-]\d\d)$", r"\1:00", raw)
    try:
        return _in_utc(_ISO.validate_python(raw), zone)
    except ValidationError:
        return None


def _dotted(raw: str, zone: tzinfo) -> datetime | None:
    match = _DOTTED.fullmatch(raw)
    if match is None:
        return None
    day, month, year, clock = match.groups()
    hour, minute, second = ([int(part) for part in (clock or "0:0").split(":")] + [0])[:3]
    try:
        return _in_utc(datetime(int(year), int(month), int(day), hour, minute, second), zone)
    except ValueError:
        return None


def _mailed(raw: str, zone: tzinfo) -> datetime | None:
    raw = _NAMED_OFFSET.sub("", raw).replace(
        " -0000", " +0000"
    )  # mails write -0000 for UTC, but Python returns no zone
    try:
        moment = parsedate_to_datetime(raw)
        # The library returns no zone for unknown zone names too.
        return None if moment.tzinfo is None and _UNKNOWN_ZONE.search(raw) else _in_utc(moment, zone)
    except (TypeError, ValueError, IndexError, OverflowError):  # Python 3.10 raises TypeError
        return None


def _in_utc(moment: datetime, zone: tzinfo) -> datetime | None:
    try:
        return in_utc(moment if moment.tzinfo is not None else moment.replace(tzinfo=zone))
    except (ValueError, OverflowError):  # at the ends of the calendar
        return None
