"""Timestamps of programs: numbers since 1970 and ISO 8601."""

from __future__ import annotations

from datetime import datetime, timezone, tzinfo
from typing import Any

from zettel.core.arguments import moment_of
from zettel.errors import InvalidInput

from . import written_times

_MOST_SECONDS = 10**11
"""Seconds since 1970 at most; larger numbers count fractions of a second."""


def unix_time(seconds: Any) -> datetime | None:
    """Convert seconds since 1970 (UTC); None for None. Raises ``ValueError`` for anything else."""
    if seconds is None:
        return None
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool):
        try:
            return datetime.fromtimestamp(seconds, timezone.utc)
        except (OverflowError, OSError, ValueError):
            pass
    raise ValueError(f"{str(seconds)[:40]!r} is not a time in seconds since 1970")


def iso_time(text: Any) -> datetime | None:
    """Parse an ISO 8601 text, in UTC without a zone; None for None. Raises ``ValueError`` for anything else."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError(f"{str(text)[:40]!r} is not an ISO 8601 time")
    try:
        return moment_of("time", text)
    except InvalidInput:
        raise ValueError(f"{text[:40]!r} is not an ISO 8601 time") from None


def any_time(raw: Any, zone: tzinfo = timezone.utc) -> datetime | None:
    """Parse a number since 1970 (seconds to nanoseconds) or an ISO 8601 text, in ``zone`` if it names none.

    Raises ``ValueError`` for anything else.
    """
    if isinstance(raw, str):
        moment = iso_time(raw)
        return None if moment is None else in_zone(raw, moment, zone)
    parts = isinstance(raw, (int, float)) and raw >= _MOST_SECONDS
    return (written_times.moment(raw) if parts else None) or unix_time(raw)


def in_zone(raw: datetime | str, moment: datetime, zone: tzinfo) -> datetime:
    """Return ``moment``, the parsed ``raw`` time, in ``zone`` if ``raw`` names no zone."""
    if _names_zone(raw):
        return moment
    try:
        return moment.replace(tzinfo=zone).astimezone(timezone.utc)
    except OverflowError:  # the first or last day of the calendar
        return moment


def _names_zone(raw: datetime | str) -> bool:
    if isinstance(raw, datetime):
        return raw.tzinfo is not None
    # A zone such as Z, +02:00 or -0500 follows the time of day; a date before it may contain the same characters.
    clock = raw.strip().replace(" ", "T").partition("T")[2]
    return any(sign in clock for sign in "zZ+-")
