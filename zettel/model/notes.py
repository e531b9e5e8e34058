"""Notes and their index entries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, NamedTuple

from pydantic import Field, JsonValue

from zettel.model.base import Frozen, Moment, Text
from zettel.model.speakers import Role, Spoken


class Kind(str, Enum):
    """What sort of note it is."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"
    INSIGHT = "insight"


class Trait(Enum):
    """What zettel does with a field of a note, declared with the field."""

    EDITABLE = "a revision may change it"
    AUTHORABLE = "extracted from the content at first; a model or a person may write it instead"
    INDEXED = "the note's index entries follow from it"


class Note(Spoken):
    """The zettel: a piece of memory that is found, linked and improved.

    A new field is declared here alone: every store keeps all fields, and ``fields_with`` returns those with a trait.

    ``event_ids`` is never empty. A long event has several notes, ``part`` 0 (the head) to ``parts`` - 1.
    ``valid_to`` is derived from SUPERSEDES links whenever the note is read. ``authored`` names the fields that a model
    or a person wrote, which are searched together with the content; the others were extracted from it. An ``archived``
    note is kept, with its links and its history, but no search and no list shows it unless asked to; ``merged_into``
    is the note that speaks for it since, ``faded`` tells that nobody had needed it, and ``quarantined`` why somebody
    did not want it to take part any more. ``trust`` follows from who said it and from ``flags``: what in it looks like
    instructions to a model.
    """

    id: str
    kind: Annotated[Kind, Trait.EDITABLE] = Kind.EPISODIC
    content: Annotated[str, Trait.EDITABLE, Trait.INDEXED]
    title: Annotated[str | None, Trait.EDITABLE, Trait.INDEXED] = None
    caption: Annotated[str, Trait.EDITABLE, Trait.AUTHORABLE] = ""
    context: Annotated[str, Trait.EDITABLE, Trait.AUTHORABLE] = ""
    keywords: Annotated[tuple[str, ...], Trait.EDITABLE, Trait.AUTHORABLE, Trait.INDEXED] = ()
    tags: Annotated[tuple[str, ...], Trait.EDITABLE, Trait.AUTHORABLE, Trait.INDEXED] = ()
    importance: Annotated[float, Trait.EDITABLE] = Field(default=0.5, ge=0, le=1)
    confidence: Annotated[float, Trait.EDITABLE] = Field(default=1.0, ge=0, le=1)
    event_ids: tuple[str, ...] = Field(min_length=1)
    external_id: str | None = None
    part: Annotated[int, Trait.INDEXED] = 0
    parts: int = 1
    speaker: Annotated[str | None, Trait.INDEXED] = None
    role: Role | None = None
    session: str | None = None
    occurred_at: Moment | None = None
    valid_from: Annotated[Moment | None, Trait.EDITABLE] = None
    valid_to: Moment | None = None
    metadata: Annotated[dict[str, JsonValue], Trait.EDITABLE] = Field(default_factory=dict)
    authored: tuple[str, ...] = ()
    archived: Annotated[bool, Trait.INDEXED] = False
    merged_into: str | None = None
    faded: bool = False
    quarantined: Text | None = None
    flags: tuple[str, ...] = ()
    trust: float = Field(default=1.0, ge=0, le=1)
    seq: int
    recorded_at: Moment
    version: int = 1


def fields_with(trait: Trait) -> tuple[str, ...]:
    """Return the names of the fields of a note that have a trait, in order."""
    return tuple(name for name, field in Note.model_fields.items() if trait in field.metadata)


EDITABLE = fields_with(Trait.EDITABLE)
"""The fields of a note that a revision may change."""


class Term(Frozen):
    """An index entry: a keyword, a tag, or a named thing. ``key`` is its normal form, ``notes`` how many hold it."""

    key: str
    text: str
    kind: str
    notes: int


class NoteUse(NamedTuple):
    """What feedback says of a note: how many searches it was of use for, and how many of these ended well or badly.

    ``since`` is when it last was or, of a note that never was, when it was recorded.
    """

    since: datetime
    times: int = 0
    successes: int = 0
    failures: int = 0


def as_metadata_pairs(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Metadata as flat ``key=value`` strings, the form that filters are matched on in every store."""
    return tuple(
        f"{key}={value if isinstance(value, str) else json.dumps(value, sort_keys=True)}"
        for key, value in sorted(metadata.items())
    )
