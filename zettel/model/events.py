"""Events: messages, documents and other facts, stored verbatim."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, JsonValue

from zettel.model.base import Frozen, Moment, Name, Text, storable
from zettel.model.speakers import Role, Spoken


def _as_source(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) else value


def _none_if_empty(text: str | None) -> str | None:
    return text or None


class Source(Frozen):
    """The file that an event was imported from, and the position in it, such as a line number.

    Example: ``Source(file="chat.jsonl", position="17")``. ``str()`` gives "chat.jsonl:17".
    """

    file: Name
    position: Text | None = None

    def __str__(self) -> str:
        return self.file if self.position is None else f"{self.file}:{self.position}"


class Event(Spoken):
    """One message, document or other occurrence, stored verbatim and never changed.

    Example: ``Event(content="I moved to Bergen.", speaker="Ann", occurred_at="2024-05-01T09:00Z")``.

    ``content`` or ``payload`` (any JSON value, returned exactly) must not be empty. ``external_id`` is the caller's own
    id, also accepted as ``id``; an empty one counts as none. ``speaker`` is a name. ``role`` is None for a person in a
    conversation among people; a generic speaker such as "user" implies the role, and a role without a speaker becomes
    the speaker.
    ``occurred_at`` is the time of the event, or None if unknown; zettel never replaces None by the import time.
    ``session`` groups events of one conversation. ``source`` may be given as a file name. From ``expires_at`` on no
    search finds the event, and a job deletes or archives it (see ``Retention``); None keeps it.
    """

    content: Text = ""
    external_id: Annotated[
        Text | None, AfterValidator(_none_if_empty), Field(validation_alias=AliasChoices("external_id", "id"))
    ] = None
    title: Text | None = None
    speaker: Text | None = None
    role: Role | None = None
    occurred_at: Moment | None = None
    session: Name | None = None
    source: Annotated[Source | None, BeforeValidator(_as_source)] = None
    payload: JsonValue = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    expires_at: Moment | None = None


def event_text(event: Event) -> str:
    """Return the text of an event's notes: its content or, if that is empty, its payload as JSON, to be searchable."""
    if event.content.strip():
        return event.content
    try:
        return storable(json.dumps(event.payload, ensure_ascii=False))
    except ValueError:  # lone surrogates, which JSON can escape
        return json.dumps(event.payload)


class EventRecord(Event):
    """A stored event: an ``Event`` with its id in the store, its ``seq`` (order of arrival) and the time of storing.

    ``principal`` is who wrote it, such as ``key:3f9a…``, and ``ceiling`` the highest trust in this writer at that time.
    The caller does not choose them, see ``acting_as``. An empty principal is unknown.
    """

    event_id: str
    seq: int
    recorded_at: Moment
    principal: Name = ""
    ceiling: float = Field(default=1.0, ge=0, le=1)
    revises: str | None = None
    """The ``event_id`` of the earlier event of the same identity, if an import revised its content."""


OnConflict = Literal["error", "skip", "revise"]
"""Handling of an event whose identity is already stored with other content."""

Status = Literal["added", "existing", "revised", "skipped", "deleted"]


class Remembered(NamedTuple):
    """The outcome of adding one event.

    ``id`` is the id of its first note, or None if the event was deleted from this memory before. ``flagged`` is True
    if the event was written and parts of it look like instructions to a model. ``secrets`` names the kinds of secrets
    in the event, such as "GitHub token", that were stored or redacted.
    """

    id: str | None
    status: Status
    flagged: bool = False
    secrets: tuple[str, ...] = ()
