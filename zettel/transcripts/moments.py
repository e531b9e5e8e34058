"""Moments as programs write them: numbers of seconds, or parts of them, since 1970, and ISO 8601."""

from __future__ import annotations

from datetime import datetime, timezone, tzinfo
from typing import Any

from zettel.arguments import moment_of
from zettel.errors import InvalidInput

from . import written_times

_MOST_SECONDS = 10**11
"""Since 1970: what is more counts parts of seconds."""


def unix_time(seconds: Any) -> datetime | None:
    """The moment that many seconds after the beginning of 1970 (UTC), None for None; else ``ValueError``."""
    if seconds is None:
        return None
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool):
        try:
            return datetime.fromtimestamp(seconds, timezone.utc)
        except (OverflowError, OSError, ValueError):
            pass
    raise ValueError(f"{str(seconds)[:40]!r} is no time in seconds since 1970")


def iso_time(text: Any) -> datetime | None:
    """The moment an ISO 8601 text tells, in UTC where it names no zone, None for None; else ``ValueError``."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError(f"{str(text)[:40]!r} is no time as ISO 8601 has them")
    try:
        return moment_of("time", text)
    except InvalidInput:
        raise ValueError(f"{text[:40]!r} is no time as ISO 8601 has them") from None


def any_time(told: Any, zone: tzinfo = timezone.utc) -> datetime | None:
    """The moment that a number of seconds, milliseconds or less since 1970 or an ISO 8601 text tells.

    A text that names no zone is of ``zone``. ``ValueError`` for anything else.
    """
    if isinstance(told, str):
        moment = iso_time(told)
        return None if moment is None else in_zone(told, moment, zone)
    parts = isinstance(told, (int, float)) and told >= _MOST_SECONDS
    return (written_times.moment(told) if parts else None) or unix_time(told)


def in_zone(told: datetime | str, moment: datetime, zone: tzinfo) -> datetime:
    """The ``moment`` that was ``told``, which is read as UTC where it names no zone, in ``zone`` there."""
    if _names_zone(told):
        return moment
    try:
        return moment.replace(tzinfo=zone).astimezone(timezone.utc)
    except OverflowError:  # the first or last day of the calendar
        return moment


def _names_zone(told: datetime | str) -> bool:
    if isinstance(told, datetime):
        return told.tzinfo is not None
    # A zone stands behind the time of day, as Z, +02:00 or -0500; the signs in a date stand before it.
    clock = told.strip().replace(" ", "T").partition("T")[2]
    return any(sign in clock for sign in "zZ+-")
