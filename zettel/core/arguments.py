"""What callers hand in, as what the engine works with, or one clear line about what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from zettel.errors import EventDeleted, InvalidEvent, InvalidInput, NotFound
from zettel.model import (
    MAX_CONTENT_BYTES,
    MAX_DIGITS,
    MAX_NAME,
    MAX_NESTING,
    ROLES,
    Event,
    Kind,
    LinkType,
    LocalMoment,
    Moment,
    Remembered,
    Role,
    Scope,
    as_metadata_pairs,
    said_by,
    storable,
    to_micros,
)
from zettel.ports.query import Filter

_moment: TypeAdapter[datetime] = TypeAdapter(Moment)
_local: TypeAdapter[datetime] = TypeAdapter(LocalMoment)

Item = TypeVar("Item")

Time = datetime | str
"""A moment: a datetime or an ISO 8601 text; a naive one is taken as UTC."""


MOST = 2**62
"""More notes than any store can count."""
_PLACES_TOLD = 4
"""Steps into a nested value that a complaint names."""
_MAX_BITS = int(MAX_DIGITS * math.log2(10))


def moment_of(name: str, value: Time | None, *, local: bool = False) -> datetime | None:
    """``value`` in UTC, or as it is if its day counts (``local``). Raises ``InvalidInput`` if it is no time."""
    if value is None:
        return None
    try:
        return (_local if local else _moment).validate_python(value)
    except ValidationError:
        raise InvalidInput(
            f"{name}={value!r} is not a time: use a datetime or ISO 8601 such as 2024-05-01T09:00Z"
        ) from None


def whole_number(name: str, value: int, of: str = "notes") -> int:
    """``value``, which asks for that many, 1 or more; as much as a store can count is as good as any more."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput(f"{name}={value!r} is not a whole number")
    if value < 1:
        raise InvalidInput(f"{name}={value} asks for no {of}: use 1 or more")
    return min(value, MOST)


def seconds(name: str, value: float | None) -> float | None:
    """``value``, at most as many as a clock can count."""
    if value is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool) or math.isnan(value):
        raise InvalidInput(f"{name}={value!r} is not a number of seconds: use one, or None for no limit")
    return min(value, MOST)


def share(name: str, value: float | None) -> float | None:
    """``value``, from 0 to 1."""
    if value is not None and not (isinstance(value, (int, float)) and 0 <= value <= 1):
        raise InvalidInput(f"{name}={value!r} is not a number from 0 to 1")
    return value


def require_room(max_tokens: int) -> None:
    """Raise ``InvalidInput`` for a number of tokens in which nothing can be said."""
    if not isinstance(max_tokens, int) or max_tokens < 1:
        raise InvalidInput(f"max_tokens={max_tokens!r} leaves no room for a word: use a whole number from 1 on")


def cursor_of(value: str | None) -> int:
    """The place that a page's cursor stands for."""
    if value is None:
        return 0
    is_number = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(MOST))
    if not (is_number and int(value) <= MOST):
        raise InvalidInput(f"{value!r} is not a cursor: hand in the one of the page before")
    return int(value)


def require_storable(name: str, text: str | None) -> None:
    """Raise ``InvalidInput`` for what is no text, or one that no store can keep, and so none can look for."""
    if text is not None:
        require_text(name, text)


def require_text(name: str, text: str) -> None:
    """The same for what has to be there."""
    if not isinstance(text, str):
        raise InvalidInput(f"{name} is one text, and not of type {type(text).__name__}")
    try:
        storable(text)
    except ValueError as error:
        raise InvalidInput(f"{name}: {error}") from None


def require_id(scope: object, id: str) -> None:
    """Raise ``NotFound`` for what is no id: neither a text, nor one that any store might hold."""
    if not isinstance(id, str):
        raise NotFound(scope, [id], f"an id is one text, as n_1f2e, and not of type {type(id).__name__}")
    if not id.isascii():
        raise NotFound(scope, [id])


def some(name: str, values: Iterable[str] | str | None) -> list[str]:
    """The names that are given, or the one; of None, none. Raises ``InvalidInput`` for what is neither."""
    return [] if values is None else [values] if isinstance(values, str) else several(name, values, "names")


def several(name: str, values: Iterable[Item], of: str) -> list[Item]:
    """The values, one by one. Raises ``InvalidInput`` for what cannot be gone through."""
    if not isinstance(values, Iterable):
        raise InvalidInput(f"{name} takes a list of {of}, and not what is of type {type(values).__name__}")
    return [*values]


def require_path(name: str, path: str | Path) -> Path:
    """The path. Raises ``InvalidInput`` for what is none, as a text that is too long for one."""
    if not isinstance(path, (str, Path)):
        raise InvalidInput(f"{name}={path!r} is no path: name a file or a folder")
    try:
        Path(path).exists()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
    return Path(path)


def require_reason(reason: str) -> None:
    """Raise ``InvalidInput`` for what cannot be kept as the reason of a change."""
    require_text("reason", reason)
    require_size(reason, "reason")


def require_one(choice: str, *values: str | None) -> None:
    """Raise ``InvalidInput`` unless just one of the values of a ``choice`` is given, as a text."""
    given = [value for value in values if value is not None]
    if len(given) != 1:
        raise InvalidInput(f"say {choice}, one of them")
    if not isinstance(given[0], str):
        raise InvalidInput(f"say {choice}, as one text, and not of type {type(given[0]).__name__}")


def require_name(name: str, text: str) -> None:
    """The same for what things are looked up by as a whole, which may also be too long."""
    require_storable(name, text)
    if len(text) > MAX_NAME:
        raise InvalidInput(f"{name} holds {len(text):,} characters, and a name at most {MAX_NAME:,}")


def filter_of(
    *,
    kinds: Iterable[Kind | str] | None = None,
    tags: Iterable[str] | None = None,
    session: str | None = None,
    speaker: str | None = None,
    role: Role | None = None,
    since: Time | None = None,
    until: Time | None = None,
    filter: Mapping[str, Any] | None = None,
) -> Filter:
    """Return the checked conditions of a search or a list. Raises ``InvalidInput``."""
    tags = some("tags", tags)
    for tag in tags:
        require_text("tags", tag)
    require_storable("session", session)
    require_storable("speaker", speaker)
    if role is not None and role not in ROLES:
        raise InvalidInput(f"role={role!r} must be one of {', '.join(ROLES)}: filter names with speaker=…")
    if filter is not None and not isinstance(filter, Mapping):
        raise InvalidInput(f"filter={filter!r}: name the metadata and their values, as in {{'team': 'red'}}")
    require_keepable("filter", dict(filter or {}))
    try:
        chosen = tuple(Kind(kind).value for kind in some("kinds", kinds))
    except ValueError as error:
        raise InvalidInput(f"{error}: use {', '.join(kind.value for kind in Kind)}") from None
    start, end = moment_of("since", since), moment_of("until", until)
    return Filter(
        kinds=chosen,
        tags=tuple(tags),
        session=session,
        speaker=speaker,
        role=role,
        since=None if start is None else to_micros(start),
        until=None if end is None else to_micros(end),
        metadata=as_metadata_pairs(filter or {}),
    )


def link_type_of(value: LinkType | str, allowed: Iterable[LinkType]) -> LinkType:
    """One of the ``allowed`` types, by whatever case it is written in."""
    for kind in allowed:
        if isinstance(value, str) and value.upper() == kind.value:
            return kind
    raise InvalidInput(f"type={value!r}: use {', '.join(kind.value for kind in allowed)}")


def require_keepable(name: str, value: Any) -> None:
    """Raise ``InvalidInput`` for JSON that a store could not give back exactly, or could not read again."""
    todo: list[tuple[Any, int]] = [(value, 0)]
    while todo:
        item, depth = todo.pop()
        if isinstance(item, (dict, list, tuple)):
            if depth > MAX_NESTING:
                raise InvalidInput(f"{name}: is nested more than {MAX_NESTING} deep")
            todo.extend((inner, depth + 1) for inner in (item.values() if isinstance(item, dict) else item))
        elif isinstance(item, float) and not math.isfinite(item):
            raise InvalidInput(f"{name}: holds {item}, which JSON cannot say")
        elif isinstance(item, int) and item.bit_length() > _MAX_BITS:
            raise InvalidInput(f"{name}: holds a number of more than {MAX_DIGITS} digits")


def require_metadata(metadata: Any) -> None:
    """The same for metadata, whose keys and texts are what filters ask for."""
    require_keepable("metadata", metadata)
    for text in metadata if isinstance(metadata, dict) else ():
        for part in (text, metadata[text]):
            if isinstance(part, str):
                require_storable("metadata", part)


def checked(event: Event | Mapping[str, Any]) -> Event:
    """The event, or ``InvalidEvent`` in one line that names the field and what is wrong with it."""
    if not isinstance(event, (Event, Mapping)):
        raise InvalidEvent(f"{type(event).__name__} is no event: hand in Event(content=...), or a dict of its fields")
    said = {"payload": event.payload, "metadata": event.metadata} if isinstance(event, Event) else event
    try:
        require_keepable("payload", said.get("payload"))
        require_metadata(said.get("metadata"))
        event = event if isinstance(event, Event) else Event.model_validate(event)
    except InvalidInput as error:
        raise InvalidEvent(f"the event cannot be stored: {error}") from None
    except ValidationError as error:
        raise InvalidEvent(f"the event cannot be stored: {first_complaint(error)}") from None
    if not event.content.strip() and event.payload is None:
        raise InvalidEvent("the event says nothing: give it content, or a payload")
    require_size(said_by(event))
    for name in ("external_id", "title", "speaker"):
        require_size(getattr(event, name) or "", name)
    return event


def require_size(text: str, name: str = "content") -> None:
    """Raise ``InvalidEvent`` for a text over ``MAX_CONTENT_BYTES``."""
    size = len(text.encode())
    if size > MAX_CONTENT_BYTES:
        way_out = "split it into several events" if name == "content" else "make it shorter"
        raise InvalidEvent(f"the {name} has {size:,} bytes, more than {MAX_CONTENT_BYTES:,}: {way_out}")


def first_complaint(error: ValidationError) -> str:
    """The first thing pydantic complains of, as one line: the field and what is wrong with it."""
    complaint = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in complaint["loc"][:_PLACES_TOLD]) or "value"
    if complaint["type"].startswith("datetime_"):  # which pydantic would tell of by the character
        return f"{where}: {complaint['input']!r} is not a time: use ISO 8601 such as 2024-05-01T09:00Z"
    return f"{where}: {complaint['msg'].removeprefix('Value error, ')}"


def require_scope(scope: Scope | None) -> None:
    """Raise ``InvalidInput`` unless ``scope`` is a ``Scope`` or None."""
    if scope is not None and not isinstance(scope, Scope):
        raise InvalidInput(f"scope={scope!r} is not a Scope: use Scope(user=...)")


def head_of(event: Event, outcome: Remembered) -> str:
    """The id of the event's head note. Raises ``EventDeleted``."""
    if outcome.id is None:
        raise EventDeleted(
            f"the event with id {event.external_id!r} was deleted from this scope and is not revived: "
            "give it another id to remember it again"
        )
    return outcome.id
