"""What callers hand in, as what the engine works with, or one clear line about what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from zettel.errors import InvalidEvent, InvalidInput, WasDeleted
from zettel.model import MAX_CONTENT_BYTES, Event, Kind, Moment, Remembered, as_metadata_pairs, to_micros
from zettel.ports import Filter

_moment: TypeAdapter[datetime] = TypeAdapter(Moment)

Time = datetime | str
"""A moment: a datetime or an ISO 8601 text; a naive one is taken as UTC."""


def moment_of(name: str, value: Time | None) -> datetime | None:
    if value is None:
        return None
    try:
        return _moment.validate_python(value)
    except ValidationError:
        raise InvalidInput(
            f"{name}={value!r} is not a time: use a datetime or ISO 8601 such as 2024-05-01T09:00Z"
        ) from None


def filter_of(
    kinds: Iterable[Kind | str] | None,
    tags: Iterable[str] | None,
    session: str | None,
    role: str | None,
    since: Time | None,
    until: Time | None,
    metadata: Mapping[str, Any] | None,
) -> Filter:
    try:
        chosen = tuple(Kind(kind).value for kind in kinds or ())
    except ValueError as error:
        raise InvalidInput(f"{error}: use {', '.join(kind.value for kind in Kind)}") from None
    start, end = moment_of("since", since), moment_of("until", until)
    return Filter(
        kinds=chosen,
        tags=tuple(tags or ()),
        session=session,
        role=role,
        since=None if start is None else to_micros(start),
        until=None if end is None else to_micros(end),
        metadata=as_metadata_pairs(metadata or {}),
    )


def checked(event: Event | dict[str, Any]) -> Event:
    """The event, or ``InvalidEvent`` in one line that names the field and what is wrong with it."""
    try:
        event = Event.model_validate(event)
    except ValidationError as error:
        raise InvalidEvent(f"the event cannot be stored: {first_complaint(error)}") from None
    if not event.content.strip() and event.payload is None:
        raise InvalidEvent("the event says nothing: give it content, or a payload")
    size = len(event.content.encode())
    if size > MAX_CONTENT_BYTES:
        raise InvalidEvent(
            f"the content has {size:,} bytes, more than {MAX_CONTENT_BYTES:,}: split it into several events"
        )
    return event


def first_complaint(error: ValidationError) -> str:
    """The first thing pydantic complains of, as one line: the field and what is wrong with it."""
    complaint = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in complaint["loc"]) or "value"
    return f"{where}: {complaint['msg'].removeprefix('Value error, ')}"


def head_of(event: Event, outcome: Remembered) -> str:
    """The id of the event's head note. Raises ``WasDeleted``."""
    if outcome.id is None:
        raise WasDeleted(
            f"the event with id {event.id!r} was deleted from this scope and is not revived: "
            "give it another id to remember it again"
        )
    return outcome.id
