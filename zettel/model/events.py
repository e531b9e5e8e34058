"""Events: what happened, verbatim."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AliasChoices, BeforeValidator, Field, JsonValue

from zettel.model.base import Frozen, Moment, Name, Text, storable
from zettel.model.speakers import Role, Spoken


def _as_source(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) else value


class Source(Frozen):
    """Where an event was read: a file and a place in it."""

    file: Name
    position: Text | None = None

    def __str__(self) -> str:
        return self.file if self.position is None else f"{self.file}:{self.position}"


class Event(Spoken):
    """What happened, verbatim.

    ``external_id`` is the caller's own id; ``id`` is accepted as its name. ``content`` or ``payload`` (any JSON value,
    returned exactly) must not be empty. ``speaker`` is a name; ``role`` is None for a person in a conversation among
    people. A generic speaker such as "user" implies the role, and a role without a speaker names the speaker.
    ``occurred_at`` is the time of the event; a naive time is read as UTC. None means unknown: an import never
    replaces it by its own time.
    """

    content: Text = ""
    external_id: Annotated[Text | None, Field(validation_alias=AliasChoices("external_id", "id"))] = None
    title: Text | None = None
    speaker: Text | None = None
    role: Role | None = None
    occurred_at: Moment | None = None
    session: Name | None = None
    source: Annotated[Source | None, BeforeValidator(_as_source)] = None
    payload: JsonValue = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


def said_by(event: Event) -> str:
    """What its notes hold: the content, or of a payload without any the JSON it is, so that its values can be asked
    for."""
    if event.content.strip():
        return event.content
    try:
        return storable(json.dumps(event.payload, ensure_ascii=False))
    except ValueError:  # lone surrogates: they can be told escaped
        return json.dumps(event.payload)


class EventRecord(Event):
    """An event as the store keeps it: with its own id, its place in the order of arrival and when it was recorded."""

    event_id: str
    seq: int
    recorded_at: Moment
    revises: str | None = None
    """The ``event_id`` that this one replaces, when an import brought other content for the same identity."""


OnConflict = Literal["error", "skip", "revise"]
"""What to do with other content for an identity that is there already."""

Status = Literal["added", "existing", "revised", "skipped", "deleted"]


class Remembered(NamedTuple):
    """What became of one event: the id of its head note (None if it was deleted here before), and how.

    ``flagged``: it was written, and something in it looks like instructions to a model.
    """

    id: str | None
    status: Status
    flagged: bool = False
