"""Labelled questions and their notes as JSON lines, for training.

Each line belongs to a collection, ``in``. A note has ``note`` (its id), ``content`` and optional ``title``,
``speaker``, ``session`` and ``occurred_at``. A question has ``question`` and ``answers`` (note ids, empty if
unanswerable). A question from feedback also has ``asked_at`` and ``shown``, the ids of its hits, best first; one of a
conversation its ``category``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zettel.core.feedback import training_searches
from zettel.errors import BadRecord, InvalidInput
from zettel.model import Event, Note, Scope

from .evaluation import Collection, Question

if TYPE_CHECKING:
    from zettel import Memory

CATEGORY = "4"
"""Default category: LoCoMo's for a question that one note answers."""
_OPTIONAL_FIELDS = ("title", "speaker", "session", "occurred_at")


def from_log(memory: Memory, scope: Scope) -> Iterator[dict[str, Any]]:
    """Yield the lines of a scope's notes and searches with feedback; none without feedback."""
    searches = training_searches(memory.searches(scope=scope))
    if not searches:
        return
    seen: set[str] = set()
    for event, notes in memory.dump(scope=scope):
        for note in notes:
            if note.id not in seen:
                seen.add(note.id)
                yield _note_line(scope, note.id, note, event.occurred_at)
    for search in searches:
        yield _line(
            scope, question=search.question, answers=list(search.used or ()), asked_at=search.asked_at.isoformat(),
            shown=[hit.note for hit in search.hits],
        )  # fmt: skip


def from_collection(collection: Collection) -> Iterator[dict[str, Any]]:
    """Yield the lines of a conversation's events, each as a note, and questions."""
    for event in collection.events:
        yield _note_line(collection.name, event.external_id, event, event.occurred_at)
    for question in collection.questions:
        yield _line(
            collection.name, question=question.text, answers=sorted(question.needed), category=question.group
        )


def write(lines: Iterable[dict[str, Any]], path: Path) -> int:
    """Write lines to a file; return the number of questions."""
    questions = 0
    with path.open("w", encoding="utf-8") as file:
        for line in lines:
            questions += "question" in line
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return questions


def read(path: Path) -> list[Collection]:
    """Read the collections of a file. Raises ``BadRecord`` for an invalid line, ``InvalidInput`` without answers."""
    events: dict[str, list[Event]] = {}
    questions: dict[str, list[Question]] = {}
    with path.open("rb") as file:  # bytes, so that invalid UTF-8 is reported with its line
        for number, text in enumerate(file, 1):
            try:
                line = json.loads(text)
                name = str(line["in"])
                if "note" in line:
                    optional = {key: line[key] for key in _OPTIONAL_FIELDS if line.get(key) is not None}
                    event = Event(external_id=line["note"], content=line["content"], **optional)
                    events.setdefault(name, []).append(event)
                else:
                    group = str(line.get("category", CATEGORY))
                    question = Question(line["question"], group, frozenset(line["answers"]))
                    questions.setdefault(name, []).append(question)
            except (ValueError, KeyError, TypeError) as error:
                raise BadRecord(f"{path}, line {number}: no note and no labelled question: {error}") from error
    if not any(question.needed for labelled in questions.values() for question in labelled):
        raise InvalidInput(f"{path} contains no question with an answer: add one")
    return [Collection(name, events[name], questions.get(name, [])) for name in events]


def _note_line(collection: Scope | str, id: str | None, note: Note | Event, time: datetime | None) -> dict[str, Any]:
    return _line(
        collection, note=id, content=note.content, title=note.title, speaker=note.speaker, session=note.session,
        occurred_at=None if time is None else time.isoformat(),
    )  # fmt: skip


def _line(collection: Scope | str, **fields: Any) -> dict[str, Any]:
    return {"in": str(collection)} | {key: value for key, value in fields.items() if value is not None}
