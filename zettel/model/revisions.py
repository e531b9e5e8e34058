"""Revisions: the changes to notes, with their causes and inputs."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, NamedTuple, TypeAlias, Union

from pydantic import BeforeValidator, Field, JsonValue

from zettel.model.base import Frozen, Moment, Name
from zettel.model.jobs import JobKind
from zettel.model.links import Link, LinkKey
from zettel.model.speakers import with_speaker


def _upgrade(change: Any) -> Any:
    return with_speaker(change) if isinstance(change, dict) and "speaker" not in change else change


class CallKind(str, Enum):
    """A call that writes revisions; jobs have a ``JobKind`` instead. ``rewords``: see ``JobKind``.

    ``PERSON`` covers update, link, unlink, resolve, archive and revert, ``EDIT`` an edited file of an exported vault.
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
    EDIT = "edit"
    DELETE = "delete"
    QUARANTINE = "quarantine"
    RELEASE = "release"
    SEARCH = "search", False


CauseKind: TypeAlias = Union[JobKind, CallKind]  # noqa: UP007 - Python 3.10 evaluates it


class Cause(Frozen):
    """The cause of a revision: the call or the job that wrote it.

    ``note`` is the note that led to the change, ``model`` and ``prompt`` name the language model and the prompt version
    ("evolve/1") if a model decided, and ``reason`` explains the decision. ``principal`` is the one whose quarantine or
    release this is.
    """

    by: CauseKind
    note: str | None = None
    model: str | None = None
    prompt: str | None = None
    reason: str = ""
    principal: Name | None = None


class Input(NamedTuple):
    """A note, and its version at that time, on which a decision was based. ``delete`` follows inputs."""

    note: str
    version: int


class Revision(Frozen):
    """One change to a note. A note's state is its base with all live revisions applied in ``seq`` order.

    ``change`` maps the names of the set fields to their values. ``links`` are added, ``unlinks`` removed links, and
    ``undoes`` the versions that this revision reverts. ``extracted`` names the set fields that zettel computed from the
    content; a model or a person wrote the others. ``inputs`` are the notes that the change was based on. ``live`` is
    False after a revert. ``principal`` is who made the call, empty for jobs and unknown callers.
    """

    note: str
    version: int
    seq: int
    recorded_at: Moment
    change: Annotated[dict[str, JsonValue], BeforeValidator(_upgrade)] = Field(default_factory=dict)
    links: tuple[Link, ...] = ()
    unlinks: tuple[LinkKey, ...] = ()
    undoes: tuple[int, ...] = ()
    extracted: tuple[str, ...] = ()
    cause: Cause
    inputs: tuple[Input, ...] = ()
    live: bool = True
    principal: Name = ""


class Checkpoint(Frozen):
    """A shorter history of a note up to ``version``, with the same state, so that a long history is not read again.

    ``revisions`` replace all up to ``version``, see ``zettel.core.checkpoints``. ``links`` and ``values`` (name, JSON)
    are the decisions that a person reverted by then.
    """

    version: int
    revisions: tuple[Revision, ...]
    links: tuple[LinkKey, ...] = ()
    values: tuple[tuple[str, str], ...] = ()
