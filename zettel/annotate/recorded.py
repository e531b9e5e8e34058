"""The annotator that reads annotations from a file: to pay once, to compare, and to test without a model."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from zettel.errors import BadRecord, InvalidInput
from zettel.llm.note_fields import Fields, wrong_with
from zettel.ports.language_model import AnnotationItem, AnnotationRequest, AnnotationResult, Ask, ModelAnnotation

BATCH = 64
"""Turns per commit; no model is called."""
_BLANK = "\ufeff \t\r\n"


class RecordedAnnotator:
    """Annotates turns from a file of JSON lines, without a model.

    A line is ``{"id", "context", "keywords", "tags"}``, optionally with ``importance``, ``kind`` and ``facts``.
    ``id`` is the caller's ``Event.id``; all parts of a long event get the same fields. A turn without a record keeps
    its extractive fields.

    Args:
        path: The file.

    Raises:
        InvalidInput: The file cannot be read.
        BadRecord: A line is invalid.

    Examples:
        >>> from pathlib import Path
        >>> from zettel import RecordedAnnotator
        >>> line = '{"id": "sail", "context": "Plans", "keywords": ["June"], "tags": []}'
        >>> written = Path("notes.jsonl").write_text(line)
        >>> annotator = RecordedAnnotator("notes.jsonl")
    """

    batch = BATCH
    before = 0
    links = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.name = f"recorded {self.path.name}"
        self._records = _read(self.path)

    def __len__(self) -> int:
        return len(self._records)

    async def annotate(self, reading: AnnotationRequest, ask: Ask) -> AnnotationResult:
        """Return the record of each turn; never calls ``ask``."""
        return AnnotationResult(tuple(map(self._record, reading.turns)), model=self.name)

    def _record(self, turn: AnnotationItem) -> ModelAnnotation | None:
        return None if turn.event_key is None else self._records.get(turn.event_key)


def _read(path: Path) -> dict[str, ModelAnnotation]:
    records: dict[str, ModelAnnotation] = {}
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                where = f"{path}:{number}"
                try:
                    text = raw.decode("utf-8").strip(_BLANK)
                except UnicodeDecodeError as error:
                    raise BadRecord(f"{where}: byte {error.start} is not UTF-8") from None
                if text:
                    key, written = _record(text, where)
                    if key in records:
                        raise BadRecord(f"{where}: duplicate id {key!r}: keep one of the records")
                    records[key] = written
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
    return records


def _record(text: str, where: str) -> tuple[str, ModelAnnotation]:
    try:
        record: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise BadRecord(f"{where}: this line is not JSON, or is cut off") from None
    if not isinstance(record, Mapping):
        raise BadRecord(f'{where}: expected an object with "id", "context", "keywords" and "tags"')
    key = record.get("id")
    if not isinstance(key, str) or not key:
        raise BadRecord(f'{where}: "id" is missing: write the id that you gave to the event')
    try:
        return key, Fields.model_validate(dict(record)).annotation()
    except ValidationError as error:
        raise BadRecord(f"{where}: {wrong_with(error)}") from None
