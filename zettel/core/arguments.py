"""Validation of arguments: each function returns the checked value or raises one clear error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from pydantic import BaseModel, TypeAdapter, ValidationError

from zettel.core.own_names import field_meant, scope_meant
from zettel.core.present import present
from zettel.errors import EventDeleted, InvalidEvent, InvalidInput, NotFound
from zettel.model import (
    MAX_CONTENT_BYTES,
    MAX_DIGITS,
    MAX_NAME,
    MAX_NESTING,
    Event,
    LinkType,
    LocalMoment,
    Moment,
    Remembered,
    Scope,
    event_text,
    storable,
)

_moment: TypeAdapter[datetime] = TypeAdapter(Moment)
_local: TypeAdapter[datetime] = TypeAdapter(LocalMoment)

Item = TypeVar("Item")

Time = datetime | str
"""A datetime or ISO 8601 text. A naive time counts as UTC."""


Duration = timedelta | float
"""A timedelta or a number of seconds."""

LONGEST_SECONDS = 100 * 366 * 86_400
"""Longest duration, so that dates do not overflow."""

MOST = 2**62
"""The upper bound of counts, seconds and cursors."""
MAX_SCOPES = 50
"""Most scopes in one search."""
_MAX_PATH_PARTS = 4
"""Parts of a nested field's path in an error message."""
_MAX_BITS = math.ceil(MAX_DIGITS * math.log2(10))


def moment_of(name: str, value: Time | None, *, local: bool = False) -> datetime | None:
    """Return ``value`` in UTC, or unchanged if its local day counts (``local``). Raises ``InvalidInput``."""
    if value is None:
        return None
    try:
        return (_local if local else _moment).validate_python(value)
    except ValidationError:
        raise InvalidInput(
            f"{name}={value!r} is not a time: use a datetime or ISO 8601 such as 2024-05-01T09:00Z"
        ) from None


def zone_of(name: str | None) -> tzinfo | None:
    """Return the time zone with this IANA name, None for None. Raises ``InvalidInput``."""
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError):  # no such zone; a name like ../x; a folder of zones; no text
        raise InvalidInput(f"unknown time zone {name!r}: use an IANA name such as Europe/Oslo") from None


def whole_number(name: str, value: int) -> int:
    """Return ``value``, at most ``MOST``. Raises ``InvalidInput`` unless it is an int of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput(f"{name}={value!r} is not a whole number")
    if value < 1:
        raise InvalidInput(f"{name}={value} must be 1 or more")
    return min(value, MOST)


def seconds(name: str, value: float | None) -> float | None:
    """Return a number of seconds, at most ``MOST``, or None. Raises ``InvalidInput``."""
    if value is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool) or math.isnan(value):
        raise InvalidInput(f"{name}={value!r} must be a number of seconds, or None for no limit")
    return min(value, MOST)


def seconds_of(name: str, value: Duration | None) -> float | None:
    """Return the seconds of a duration, or None. Raises ``InvalidInput`` unless it is longer than 0."""
    if value is None:
        return None
    length = value.total_seconds() if isinstance(value, timedelta) else value
    if not isinstance(length, (int, float)) or isinstance(length, bool) or not 0 < length <= LONGEST_SECONDS:
        raise InvalidInput(
            f"{name}={value!r} must be a timedelta or a number of seconds above 0 and below {LONGEST_SECONDS:,}"
        )
    return float(length)


def expiry_of(expires_at: Time | None, ttl: Duration | None) -> datetime | None:
    """Return the time at which a new event expires, from a time or a time to live. Raises ``InvalidInput``."""
    length, moment = seconds_of("ttl", ttl), moment_of("expires_at", expires_at)
    now = present()
    if length is not None and moment is not None:
        raise InvalidInput("pass expires_at or ttl, not both: an event expires once")
    if moment is not None and moment <= now:
        raise InvalidInput(f"expires_at={moment.isoformat()} is in the past: use a later time, or leave the event out")
    return moment if length is None else now + timedelta(seconds=length)


def share(name: str, value: float | None) -> float | None:
    """Return a number from 0 to 1, or None. Raises ``InvalidInput``."""
    if value is not None and not (isinstance(value, (int, float)) and 0 <= value <= 1):
        raise InvalidInput(f"{name}={value!r} must be a number from 0 to 1")
    return value


def require_tokens(max_tokens: int) -> None:
    """Raise ``InvalidInput`` unless ``max_tokens`` is an int of at least 1."""
    if not isinstance(max_tokens, int) or max_tokens < 1:
        raise InvalidInput(f"max_tokens={max_tokens!r} must be a whole number of at least 1")


def cursor_of(value: str | None) -> int:
    """Return the position that a cursor encodes. Raises ``InvalidInput``."""
    if value is None:
        return 0
    is_number = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(MOST))
    if not (is_number and int(value) <= MOST):
        raise InvalidInput(f"{value!r} is not a cursor: pass the cursor of the previous page")
    return int(value)


def require_storable(name: str, text: str | None) -> None:
    """Raise ``InvalidInput`` unless ``text`` is None or text that a store accepts."""
    if text is not None:
        require_text(name, text)


def require_text(name: str, text: str) -> None:
    """Raise ``InvalidInput`` unless ``text`` is text that a store accepts."""
    if not isinstance(text, str):
        raise InvalidInput(f"{name} must be a str, not {type(text).__name__}")
    try:
        storable(text)
    except ValueError as error:
        raise InvalidInput(f"{name}: {error}") from None


def require_text_id(scope: object, id: str) -> None:
    """Raise ``NotFound`` unless ``id`` is text."""
    if not isinstance(id, str):
        raise NotFound(scope, [id], f"an id must be a str such as n_1f2e, not {type(id).__name__}")


def require_id(scope: object, id: str) -> None:
    """Raise ``NotFound`` unless ``id`` is ASCII text, as every id that zettel made is."""
    require_text_id(scope, id)
    if not id.isascii():
        raise NotFound(scope, [id])


def names_of(name: str, values: Iterable[str] | str | None) -> list[str]:
    """Return one name or several as a list; None gives an empty list. Raises ``InvalidInput``."""
    return [] if values is None else [values] if isinstance(values, str) else list_of(name, values, "names")


def list_of(name: str, values: Iterable[Item], items: str) -> list[Item]:
    """Return the values as a list. Raises ``InvalidInput`` unless they are iterable, also for a single item."""
    if isinstance(values, (str, bytes, Mapping, BaseModel)):
        raise InvalidInput(f"{name} must be a list of {items}, not {type(values).__name__}: put a single one in [ ]")
    if not isinstance(values, Iterable):
        raise InvalidInput(f"{name} must be a list of {items}, not {type(values).__name__}")
    return [*values]


def require_path(name: str, path: str | Path) -> Path:
    """Return the path. Raises ``InvalidInput`` if it cannot be one, for example because it is too long."""
    if not isinstance(path, (str, Path)):
        raise InvalidInput(f"{name} must be a path, not {type(path).__name__}: name a file or a folder")
    try:
        Path(path).exists()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
    return Path(path)


def require_reason(reason: str) -> None:
    """Raise ``InvalidInput`` unless ``reason`` can be stored as the reason of a change."""
    require_text("reason", reason)
    require_size(reason, "reason")


def require_one(choice: str, *values: str | None) -> None:
    """Raise ``InvalidInput`` unless exactly one of the values of a ``choice`` is given, as text."""
    given = [value for value in values if value is not None]
    if len(given) != 1:
        raise InvalidInput(f"pass exactly one of {choice}")
    if not isinstance(given[0], str):
        raise InvalidInput(f"{choice} must be a str, not {type(given[0]).__name__}")


def require_name(name: str, text: str) -> None:
    """Raise ``InvalidInput`` unless ``text`` can be stored as a name: at most ``MAX_NAME`` characters."""
    require_storable(name, text)
    if len(text) > MAX_NAME:
        raise InvalidInput(f"{name} has {len(text):,} characters: a name has at most {MAX_NAME:,}")


def scopes_of(scopes: Iterable[Scope]) -> list[Scope]:
    """Return the scopes of a search, each once. Raises ``InvalidInput`` for none, too many, or another type."""
    given = list_of("scopes", scopes, "scopes")
    for place in given:
        if not isinstance(place, Scope):
            raise InvalidInput(
                f"scopes contains {_named(place)}: pass Scope(tenant=…, user=…, agent=…) each"
            )
    places = list(dict.fromkeys(given))
    if not 0 < len(places) <= MAX_SCOPES:
        raise InvalidInput(f"scopes has {len(places)} scopes: a search reads 1 to {MAX_SCOPES}")
    return places


def link_type_of(value: LinkType | str, allowed: Iterable[LinkType]) -> LinkType:
    """Return one of the ``allowed`` types, whose case does not matter. Raises ``InvalidInput``."""
    for kind in allowed:
        if isinstance(value, str) and value.upper() == kind.value:
            return kind
    raise InvalidInput(f"type={value!r} must be one of {', '.join(kind.value for kind in allowed)}")


def require_keepable(name: str, value: Any) -> None:
    """Raise ``InvalidInput`` for JSON that a store cannot return exactly: nan, huge numbers, deep nesting."""
    todo: list[tuple[Any, int]] = [(value, 1)]
    while todo:
        item, depth = todo.pop()
        if isinstance(item, (dict, list, tuple)):
            if depth > MAX_NESTING:
                raise InvalidInput(f"{name}: is nested more than {MAX_NESTING} levels deep")
            todo.extend((inner, depth + 1) for inner in (item.values() if isinstance(item, dict) else item))
        elif isinstance(item, float) and not math.isfinite(item):
            raise InvalidInput(f"{name}: contains {item}, which is not a JSON value")
        elif isinstance(item, int) and item.bit_length() > _MAX_BITS:
            raise InvalidInput(f"{name}: contains a number of more than {MAX_DIGITS} digits")


def require_metadata(metadata: Any) -> None:
    """Raise ``InvalidInput`` for metadata that a store cannot return exactly, or a filter cannot match."""
    require_keepable("metadata", metadata)
    for text in metadata if isinstance(metadata, dict) else ():
        for part in (text, metadata[text]):
            if isinstance(part, str):
                require_storable("metadata", part)


def checked_events(events: Iterable[Event | Mapping[str, Any]]) -> list[Event]:
    """Return valid events. Raises ``InvalidEvent``, which names an unknown field and the place of its event."""
    given = list_of("events", events, "events")
    return [checked(event, f"events[{place}]" if len(given) > 1 else "the event") for place, event in enumerate(given)]


def checked(event: Event | Mapping[str, Any], called: str = "the event") -> Event:
    """Return a valid event. Raises ``InvalidEvent``, which names the field and its fault."""
    if not isinstance(event, (Event, Mapping)):
        raise InvalidEvent(f"{called} must be an Event or a dict of its fields, not {type(event).__name__}")
    fields = {"payload": event.payload, "metadata": event.metadata} if isinstance(event, Event) else event
    try:
        require_keepable("payload", fields.get("payload"))
        require_metadata(fields.get("metadata"))
        event = event if isinstance(event, Event) else Event.model_validate(event)
    except InvalidInput as error:
        raise InvalidEvent(f"{called} cannot be stored: {error}") from None
    except ValidationError as error:
        _require_event_fields(called, fields)
        raise InvalidEvent(f"{called} cannot be stored: {first_complaint(error)}") from None
    if not event.content.strip() and event.payload is None:
        raise InvalidEvent(f"{called} is empty: give it content or a payload")
    require_size(event_text(event))
    for name in ("external_id", "title", "speaker"):
        require_size(getattr(event, name) or "", name)
    return event


def _require_event_fields(called: str, fields: Mapping[str, Any]) -> None:
    known = ["id", *Event.model_fields]
    for field in fields:
        if field not in known:
            scope, own = scope_meant(field), field_meant(field, known)
            cure = f"pass {scope} to the method" if scope else f"name it {own}" if own else (
                f"an event has {', '.join(known)}; metadata may contain names of your own"
            )  # fmt: skip
            raise InvalidEvent(f"{called} has the field {field!r}: {cure}") from None


def require_size(text: str, name: str = "content") -> None:
    """Raise ``InvalidEvent`` for a text over ``MAX_CONTENT_BYTES``."""
    size = len(text.encode())
    if size > MAX_CONTENT_BYTES:
        way_out = "split it into several events" if name == "content" else "make it shorter"
        raise InvalidEvent(f"the {name} has {size:,} bytes, more than {MAX_CONTENT_BYTES:,}: {way_out}")


def first_complaint(error: ValidationError) -> str:
    """Return the first error of a validation as one line: the field and its fault."""
    complaint = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in complaint["loc"][:_MAX_PATH_PARTS]) or "value"
    if complaint["type"].startswith("datetime_"):  # pydantic describes these character by character
        return f"{where}: {complaint['input']!r} is not a time: use ISO 8601 such as 2024-05-01T09:00Z"
    return f"{where}: {complaint['msg'].removeprefix('Value error, ')}"


def require_named_parts(scope: Scope) -> None:
    """Raise ``InvalidInput`` for a scope with an empty name, which is usually a variable that was not set.

    Stores of older versions may have such scopes: they can be read and deleted, but not extended.
    """
    for part, name in scope.model_dump().items():
        if name == "":
            raise InvalidInput(f"the {part} of the scope is empty: write a name, or leave {part}= out")


def require_scope(scope: Scope | None) -> None:
    """Raise ``InvalidInput`` unless ``scope`` is a ``Scope`` or None."""
    if scope is not None and not isinstance(scope, Scope):
        raise InvalidInput(f"scope={_named(scope)} is not a Scope: use Scope(user=...)")


def _named(value: object) -> str:
    """Return a short text as it is written, and of other values only the type: errors must not repeat content."""
    return repr(value) if isinstance(value, str) and len(value) <= MAX_NAME else f"<{type(value).__name__}>"


def head_of(event: Event, outcome: Remembered) -> str:
    """The id of the event's head note. Raises ``EventDeleted``."""
    if outcome.id is None:
        id = event.external_id
        name, other = ("this event", "an") if id is None else (f"the event with id {id!r}", "another")
        raise EventDeleted(
            f"{name} was deleted from this scope and is not added again: to add it nevertheless, give it {other} id"
        )
    return outcome.id
