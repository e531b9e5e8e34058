"""Records of a run as JSON lines: contexts, answers and verdicts, each appended as soon as it exists."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from zettel.bench.json_records import lines_of, record

_DIGEST_CHARS = 16


Key: TypeAlias = "tuple[str, str]"
"""The id of a question, and the system that made its context."""


class Record(BaseModel):
    """A line about the answer to one question from the context of one system; other fields of a line are ignored."""

    model_config = ConfigDict(extra="ignore")

    id: str
    system: str

    @property
    def key(self) -> Key:
        return self.id, self.system


class ContextRecord(Record):
    """A context: its hash, its estimated ``tokens``, and the ``seconds`` it took. A full text is left out."""

    tokens: int
    seconds: float
    context_hash: str
    context: str | None = None


class AnswerRecord(Record):
    """An answer, None if a model gave none that is usable; ``answer_seconds`` are None for a cached one.

    Answers of people and of other programs need only ``id``, ``system`` and ``answer``.
    """

    answer: str | None
    model: str = ""
    prompt: str = ""
    context_hash: str = ""
    answer_seconds: float | None = None
    tokens: int | None = None
    seconds: float | None = None


class VerdictRecord(Record):
    """A grade from 0 to 1, None if a judge gave no usable one, with its labels and reasons, one for each criterion."""

    score: Annotated[float, Field(ge=0, le=1)] | None
    model: str = ""
    prompt: str = ""
    answer_hash: str = ""
    labels: list[str] = []
    reasons: list[str] = []


Kind = TypeVar("Kind", bound=Record)


def text_hash(text: str) -> str:
    """Return a hash of a context or an answer."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARS]


def read(path: Path, kind: type[Kind]) -> Iterator[Kind]:
    """Yield the records of a file. Raises ``InvalidInput`` for a missing file, ``BadRecord`` for a damaged line."""
    for number, text in enumerate(lines_of(path), 1):
        if text.strip():
            yield record(kind, f"{path}, line {number}", text)


class Journal:
    """A file of records that only grows; ``is_new`` replaces an earlier one.

    A last line without its end, from a killed process, is removed.
    """

    def __init__(self, path: Path, *, is_new: bool = False) -> None:
        self.path = path
        if is_new:
            path.unlink(missing_ok=True)
        elif path.exists():
            with path.open("r+b") as file:
                content = file.read()
                file.truncate(content.rfind(b"\n") + 1)

    def read(self, kind: type[Kind]) -> list[Kind]:
        """Return the records so far."""
        return list(read(self.path, kind)) if self.path.exists() else []

    def append(self, record: Record, **more: Any) -> None:
        """Write a record, with ``more`` fields for people."""
        line = json.dumps({**record.model_dump(), **more}, ensure_ascii=False)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
