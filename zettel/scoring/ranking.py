"""Ranks candidates by score: of equals the newer first, one note per event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.model import TIME_MAX

if TYPE_CHECKING:
    from zettel.ports.query import Bools, Candidates, Question, Scores


LIFT = 1.05
"""Least ratio between the score of a replacement and that of the note it replaces, or that it outvotes."""


class Ranked(NamedTuple):
    """The best rows for a question, with the candidates and scores that they come from.

    ``scorer`` names the scorer and rerankers. ``strengths`` are those of decayed rows. ``extra_features`` are values of
    rerankers by name and row. ``confidences`` are those of rows that other rows contradict, and ``witnesses`` the
    numbers of writers for and against them. ``updated`` are rows with those that replace a part of them, latest last.
    """

    question: Question
    candidates: Candidates
    scores: Scores
    rows: list[int]
    scorer: str
    strengths: Mapping[int, float]
    extra_features: Mapping[str, Mapping[int, float]] = {}
    confidences: Mapping[int, float] = {}
    witnesses: Mapping[int, tuple[int, int]] = {}
    updated: Mapping[int, Sequence[int]] = {}


def rank(scores: Scores, candidates: Candidates, k: int, excluded: Bools | None = None) -> list[int]:
    """Rows of the ``k`` best pool notes that are not ``excluded``, best first; of an event only its best part."""
    rows = np.flatnonzero(candidates.pool if excluded is None else candidates.pool & ~excluded)
    seq = candidates.seq[rows]
    _, head, event = np.unique(candidates.event[rows], return_index=True, return_inverse=True)
    newest = (seq, -seq[head][event], -candidates.occurred_at[rows])  # of equal parts the first
    order = rows[np.lexsort((*newest, -scores.score[rows]))]
    _, first = np.unique(candidates.event[order], return_index=True)
    return [int(row) for row in order[np.sort(first)][:k]]


def with_rows_of(scores: Scores, others: Scores, rows: Sequence[int]) -> Scores:
    """Return a copy of the scores in which these rows have the values of other scores of the same candidates."""
    copies = {name: getattr(scores, name).copy() for name in ("score", "local_score", "graph_score", "features")}
    for name, values in copies.items():
        values[rows] = getattr(others, name)[rows]
    return replace(scores, **copies)


def outdated(candidates: Candidates, today: int | None) -> Bools:
    """True for notes replaced by ``today`` (microseconds; None: at any time), (n,)."""
    return candidates.valid_to < TIME_MAX if today is None else candidates.valid_to <= today
