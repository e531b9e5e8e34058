"""From scores to the hits' rows: best first, ties by ``seq``, one note for an event, insights after all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.model import TIME_MAX, Kind

if TYPE_CHECKING:
    from zettel.query import Bools, Candidates, Ints, Question, Scores


_INSIGHT = tuple(Kind).index(Kind.INSIGHT)


class Ranked(NamedTuple):
    """The best rows for a question, and what they were chosen from.

    ``scorer``: who ranked them. ``faint`` are the strengths of those that count for less, ``told`` what was said of
    rows beyond their scores, by the name of who said it.
    """

    question: Question
    candidates: Candidates
    scores: Scores
    rows: list[int]
    scorer: str
    faint: Mapping[int, float]
    told: Mapping[str, Mapping[int, float]] = {}


def rank(
    scores: Scores, candidates: Candidates, k: int, without: Bools | None = None, *, insights: bool = False
) -> list[int]:
    """Rows of the ``k`` best pool notes, those ``without`` aside, best first; of an event's parts only the best one.

    An insight repeats what the notes say that it was made from, so it comes after all others, unless ``insights``
    were asked for.
    """
    rows = np.flatnonzero(candidates.pool if without is None else candidates.pool & ~without)
    last = repeats(candidates, rows, insights=insights)
    order = rows[np.lexsort((candidates.seq[rows], -scores.score[rows], last))]
    _, first = np.unique(candidates.event[order], return_index=True)
    return [int(row) for row in order[np.sort(first)][:k]]


def repeats(candidates: Candidates, rows: Ints, *, insights: bool) -> Bools:
    """Which of the rows repeat what other notes say, and come after them unless ``insights`` were asked for."""
    last: Bools = (candidates.kind[rows] == _INSIGHT) & (not insights)
    return last


def outdated(candidates: Candidates, today: int | None) -> Bools:
    """Which notes were replaced by ``today`` (microseconds; None: nobody knows, so at any time), (n,)."""
    return candidates.valid_to < TIME_MAX if today is None else candidates.valid_to <= today
