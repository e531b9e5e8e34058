"""Answers and verdicts from files, by people or other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from zettel.errors import BadRecord, InvalidInput

from .records import AnswerRecord, Key, Record, VerdictRecord, read
from .run import Run

Kind = TypeVar("Kind", bound=Record)


def read_answers(file: Path, run: Run) -> dict[Key, AnswerRecord]:
    """Return the answers of a file about questions of a run. Raises ``InvalidInput``, ``BadRecord``."""
    return _by_key(file, AnswerRecord, run)


def read_verdicts(file: Path, run: Run) -> dict[Key, VerdictRecord]:
    """Return the verdicts of a file about questions of a run. Raises ``InvalidInput``, ``BadRecord``."""
    return _by_key(file, VerdictRecord, run)


def _by_key(file: Path, kind: type[Kind], run: Run) -> dict[Key, Kind]:
    records: dict[Key, Kind] = {}
    unknown = 0
    for record in read(file, kind):
        if record.id not in run.questions:
            unknown += 1
        elif record.key in records:
            raise BadRecord(f"{file} has two lines about {record.id} and {record.system}: leave one out")
        else:
            records[record.key] = record
    if not records:
        raise InvalidInput(f"{file} has no line about a question of {run.path}: {unknown} lines are about others")
    return records
