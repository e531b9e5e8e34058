"""Notes that were written before, read from a file: to pay once, to compare, and to test without a model."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from zettel.annotate.written import Fields, wrong_with
from zettel.errors import BadRecord, InvalidInput
from zettel.llm.ports import Ask, Reading, Turn, Written, Wrote

BATCH = 64
"""Turns read together: nothing is asked, so this is what one commit takes."""
_BLANK = "\ufeff \t\r\n"


class RecordedAnnotator:
    """Answers from a file of JSON lines, and asks nobody.

    A line is ``{"id", "context", "keywords", "tags"}``, and may have ``importance``, ``kind`` and ``facts``; ``id`` is
    the ``Event.id`` that the caller gave, and all parts of a long event get the same fields. A turn without a record
    keeps its extractive fields. The file is read here: raises ``InvalidInput`` if there is none, and ``BadRecord`` for
    a line that cannot be used.
    """

    remote = True
    batch = BATCH
    before = 0
    links = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.name = f"recorded {self.path.name}"
        self._records = _read(self.path)

    def __len__(self) -> int:
        return len(self._records)

    async def annotate(self, reading: Reading, ask: Ask) -> Wrote:
        """What stands in the file of each turn; never calls ``ask``."""
        return Wrote(tuple(map(self._record, reading.turns)), model=self.name)

    def _record(self, turn: Turn) -> Written | None:
        return None if turn.event_key is None else self._records.get(turn.event_key)


def _read(path: Path) -> dict[str, Written]:
    records: dict[str, Written] = {}
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
                        raise BadRecord(f"{where}: a second record of the id {key!r}: keep one of them")
                    records[key] = written
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
    return records


def _record(text: str, where: str) -> tuple[str, Written]:
    try:
        record: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise BadRecord(f"{where}: this line is not JSON, or cut off") from None
    if not isinstance(record, Mapping):
        raise BadRecord(f'{where}: expected an object with "id", "context", "keywords" and "tags"')
    key = record.get("id")
    if not isinstance(key, str) or not key:
        raise BadRecord(f'{where}: "id" is missing: it is the id that was given to the event')
    try:
        return key, Fields.model_validate(dict(record)).written()
    except ValidationError as error:
        raise BadRecord(f"{where}: {wrong_with(error)}") from None
