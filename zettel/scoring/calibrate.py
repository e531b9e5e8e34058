"""Calibration of scores to 0..1: the probability that the best note answers, and the other notes relative to it.

The constants are fitted by logistic regression (`zettel scorer fit` with the files that
:data:`zettel.scoring.features.FEATURES` names) to three kinds of questions: those of a conversation, nine in ten of
which have an answer; those of another conversation; and its own with another speaker's name. On two other
conversations, the AUROC is 0.85 and the Brier score 0.16. Calibration barely separates an answerable question from an
unanswerable one on the same topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.ports.query import Bools, Floats

BIAS = -4.5
LOCAL = 0.34
"""Log-odds per unit of the best local score. It is small: the local score grows with the scope and the question."""
COVERAGE = 4.6
"""Log-odds of a note with every query word, against one with none."""
MISMATCH = -2.2
"""Log-odds per unit of local score by which another speaker's best note beats that of the named speaker."""


class AnswerEvidence(NamedTuple):
    """Evidence for an answer, over all possible hits."""

    local: float
    coverage: float
    mismatch: float


def evidence(local: NDArray[np.floating], coverage: Floats, spoken: NDArray[np.floating]) -> AnswerEvidence:
    """Evidence from the local scores: (n,) each, n at least 1.

    ``spoken`` is the part of each score that comes from the named speaker.
    """
    content = local - spoken
    named = spoken > 0
    mismatch = float(content.max() - content[named].max()) if named.any() else 0.0
    return AnswerEvidence(float(local.max()), float(coverage.max()), mismatch)


def calibrate(order: NDArray[np.float64], evidence: AnswerEvidence, pool: Bools) -> NDArray[np.float32]:
    """Scores in 0..1 in the order of ``order``: (n,)."""
    top = float(order[pool].max(initial=0.0))
    if top <= 0:
        return np.zeros(len(order), np.float32)
    odds = BIAS + LOCAL * evidence.local + COVERAGE * evidence.coverage + MISMATCH * evidence.mismatch
    chance = 1.0 / (1.0 + np.exp(-np.clip(odds, -50.0, 50.0)))
    return np.asarray(chance * np.minimum(order / top, 1.0), np.float32)
