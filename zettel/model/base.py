"""Constraints, times and the base class that all values share."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

MAX_CONTENT_BYTES = 1_000_000
"""Longest content of one event, in UTF-8 bytes: beyond it, a file was pasted where a message belongs."""

MAX_NESTING = 100
"""Deepest list or object inside a payload or metadata: readers of JSON give up not far beyond."""

MAX_DIGITS = 4000
"""Longest whole number in a payload or metadata: Python reads no number of more than 4,300 digits."""

TIME_MIN = -(2**62)
"""Stands for "always was" where a time in microseconds must not be null."""

TIME_MAX = 2**62
"""Stands for "never ends" where a time in microseconds must not be null."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_MICROSECOND = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970-01-01 UTC, exactly; a naive ``moment`` is taken as UTC."""
    return (in_utc(moment) - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The inverse of :func:`to_micros`."""
    return _EPOCH + timedelta(microseconds=micros)


def in_utc(moment: datetime) -> datetime:
    """The same moment in UTC; a naive one is taken as UTC."""
    if moment.tzinfo is timezone.utc:
        return moment
    if moment.tzinfo is None:
        return moment.replace(tzinfo=timezone.utc)
    try:
        return moment.astimezone(timezone.utc)
    except OverflowError:  # year 1 or 9999 shifted out of the calendar
        raise ValueError(f"{moment.isoformat()} lies outside the calendar in UTC") from None


def in_own_zone(moment: datetime) -> datetime:
    """The moment as it is, a naive one in UTC. Raises ``ValueError`` where UTC has no such moment."""
    utc = in_utc(moment)
    return utc if moment.tzinfo is None else moment


def storable(text: str) -> str:
    """The text, or ``ValueError`` if it holds what no store can keep."""
    if "\x00" in text:
        raise ValueError("holds a NUL character")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"holds a lone surrogate at character {error.start}") from None
    return text


_NO_YEAR = 100_000_000
"""Seconds since 1970 that any number has which is meant: smaller ones are years and days, such as 20240501."""


def _no_bare_number(moment: Any) -> Any:
    # Read as seconds since 1970, "2024" and 20240501 would be moments of that year.
    is_small = isinstance(moment, (int, float)) and abs(moment) < _NO_YEAR
    is_written = isinstance(moment, str) and moment.strip().lstrip("+-").replace(".", "", 1).isdecimal()
    if is_small or is_written:
        raise ValueError(f"{moment!r} is a number, not a time: use ISO 8601 such as 2024-05-01T09:00Z")
    return moment


def _short(name: str) -> str:
    if len(name) > MAX_NAME:
        raise ValueError(f"holds {len(name):,} characters, and a name at most {MAX_NAME:,}")
    return name


MAX_NAME = 1000
"""Characters of what things are looked up by as a whole: more than any index of names takes would be 8,000 bytes."""

Text = Annotated[str, AfterValidator(storable)]

Name = Annotated[Text, AfterValidator(_short)]

Moment = Annotated[datetime, BeforeValidator(_no_bare_number), AfterValidator(in_utc)]

LocalMoment = Annotated[datetime, BeforeValidator(_no_bare_number), AfterValidator(in_own_zone)]
"""A moment whose day counts too, which is another one in another zone."""


class Frozen(BaseModel):
    """A value: never changed in place, and strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")
