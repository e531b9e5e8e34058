"""The result of a run: its table, with the models, prompts and data behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from zettel.bench import chats
from zettel.bench.results import Result, data_files

from .records import AnswerRecord, Key, VerdictRecord
from .run import Run
from .table import NOTES, table

UNKNOWN = "unknown"
"""The model or prompt of records that name none, such as those of people."""


def result(
    run: Run,
    answers: Mapping[Key, AnswerRecord],
    verdicts: Mapping[Key, VerdictRecord],
    max_tokens: int,
    remarks: Sequence[str],
    files: Iterable[Path] = (),
) -> Result:
    """Return the result of a run; ``remarks`` follow those about the columns and about questions left out.

    ``files`` contain answers or verdicts that others made.
    """
    columns, rows = table(run.questions, answers, verdicts)
    return Result(
        bench="answers",
        data=data_files([*chats.files(run.path), *files]),
        ran_on={"dataset": run.dataset, "questions": len(run.questions)},
        settings={
            "answers by": _names(record.model for record in answers.values()),
            "prompt": _names(record.prompt for record in answers.values()),
            "judged by": _names(record.model for record in verdicts.values()),
            "prompts of the judge": _names(record.prompt for record in verdicts.values()),
            "max_tokens": max_tokens,
        },
        columns=columns,
        rows=rows,
        notes=[*NOTES, *(f"Left out: {count} {reason}." for reason, count in run.skipped.items()), *remarks],
    )


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted({name or UNKNOWN for name in names}))
