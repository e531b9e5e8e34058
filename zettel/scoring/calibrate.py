"""From a ranking to a score of 0 to 1: how likely the best note answers, and how far the others stand behind it.

The constants are fitted by logistic regression to the conversations of the demo and the tests (`zettel scorer fit` with
the files that :data:`zettel.scoring.fusion.FEATURES` names): their own questions, nine in ten of which have an answer,
and those of another conversation, which nothing answers. On the two held out, the area under the ROC curve is 0.88 and
the Brier score 0.14. It tells a strange question from one that belongs here, but hardly one that belongs here and
happens to have no answer: that speaks of the same things.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.query import Bools, Floats

BIAS = -5.0
NEAR = 0.44
"""Log-odds per unit of the best local score: small, for it grows with the scope and with the question."""
COVERAGE = 5.4
"""Log-odds of a note that holds every asked word, against one with none."""


def calibrate(
    order: NDArray[np.float64], near: NDArray[np.float64], coverage: Floats, pool: Bools
) -> NDArray[np.float32]:
    """Scores in 0..1 that rank as ``order`` does: (n,). ``near`` and ``coverage`` are those of the pool rows."""
    top = float(order[pool].max(initial=0.0))
    if top <= 0:
        return np.zeros(len(order), np.float32)
    odds = BIAS + NEAR * float(near.max()) + COVERAGE * float(coverage.max())
    chance = 1.0 / (1.0 + np.exp(-np.clip(odds, -50.0, 50.0)))
    return np.asarray(chance * np.minimum(order / top, 1.0), np.float32)
