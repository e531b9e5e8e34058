"""Messages of a chat, as chat APIs write them, and the events that they become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zettel.core.own_names import field_meant
from zettel.errors import InvalidInput
from zettel.model import IMPLIED_ROLES

OWN_FIELDS = ("role", "content", "name", "id", "occurred_at")
"""Fields of a message that an event has too; a message with others is also the event's payload."""


def event_of_message(place: int, message: Any) -> dict[str, Any]:
    """Return the fields of the event of a message: its text, role, name and id, and the message if it has more.

    ``message`` is a dict, or an object of a client with ``model_dump``. Its content is a text or a list of parts.
    Raises ``InvalidInput``, which names the message by its ``place``.

    Example: ``event_of_message(0, {"role": "user", "content": "Hi!"})`` is ``{"content": "Hi!", "role": "user"}``.
    """
    if not isinstance(message, Mapping) and hasattr(message, "model_dump"):
        message = message.model_dump(exclude_none=True)
    elif isinstance(message, Mapping):
        _require_own_names(place, message)
    if not isinstance(message, Mapping):
        raise InvalidInput(f"messages[{place}] must be a dict with role and content, not {type(message).__name__}")
    role = str(message.get("role"))
    if role not in IMPLIED_ROLES:
        raise InvalidInput(f"messages[{place}] has the role {role!r}: use user, assistant, system or tool")
    content = message.get("content")
    if content is not None and not isinstance(content, (str, list)):
        raise InvalidInput(
            f"messages[{place}] has a content of type {type(content).__name__}: use a text or a list of parts"
            )
    event: dict[str, Any] = {"content": text_of(content), "role": IMPLIED_ROLES[role]}
    if name := message.get("name"):
        event["speaker"] = name
    event |= {field: message[field] for field in ("id", "occurred_at") if message.get(field) is not None}
    if (content and not isinstance(content, str)) or not message.keys() <= set(OWN_FIELDS):
        event["payload"] = {field: value for field, value in message.items() if field != "occurred_at"}
    return event


def _require_own_names(place: int, message: Mapping[str, Any]) -> None:
    for field in message.keys() - set(OWN_FIELDS):
        own = field_meant(field, OWN_FIELDS)
        if own and message.get(own) is None:
            raise InvalidInput(f"messages[{place}] has the field {field!r}: name it {own}")


def text_of(content: Any) -> str:
    """Return the text of a message's content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(text for part in parts if isinstance(text := field_of(part, "text"), str))


def field_of(of: Any, name: str) -> Any:
    """Return a field of a dict, or an attribute of an object; None if it is missing."""
    return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)
