"""From a ranking to a score of 0 to 1: how likely the best note answers, and how far the others stand behind it.

The constants are fitted by logistic regression to the conversations of the demo and the tests (`zettel scorer fit` with
the files that :data:`zettel.scoring.fusion.FEATURES` names): their own questions, nine in ten of which have an answer,
those of another conversation, which nothing answers, and their own with another speaker's name in them. On the two
held out, the area under the ROC curve is 0.85 and the Brier score 0.16. It hardly tells a question that belongs here
and has an answer from one that belongs here, confuses nobody, and happens to have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.query import Bools, Floats

BIAS = -4.5
NEAR = 0.34
"""Log-odds per unit of the best local score: small, for it grows with the scope and with the question."""
COVERAGE = 4.6
"""Log-odds of a note that holds every asked word, against one with none."""
MISMATCH = -2.2
"""Log-odds per unit of local score by which somebody else said something better than who the question names."""


class Evidence(NamedTuple):
    """What speaks for an answer, over all notes that may become hits."""

    near: float
    coverage: float
    mismatch: float


def evidence(near: NDArray[np.floating], coverage: Floats, spoken: NDArray[np.floating]) -> Evidence:
    """What the local scores tell of a question: (n,) each, n at least 1.

    ``spoken`` is what each score has because the question names who said the note; without it, a question about what
    one person did that another did, finds its best note with the other.
    """
    content = near - spoken
    named = spoken > 0
    mismatch = float(content.max() - content[named].max()) if named.any() else 0.0
    return Evidence(float(near.max()), float(coverage.max()), mismatch)


def calibrate(order: NDArray[np.float64], told: Evidence, pool: Bools) -> NDArray[np.float32]:
    """Scores in 0..1 that rank as ``order`` does: (n,)."""
    top = float(order[pool].max(initial=0.0))
    if top <= 0:
        return np.zeros(len(order), np.float32)
    odds = BIAS + NEAR * told.near + COVERAGE * told.coverage + MISMATCH * told.mismatch
    chance = 1.0 / (1.0 + np.exp(-np.clip(odds, -50.0, 50.0)))
    return np.asarray(chance * np.minimum(order / top, 1.0), np.float32)
