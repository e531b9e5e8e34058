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
    """The type of knowledge in a note."""

    EPISODIC = "episodic"  # what happened: the text of an event
    SEMANTIC = "semantic"  # a fact
    PROCEDURAL = "procedural"  # how to act
    INSIGHT = "insight"  # a conclusion from several notes


class Trait(Enum):
    """A property of a field of ``Note``, declared with the field."""

    EDITABLE = "a revision may change it"
    EXTRACTED = "extracted from the content at first; a model or a person may write it instead"
    INDEXED = "the note's index entries follow from it"


class Note(Spoken):
    """A note, the unit of memory. Searches return notes, links connect them, and jobs improve them.

    Text: ``content`` is the text of an event, or a text that zettel derived from events. ``caption`` is a short label,
    ``context`` one or two sentences about the situation. ``authored`` names the extracted fields that a model or a
    person wrote instead; of these, searches read context, keywords and tags with the content.

    Origin: ``event_ids`` (never empty) are the events behind the note. A long event has several notes, ``part`` 0 to
    ``parts`` - 1. ``external_id``, ``speaker``, ``role``, ``session``, ``occurred_at`` come from the event, see
    ``Event``. ``flags`` name signs of instructions to a model, such as "override"; ``ceiling`` is the highest
    trust in the writers of its events, and ``trust`` follows from ``ceiling``, ``role`` and ``flags``.

    Repetition: a merged note has the events of all its duplicates, so ``len(event_ids)`` counts how often the statement
    was made. ``occurrences`` are the known times of these events, oldest first; empty for a note that is not merged.

    Time: the statement is true from ``valid_from`` until ``valid_to``, which a person sets or which follows from
    SUPERSEDES links at each read. ``seq`` is the order of arrival in the scope, ``recorded_at`` the time of storing.
    ``version`` starts at 1 and grows by 1 with each revision.

    Expiry: from ``expires_at`` on, searches and lists leave the note out, and a job deletes or archives it. A note that
    zettel derived expires with the first of the notes behind it.

    State: searches and lists leave out ``archived`` notes unless the caller includes them. ``merged_into`` is the note
    that replaces a merged duplicate. ``faded`` is True if decay archived the note, and ``quarantined`` is the reason
    for a quarantine. ``importance``, ``confidence``, ``trust`` and ``ceiling`` are 0 (lowest) to 1.

    To add a field, declare it here with its traits: every store writes all fields. ``Annotation`` has the extracted
    ones.
    """

    id: str
    kind: Annotated[Kind, Trait.EDITABLE] = Kind.EPISODIC
    content: Annotated[str, Trait.EDITABLE, Trait.INDEXED]
    title: Annotated[str | None, Trait.EDITABLE, Trait.INDEXED] = None
    caption: Annotated[str, Trait.EDITABLE, Trait.EXTRACTED] = ""
    context: Annotated[str, Trait.EDITABLE, Trait.EXTRACTED] = ""
    keywords: Annotated[tuple[str, ...], Trait.EDITABLE, Trait.EXTRACTED, Trait.INDEXED] = ()
    tags: Annotated[tuple[str, ...], Trait.EDITABLE, Trait.EXTRACTED, Trait.INDEXED] = ()
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
    occurrences: tuple[Moment, ...] = ()
    valid_from: Annotated[Moment | None, Trait.EDITABLE] = None
    valid_to: Annotated[Moment | None, Trait.EDITABLE] = None
    expires_at: Annotated[Moment | None, Trait.EDITABLE] = None
    metadata: Annotated[dict[str, JsonValue], Trait.EDITABLE] = Field(default_factory=dict)
    authored: tuple[str, ...] = ()
    archived: Annotated[bool, Trait.INDEXED] = False
    merged_into: str | None = None
    faded: bool = False
    quarantined: Text | None = None
    flags: tuple[str, ...] = ()
    trust: float = Field(default=1.0, ge=0, le=1)
    ceiling: float = Field(default=1.0, ge=0, le=1)
    seq: int
    recorded_at: Moment
    version: int = 1


def fields_with(trait: Trait) -> tuple[str, ...]:
    """Return the names of the fields of ``Note`` with this trait, in declaration order."""
    return tuple(name for name, field in Note.model_fields.items() if trait in field.metadata)


EDITABLE = fields_with(Trait.EDITABLE)
"""The fields of a note that a revision may change."""


class Term(Frozen):
    """An index entry of a scope: a keyword, a tag, a name or a speaker (``kind``).

    ``key`` is its normal form, ``text`` its wording, ``notes`` the number of notes that use it.
    """

    key: str
    text: str
    kind: str
    notes: int


class NoteUse(NamedTuple):
    """The feedback on a note: for how many searches it was useful, and how many of these succeeded or failed.

    ``since`` is the time of its last use or, for a note that was never useful, the time of storing.
    """

    since: datetime
    times: int = 0
    successes: int = 0
    failures: int = 0


def as_metadata_pairs(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return metadata as flat ``key=value`` strings, sorted by key. Stores match filters against these strings."""
    return tuple(
        f"{key}={value if isinstance(value, str) else json.dumps(value, sort_keys=True)}"
        for key, value in sorted(metadata.items())
    )
