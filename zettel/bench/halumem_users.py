"""The users of HaluMem's files: dialogues in dated sessions, labelled memory points, and questions.

Each line is one user: ``uuid`` and ``sessions``. A session has a ``dialogue`` (``role``, ``content``, ``timestamp``),
``memory_points`` (``memory_content``, ``memory_source``, ``is_update``, ``original_memories``, ``timestamp``) and
``questions`` (``question``, ``answer``, ``question_type``, ``evidence``, a list of objects with ``memory_content``). In
HaluMem-Long, the sessions marked ``is_generated_qa_session`` have neither points nor questions. Times have no zone and
are read as UTC.

Paper: Chen et al. 2025, "HaluMem: Evaluating Hallucinations in Memory Systems of Agents".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from zettel.errors import BadRecord, ZettelError
from zettel.model import Event
from zettel.transcripts import Rejected
from zettel.transcripts.parsing.json_records import json_records

INTERFERENCE = "interference"
"""``memory_source`` of a false statement that the assistant slips in; a memory should not contain it."""
_TIME = "%b %d, %Y, %H:%M:%S"


class Point(NamedTuple):
    """A labelled fact. ``outdated`` are the contents of earlier points that it updates."""

    id: str
    content: str
    is_interference: bool
    outdated: frozenset[str]
    occurred_at: datetime | None


class UserQuestion(NamedTuple):
    """A question after a session, with the contents of the points that it needs; none if it has no answer."""

    text: str
    kind: str
    answer: str
    evidence: tuple[str, ...]


class Session(NamedTuple):
    """A session of a user, in the order of time."""

    id: str
    events: list[Event]
    points: list[Point]
    questions: list[UserQuestion]


class User(NamedTuple):
    name: str
    sessions: list[Session]


def read(path: Path) -> Iterator[User]:
    """Yield the users of a file, one at a time. Raises ``BadRecord``."""
    for entry in json_records(path):
        if isinstance(entry, Rejected):
            raise BadRecord(f"{path}: {entry.reason}")
        where = f"{path}, user {entry.source.position}"
        try:
            yield _user(entry.value)
        except (AttributeError, KeyError, TypeError, ValueError, ValidationError, ZettelError) as error:
            reason = f"the field {error} is missing" if isinstance(error, KeyError) else str(error).partition("\n")[0]
            raise BadRecord(f"{where} is not a user of HaluMem: {reason}") from error


def _user(fields: Mapping[str, Any]) -> User:
    name = str(fields["uuid"])
    return User(name, [_session(f"{name}/{n}", session) for n, session in enumerate(fields["sessions"], start=1)])


def _session(id: str, fields: Mapping[str, Any]) -> Session:
    events = [
        Event(
            external_id=f"{id}/{n}",
            content=turn["content"],
            role=turn["role"],
            session=id,
            occurred_at=_time(turn.get("timestamp")),
        )
        for n, turn in enumerate(fields["dialogue"], start=1)
        if turn["content"].strip()
    ]
    points = [_point(f"{id}/p{n}", point) for n, point in enumerate(fields.get("memory_points") or [], start=1)]
    questions = [
        UserQuestion(
            item["question"],
            str(item["question_type"]),
            str(item["answer"]),
            tuple(dict.fromkeys(point["memory_content"] for point in item["evidence"])),
        )
        for item in fields.get("questions") or []
    ]
    return Session(id, events, points, questions)


def _point(id: str, fields: Mapping[str, Any]) -> Point:
    is_update = str(fields.get("is_update")) == "True"  # the files have texts
    return Point(
        id,
        fields["memory_content"],
        fields.get("memory_source") == INTERFERENCE,
        frozenset(fields.get("original_memories") or ()) if is_update else frozenset(),
        _time(fields.get("timestamp")),
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.strptime(text, _TIME).replace(tzinfo=timezone.utc)
