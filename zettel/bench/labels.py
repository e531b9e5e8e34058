"""Labelled questions as JSON lines, to train on elsewhere: what was asked, which notes answered, and these notes.

Each line belongs to a collection, ``in``. A note has ``note`` (its id), ``content``, and, as far as known, ``title``,
``role``, ``session``, ``occurred_at``. A question has ``question`` and ``answers`` (ids of notes; none: nothing answers
it); one from feedback also ``asked_at`` and ``shown``, the ids of its hits, best first; one of a conversation its
``category``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zettel.errors import BadRecord, InvalidInput
from zettel.evolve.feedback import told_of
from zettel.model import Event, LoggedSearch, Scope

from .evaluation import Collection, Question

if TYPE_CHECKING:
    from zettel import Memory

CATEGORY = "4"
"""LoCoMo's for a question that one note answers: what a question is taken for that has none."""
_OF_NOTE = ("title", "role", "session", "occurred_at")


def from_log(memory: Memory, scope: Scope) -> Iterator[dict[str, Any]]:
    """The lines of a scope: its notes, and what was asked and told of. None of a scope of which nothing was told."""
    told = told_of(memory.searches(scope=scope))
    if not told:
        return
    seen: set[str] = set()
    for event, notes in memory.dump(scope=scope):
        for note in notes:
            if note.id not in seen:
                seen.add(note.id)
                when = event.occurred_at
                yield _line(scope, note=note.id, content=note.content, title=note.title, role=note.role,
                            session=note.session, occurred_at=None if when is None else when.isoformat())  # fmt: skip
    for one in told:
        yield _line(scope, question=one.question, answers=list(one.used or ()), asked_at=one.asked_at.isoformat(),
                    shown=_shown(one))  # fmt: skip


def from_collection(one: Collection) -> Iterator[dict[str, Any]]:
    """The lines of a conversation: its events, each as a note, and its questions."""
    for event in one.events:
        when = event.occurred_at
        yield _line(one.name, note=event.id, content=event.content, title=event.title, role=event.role,
                    session=event.session, occurred_at=None if when is None else when.isoformat())  # fmt: skip
    for asked in one.questions:
        yield _line(one.name, question=asked.text, answers=sorted(asked.needed), category=asked.group)


def write(lines: Iterable[dict[str, Any]], to: Path) -> int:
    """Write lines to a file; how many of them are questions."""
    questions = 0
    with to.open("w", encoding="utf-8") as file:
        for line in lines:
            questions += "question" in line
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return questions


def read(path: Path) -> list[Collection]:
    """The collections of a file. Raises ``BadRecord`` for a line that is none, ``InvalidInput`` without answers."""
    events: dict[str, list[Event]] = {}
    questions: dict[str, list[Question]] = {}
    with path.open("rb") as file:  # what is not UTF-8 is a fault of its line
        for number, text in enumerate(file, 1):
            try:
                line = json.loads(text)
                name = str(line["in"])
                if "note" in line:
                    told = {key: line[key] for key in _OF_NOTE if line.get(key) is not None}
                    event = Event(id=line["note"], content=line["content"], **told)
                    events.setdefault(name, []).append(event)
                else:
                    group = str(line.get("category", CATEGORY))
                    asked = Question(line["question"], group, frozenset(line["answers"]))
                    questions.setdefault(name, []).append(asked)
            except (ValueError, KeyError, TypeError) as error:
                raise BadRecord(f"{path}, line {number}: no note and no labelled question: {error}") from error
    if not any(asked.needed for some in questions.values() for asked in some):
        raise InvalidInput(f"{path} holds no question with an answer")
    return [Collection(name, events[name], questions.get(name, [])) for name in events]


def _line(where: Scope | str, **told: Any) -> dict[str, Any]:
    return {"in": str(where)} | {key: value for key, value in told.items() if value is not None}


def _shown(one: LoggedSearch) -> Sequence[str]:
    return [hit.note for hit in one.hits]
