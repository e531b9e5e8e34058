"""Calibration of scores to 0..1: the probability that the best note answers, and the other notes relative to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.ports.query import Bools
    from zettel.scoring.features import FeatureTable


def calibrate(order: NDArray[np.float64], chance: float, pool: Bools) -> NDArray[np.float32]:
    """Scores in 0..1 in the order of ``order``: (n,)."""
    top = float(order[pool].max(initial=0.0))
    if top <= 0:
        return np.zeros(len(order), np.float32)
    return np.asarray(chance * np.minimum(order / top, 1.0), np.float32)
