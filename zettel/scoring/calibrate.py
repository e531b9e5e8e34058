"""From a ranking to a score of 0 to 1: how likely the best note answers, and how far the others stand behind it.

The numbers are set by hand. On our own test and demo questions, asked of their own scope and of each other's (where
nothing answers them), the Brier score of the first hit is 0.071; logistic regression fitted to them reaches 0.069.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.ports import Bools, Floats

BIAS = -4.5
NEAR = 0.2
"""Log-odds per unit of the best local score: small, for it grows with the scope and with the question."""
SHARE = 2.0
"""Log-odds of a walk that ends on one note, against one that is spread thin."""
COVERAGE = 3.0
"""Log-odds of a note that holds every asked word, against one with none."""


def calibrate(
    order: NDArray[np.float64], near: NDArray[np.float64], coverage: Floats, pool: Bools
) -> NDArray[np.float32]:
    """Scores in 0..1 that rank as ``order`` does: (n,). ``near`` and ``coverage`` are those of the pool rows."""
    top = float(order[pool].max(initial=0.0))
    if top <= 0:
        return np.zeros(len(order), np.float32)
    odds = BIAS + NEAR * float(near.max()) + SHARE * min(top, 1.0) + COVERAGE * float(coverage.max())
    chance = 1.0 / (1.0 + np.exp(-np.clip(odds, -50.0, 50.0)))
    return np.asarray(chance * np.minimum(order / top, 1.0), np.float32)
