"""Changes to notes, with their cause and inputs."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, NamedTuple, TypeAlias, Union

from pydantic import BeforeValidator, Field, JsonValue

from zettel.model.base import Frozen, Moment
from zettel.model.jobs import JobKind
from zettel.model.links import Link
from zettel.model.speakers import with_speaker


def _upgraded(change: Any) -> Any:
    return with_speaker(change) if isinstance(change, dict) and "speaker" not in change else change


class CallKind(str, Enum):
    """A call that writes revisions, as opposed to a job. ``rewords``: see ``JobKind``.

    ``PERSON`` stands for update, link, archive and revert.
    """

    rewords: bool

    def __new__(cls, value: str, rewords: bool = True) -> CallKind:
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.rewords = rewords
        return kind

    def __str__(self) -> str:
        return str(self.value)

    ADD = "add"
    IMPORT = "import"
    PERSON = "user"
    DELETE = "delete"
    QUARANTINE = "quarantine"
    RELEASE = "release"
    SEARCH = "search", False


CauseKind: TypeAlias = Union[JobKind, CallKind]  # noqa: UP007 - Python 3.10 evaluates it


class Cause(Frozen):
    """Why a note was changed: ``by`` a call, or by a job with the note, model, prompt and reason behind it."""

    by: CauseKind
    note: str | None = None
    model: str | None = None
    prompt: str | None = None
    reason: str = ""


class Input(NamedTuple):
    """A note that stood before whoever decided a change, in the version it then had."""

    note: str
    version: int


class Revision(Frozen):
    """One change to a note.

    ``change`` holds the fields that were set, ``links`` those that were added, ``undoes`` the versions that this one
    took back. ``extracted`` names those of the set fields that were computed from the content and not written by a
    model or a person. ``live`` tells whether the change still counts.
    """

    note: str
    version: int
    seq: int
    recorded_at: Moment
    change: Annotated[dict[str, JsonValue], BeforeValidator(_upgraded)] = Field(default_factory=dict)
    links: tuple[Link, ...] = ()
    undoes: tuple[int, ...] = ()
    extracted: tuple[str, ...] = ()
    cause: Cause
    inputs: tuple[Input, ...] = ()
    live: bool = True
