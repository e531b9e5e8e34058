"""The table of a run: scores per system, with intervals and p-values, tokens of contexts, and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from zettel.bench.comparison import DIGITS, SIGNIFICANCE
from zettel.bench.results import Cell
from zettel.bench.significance import mean_interval, paired_p
from zettel.bench.timing import percentiles

from .contexts import OURS, SYSTEMS
from .datasets import Asked
from .records import AnswerRecord, Key, VerdictRecord
from .requests import SHOWN_LABELS

PERCENTILES = (50, 95)
ASKED = "questions"
"""The last row: the number of questions behind each score, at most."""
NOTES = (
    "Score: mean over questions; a question without a usable answer counts as 0, one without a verdict is left out. "
    f"{SIGNIFICANCE} p is that of the questions that both systems have.",
    "Tokens of a context as zettel estimates them, mean; ms to build a context; s for an answer, without cached "
    "answers and the first ones, which load LiteLLM.",
)
"""Remarks about the columns."""


class Graded(NamedTuple):
    """The answers of one system, the score of each graded question by id, and its labels."""

    answers: Sequence[AnswerRecord]
    scores: Mapping[str, float]
    labels: Mapping[str, Sequence[str]]


def table(
    questions: Mapping[str, Asked], answers: Mapping[Key, AnswerRecord], verdicts: Mapping[Key, VerdictRecord]
) -> tuple[list[str], list[list[Cell]]]:
    """Return the columns and the rows of a run, a row per system and one with the number of questions."""
    names = sorted({system for _, system in answers}, key=lambda name: (_place(name), name))
    systems = {name: _graded(name, answers, verdicts) for name in names}
    kinds = sorted({questions[id].kind for id, _ in answers})
    shown = sorted({label for each in questions.values() for label in SHOWN_LABELS.get(each.judge, ())})
    given = {label for graded in systems.values() for labels in graded.labels.values() for label in labels}
    shown = [label for label in shown if label in given]
    columns = ["contexts", "score", "low", "high", "p", *kinds, *(label.lower() for label in shown), "tokens"]
    columns += [f"p{p} ms" for p in PERCENTILES] + [f"answer p{p} s" for p in PERCENTILES]
    columns += ["without answer", "without verdict"]
    rows: list[list[Cell]] = []
    for name, graded in systems.items():
        scores = graded.scores
        row: list[Cell] = [name, _mean(list(scores.values()))]
        row += [round(bound, DIGITS) for bound in mean_interval(list(scores.values()))] if scores else [None, None]
        row.append(None if name == OURS or OURS not in systems else _p(scores, systems[OURS].scores))
        row += [_mean([score for id, score in scores.items() if questions[id].kind == kind]) for kind in kinds]
        row += [_mean([float(label in labels) for labels in graded.labels.values()]) for label in shown]
        row += [_mean([each.tokens for each in graded.answers if each.tokens is not None], 0)]
        row += _times([each.seconds for each in graded.answers], 1)
        row += _times([each.answer_seconds for each in graded.answers], 1_000)
        failed = sum(each.answer is None for each in graded.answers)
        rows.append([*row, failed, len(graded.answers) - len(scores)])
    ids = {id for id, _ in answers}
    sizes: list[Cell] = [sum(questions[id].kind == kind for id in ids) for kind in kinds]
    rows.append([ASKED, len(ids), None, None, None, *sizes, *[None] * (len(columns) - len(kinds) - 5)])
    return columns, rows


def _place(name: str) -> int:
    return SYSTEMS.index(name) if name in SYSTEMS else len(SYSTEMS)


def _graded(name: str, answers: Mapping[Key, AnswerRecord], verdicts: Mapping[Key, VerdictRecord]) -> Graded:
    own = [record for (_, system), record in answers.items() if system == name]
    scores = {record.id: 0.0 for record in own if record.answer is None}
    graded = {id: verdicts[id, system] for id, system in (record.key for record in own) if (id, system) in verdicts}
    scores |= {id: verdict.score for id, verdict in graded.items() if verdict.score is not None}
    return Graded(own, scores, {id: graded[id].labels for id in graded if id in scores})


def _mean(values: Sequence[float], digits: int = DIGITS) -> Cell:
    return round(float(np.mean(values)), digits) if values else None


def _p(scores: Mapping[str, float], ours: Mapping[str, float]) -> Cell:
    both = sorted(scores.keys() & ours.keys())
    return round(paired_p([scores[id] for id in both], [ours[id] for id in both]), DIGITS) if both else None


def _times(seconds: Sequence[float | None], divisor: int) -> list[Cell]:
    """Return the percentiles of the known times, in milliseconds divided by ``divisor``."""
    known = [value for value in seconds if value is not None]
    return [round(value / divisor, 2) for value in percentiles(known, PERCENTILES)] if known else [None, None]
