"""Results of exact queries (counts, groups, notes and events), and past episodes as examples."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from zettel.model.base import Frozen, Moment
from zettel.model.events import EventRecord
from zettel.model.notes import Note

Queried = Literal["notes", "events"]
"""The things that a query counts."""


class Group(Frozen):
    """The notes or events of a query with the same values in the fields that it groups by.

    ``key`` maps each field to its value, None if the notes have none. ``first`` and ``last`` are their earliest and
    latest known times.
    """

    key: dict[str, str | None]
    count: int
    first: Moment | None = None
    last: Moment | None = None


class QueryResult(Frozen):
    """The exact answer to a query: ``count`` is the number of matching notes or events, ``first`` and ``last`` their
    earliest and latest known times.

    With ``group_by``, ``groups`` are the first groups of ``all_groups``. Without it, ``notes`` or ``events`` are the
    first of ``count``.
    """

    count: int
    first: Moment | None = None
    last: Moment | None = None
    groups: tuple[Group, ...] = ()
    all_groups: int = Field(default=0, description="Number of groups, of which `groups` are the first.")
    notes: tuple[Note, ...] = ()
    events: tuple[EventRecord, ...] = ()


class Example(Frozen):
    """A past episode in which an agent succeeded: its task, its steps as lines, and how well the task fits (0 to 1).

    ``note`` is the note of the task, in ``session``. ``str()`` is the text for a prompt.
    """

    task: str
    steps: tuple[str, ...]
    session: str
    note: str
    score: float

    def __str__(self) -> str:
        return "\n".join([f"Task: {self.task}", *(f"- {step}" for step in self.steps)])
