"""Chats between a user and an assistant, with labelled questions: the layout of our own chats, and that of BEAM.

Our layout is a JSON object, one per file or one per line (optionally with gzip)::

    {"chat": "bakery", "messages": [{"id": "S1:1", "role": "user", "content": "…", "session": 1,
     "when": "2024-05-01T18:00:00"}], "questions": [{"question": "…", "kind": "fact", "evidence": ["S1:1"]}]}

A question without evidence has no answer in the chat. A time without a zone is read as UTC. BEAM's own layout is a
folder with a ``chat.json`` (batches of turns) and ``probing_questions/probing_questions.json``.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from zettel.errors import BadRecord, InvalidInput, ZettelError
from zettel.model import Event

from .evaluation import Collection, Question
from .json_records import lines_of, record

BEAM_CHAT, BEAM_QUESTIONS = "chat.json", "probing_questions/probing_questions.json"
"""Files of a chat in BEAM's layout."""
_BEAM_INDEX = re.compile(r"\s*->->\s*[\d,]+\s*$")
"""BEAM's place of a message in its plan, at the end of the content."""
_BEAM_DAY = "%B-%d-%Y"


def read(path: Path) -> list[Collection]:
    """Read the chats of a file or a folder, in the order of their names.

    Raises ``InvalidInput`` without a chat or for a missing file, ``BadRecord`` for a damaged one.
    """
    return [collection for collection, _ in read_with_fields(path)]


def read_with_fields(path: Path) -> list[tuple[Collection, list[dict[str, Any]]]]:
    """Read chats as ``read`` does, and beside each the fields of its questions: the ``answer`` or the ``rubric``."""
    chats = [(_collection(where, chat), chat["questions"]) for where, chat in _chats(path)]
    if not chats:
        raise InvalidInput(f"{path} contains no chat: name a file of chats, or a folder with one file per chat")
    return chats


def files(*paths: Path) -> list[Path]:
    """Return the files that ``read`` reads: those of the chats in a folder, any other path itself."""
    found = []
    for path in paths:
        found += [folder / name for folder in _beam_folders(path) for name in (BEAM_CHAT, BEAM_QUESTIONS)]
        found += _own_files(path)
    return found


class ChangedFact(BaseModel):
    """The messages that state today's value of a fact, and those that state the one before."""

    model_config = ConfigDict(frozen=True)

    chat: str
    question: str
    now: frozenset[str]
    before: frozenset[str]


def read_changed(path: Path) -> dict[tuple[str, str], ChangedFact]:
    """Read changed facts by chat and question. Raises ``InvalidInput`` for a missing file, ``BadRecord``."""
    facts = [record(ChangedFact, f"{path}:{number}", line) for number, line in enumerate(lines_of(path), 1)]
    return {(fact.chat, fact.question): fact for fact in facts}


def is_chat(value: Any) -> bool:
    """Return whether parsed JSON is a chat in our layout."""
    return isinstance(value, dict) and "messages" in value


def _chats(path: Path) -> Iterator[tuple[str, Any]]:
    for folder in _beam_folders(path):
        yield str(folder), _of_beam(folder)
    for file in _own_files(path):
        yield from _of_file(file)


def _beam_folders(path: Path) -> list[Path]:
    if not path.is_dir() or (path / BEAM_CHAT).is_file():
        return [path] if path.is_dir() else []
    folders = [item for item in path.iterdir() if (item / BEAM_CHAT).is_file()]
    return sorted(folders, key=lambda item: (len(item.name), item.name))


def _own_files(path: Path) -> list[Path]:
    if path.is_dir():
        return [] if (path / BEAM_CHAT).is_file() else sorted(path.glob("*.json"))
    return [path]


def _of_file(path: Path) -> Iterator[tuple[str, Any]]:
    content = _content(path)
    if {".jsonl", ".ndjson"}.isdisjoint(path.suffixes):
        yield str(path), _parsed(str(path), content)
        return
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            where = f"{path}, line {number}"
            yield where, _parsed(where, line)


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except FileNotFoundError:
        raise InvalidInput(f"the file {path} does not exist") from None
    except (OSError, EOFError) as error:
        raise BadRecord(f"{path} cannot be read: {error}") from error


def _parsed(where: str, content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise BadRecord(f"{where} is not JSON: {error}") from error


def _collection(where: str, chat: Any) -> Collection:
    try:
        events = [
            Event(
                external_id=str(message["id"]),
                content=message["content"],
                role=message["role"],
                session=str(message["session"]),
                occurred_at=_time(message.get("when")),
            )
            for message in chat["messages"]
        ]
        questions = [
            Question(item["question"], str(item["kind"]), frozenset(map(str, item["evidence"])))
            for item in chat["questions"]
        ]
        name = str(chat["chat"])
    except (KeyError, TypeError, ValueError, ValidationError, ZettelError) as error:
        reason = f"the field {error} is missing" if isinstance(error, KeyError) else str(error).partition("\n")[0]
        raise BadRecord(f"{where} is not a chat with messages and questions: {reason}") from error
    known = {event.external_id for event in events}
    for question in questions:
        if unknown := sorted(question.needed - known):
            raise BadRecord(f"{where}: no message {unknown[0]!r}, which is evidence of {question.text!r}")
    return Collection(name, events, questions)


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def _of_beam(folder: Path) -> dict[str, Any]:
    """Return a chat in BEAM's layout in ours. Its sessions are batches; the first message of one has the date."""
    batches = _parsed(str(folder / BEAM_CHAT), _content(folder / BEAM_CHAT))
    groups = _parsed(str(folder / BEAM_QUESTIONS), _content(folder / BEAM_QUESTIONS))
    try:
        messages, when = [], None
        for batch in batches:
            for message in (message for turn in batch["turns"] for message in turn):
                if day := message.get("time_anchor"):
                    when = datetime.strptime(day, _BEAM_DAY).isoformat()
                content = _BEAM_INDEX.sub("", message["content"])
                session = f"batch {batch['batch_number']}"
                messages.append(message | {"content": content, "session": session, "when": when})
        questions = [
            item | {"kind": kind, "evidence": sorted(set(_ids(item.get("source_chat_ids"))))}
            for kind, items in groups.items()
            for item in items
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadRecord(f"{folder} is not a chat in BEAM's layout: {error}") from error
    return {"chat": folder.name, "messages": messages, "questions": questions}


def _ids(value: Any) -> Iterator[int]:
    """Yield all message ids in a nested value: BEAM names them in lists, or in lists by their purpose."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _ids(item)
