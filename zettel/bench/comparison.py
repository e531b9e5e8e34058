"""The table of a comparison: measures of zettel and baselines over the same questions, with intervals and p-values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from .evaluation import LATENCY_COLUMNS, OURS, Outcome, latency
from .metrics import QuestionResult, auroc
from .results import Cell
from .significance import DRAWS, mean_interval, paired_p

ASKED = "asked"
"""The last row: the number of questions behind each measure."""
DIGITS = 4
SIGNIFICANCE = (
    f"low and high: 95 % bootstrap interval over questions; p: paired randomization test against {OURS}, "
    f"{DRAWS:,} draws each."
)
"""The remark that explains the columns of headlines."""

Measure: TypeAlias = Callable[[QuestionResult], "float | None"]
"""A measure of one question; None for a question that it does not count."""
Answerable: TypeAlias = Callable[[QuestionResult], "bool | None"]
"""Returns True for a question with an answer, False without one, and None for a question that AUROC does not count."""


def compare(
    outcome: Outcome,
    measures: Mapping[str, Measure],
    headlines: Collection[str],
    answerable: Answerable | None = None,
) -> tuple[list[str], list[list[Cell]]]:
    """Return the columns after the first and the rows of a result: a row per system, and the number of questions.

    Each measure is a mean over the questions that it counts. The ``headlines`` among them also have columns for the
    bounds of the mean and for the p-value of the difference from zettel. With ``answerable`` there is a column AUROC:
    how well the first hit's score separates questions with and without an answer.
    """
    columns = [*measures, *(["AUROC"] if answerable else [])]
    columns += [f"{bound} {name}" for name in headlines for bound in ("low", "high", "p")] + LATENCY_COLUMNS
    rows: list[list[Cell]] = []
    for system, results in outcome.results.items():
        row: list[Cell] = [system, *(_mean(_values(results, measure)) for measure in measures.values())]
        row += [_auroc(results, answerable)] if answerable else []
        for name in headlines:
            row += _significance(results, None if system == OURS else outcome.results[OURS], measures[name])
        rows.append([*row, *latency(outcome, system)])
    ours = outcome.results[OURS]
    sizes: list[Cell] = [len(_values(ours, measure)) for measure in measures.values()]
    sizes += [sum(answerable(result) is False for result in ours)] if answerable else []
    rows.append([ASKED, *sizes, *[None] * (len(columns) - len(sizes))])
    return columns, rows


def _values(results: Sequence[QuestionResult], measure: Measure) -> list[float]:
    return [value for result in results if (value := measure(result)) is not None]


def _mean(values: Sequence[float]) -> Cell:
    return round(sum(values) / len(values), DIGITS) if values else None


def _significance(
    results: Sequence[QuestionResult], ours: Sequence[QuestionResult] | None, measure: Measure
) -> list[Cell]:
    """Return the bounds of the mean, and p against ``ours``."""
    values = _values(results, measure)
    if not values:
        return [None, None, None]
    p = None if ours is None else round(paired_p(values, _values(ours, measure)), DIGITS)
    return [*(round(bound, DIGITS) for bound in mean_interval(values)), p]


def _auroc(results: Sequence[QuestionResult], answerable: Answerable) -> Cell:
    """Return the AUROC of the first hits' scores; None for a baseline, which has no calibrated scores."""
    scored = [(answerable(result), result.score) for result in results if result.score is not None]
    area = auroc(
        [score for has_answer, score in scored if has_answer is True],
        [score for has_answer, score in scored if has_answer is False],
    )
    return None if area is None else round(area, DIGITS)
