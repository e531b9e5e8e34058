"""Finds the question that a message answers, and the answer that follows a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zettel.model import ROLES, Kind, Note, Scope
from zettel.ports.query import Filter

if TYPE_CHECKING:
    from zettel.ports import GraphStore
    from zettel.ports.query import Candidates, Ints

USER, ASSISTANT = ROLES.index("user"), ROLES.index("assistant")
LATE_PART = 3
"""First part of an answer whose question may be missing among the candidates: they contain three turns before a hit."""
LOOK_BACK = (4, 32)
"""Numbers in ``seq`` before an answer at which its question is looked for."""


class Turns(NamedTuple):
    """The ids of the note that a note answers, and of the note that answers it; None if there is none."""

    answers: str | None
    answered_by: str | None


def turns_of(row: int, candidates: Candidates) -> Turns:
    """Return the turns beside an assistant's or a user's message in its session, if they are among the candidates."""
    role = candidates.role[row]
    question = _beside(row, candidates, candidates.previous) if role == ASSISTANT else -1
    answer = _beside(row, candidates, candidates.next) if role == USER else -1
    return Turns(
        candidates.ids[question] if question >= 0 and candidates.role[question] == USER else None,
        candidates.ids[answer] if answer >= 0 and candidates.role[answer] == ASSISTANT else None,
    )


def _beside(row: int, candidates: Candidates, step: Ints) -> int:
    """The next row of another event in one direction; -1 if it is not a candidate."""
    event = candidates.event[row]
    place = int(step[row])
    while place >= 0 and candidates.event[place] == event:
        place = int(step[place])
    return place


def is_late_part(note: Note) -> bool:
    """Return True if the question that a note answers may be missing among the candidates."""
    return note.role == "assistant" and note.part >= LATE_PART and note.session is not None


async def question_before(store: GraphStore, scope: Scope, note: Note) -> str | None:
    """Return the id of the user's message right before a long answer, read from the store; None if it is not close.

    A question and its answer usually arrive one after the other, so each page ends at the note itself.
    """
    filter = Filter(kinds=(Kind.EPISODIC.value,), session=note.session)
    for back in LOOK_BACK:
        page = await store.page(scope, filter, max(note.seq - note.part - back, 0), note.part + 1)
        first = next((place for place, other in enumerate(page) if _is_part(other, note)), 0)
        if first and page[first].part == 0:
            question = page[first - 1]
            return question.id if question.role == "user" and _is_before(question, page[first]) else None
    return None


def _is_part(note: Note, other: Note) -> bool:
    return note.event_ids[0] == other.event_ids[0]


def _is_before(note: Note, other: Note) -> bool:
    return note.occurred_at is None or other.occurred_at is None or note.occurred_at <= other.occurred_at
