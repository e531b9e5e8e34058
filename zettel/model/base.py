"""Size limits, conversions of times, and the base class of all values."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

MAX_CONTENT_BYTES = 1_000_000
"""Maximum size of the content of one event, in UTF-8 bytes. Longer content is usually a pasted file."""

MAX_NESTING = 100
"""Maximum nesting depth of lists and objects in a payload or metadata. Most JSON parsers fail soon after it."""

MAX_DIGITS = 4000
"""Maximum number of digits of an integer in a payload or metadata. Python itself parses at most 4,300 digits."""

TIME_MIN = -(2**62)
"""Means "no start" or "unknown" where a time in microseconds must not be null."""

TIME_MAX = 2**62
"""Means "no end" where a time in microseconds must not be null."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_MICROSECOND = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Return the exact number of microseconds since 1970-01-01 UTC; a naive ``moment`` is read as UTC."""
    return (in_utc(moment) - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the UTC time of a number of microseconds since 1970-01-01; the inverse of ``to_micros``."""
    return _EPOCH + timedelta(microseconds=micros)


def in_utc(moment: datetime) -> datetime:
    """Return the moment in UTC; a naive moment is read as UTC. Raises ``ValueError`` outside the years 1 to 9999."""
    if moment.tzinfo is timezone.utc:
        return moment
    if moment.tzinfo is None:
        return moment.replace(tzinfo=timezone.utc)
    try:
        return moment.astimezone(timezone.utc)
    except OverflowError:  # year 1 or 9999 shifted out of the calendar
        raise ValueError(f"{moment.isoformat()} is before year 1 or after year 9999 in UTC") from None


def in_own_zone(moment: datetime) -> datetime:
    """Return the moment in its own time zone, a naive moment in UTC. Raises ``ValueError`` as ``in_utc`` does."""
    utc = in_utc(moment)
    return utc if moment.tzinfo is None else moment


def storable(text: str) -> str:
    """Return the text. Raises ``ValueError`` for characters that stores reject: NUL and lone surrogates."""
    if "\x00" in text:
        raise ValueError("contains a NUL character")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"contains a lone surrogate at character {error.start}") from None
    return text


_MIN_TIMESTAMP = 100_000_000
"""Smallest number that is read as seconds since 1970; smaller numbers are years or dates such as 20240501."""


def _reject_numeric_date(moment: Any) -> Any:
    # As seconds since 1970, "2024" and 20240501 would be times in 1970.
    is_small = isinstance(moment, (int, float)) and abs(moment) < _MIN_TIMESTAMP
    is_numeric_text = isinstance(moment, str) and moment.strip().lstrip("+-").replace(".", "", 1).isdecimal()
    if is_small or is_numeric_text:
        raise ValueError(f"{moment!r} is a number, not a time: use ISO 8601 such as 2024-05-01T09:00Z")
    return moment


def _limit_length(name: str) -> str:
    if len(name) > MAX_NAME:
        raise ValueError(f"has {len(name):,} characters: a name has at most {MAX_NAME:,}")
    return name


MAX_NAME = 1000
"""Maximum length of a lookup key such as a session or a file name, in characters. Neo4j indexes at most 8,000 bytes."""

Text = Annotated[str, AfterValidator(storable)]

Name = Annotated[Text, AfterValidator(_limit_length)]

Moment = Annotated[datetime, BeforeValidator(_reject_numeric_date), AfterValidator(in_utc)]

LocalMoment = Annotated[datetime, BeforeValidator(_reject_numeric_date), AfterValidator(in_own_zone)]
"""A moment that keeps its time zone, because the calendar day depends on the zone."""


class Frozen(BaseModel):
    """The base class of all values: immutable, and rejects unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")
