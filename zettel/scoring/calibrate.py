"""From a ranking to a score of 0 to 1: how likely the best note answers, and how far the others stand behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.ports import Bools, Floats

BIAS = -6.0
NEAR = 0.8
"""Log-odds per unit of the best local score."""
FALLOFF = 0.25
"""Power of a note's share of the walk, relative to the best one's: shares fall faster than the chance of an answer."""


def calibrate(order: NDArray[np.float64], near: NDArray[np.float64], values: dict[str, Floats], pool: Bools) -> Floats:
    """Scores in 0..1, in the order of ``order``: (n,)."""
    top = float(order[pool].max(initial=0.0))
    if top <= 0:
        return np.zeros(len(order), np.float32)
    best = float(near[pool].max())
    chance = 1.0 / (1.0 + np.exp(-(BIAS + NEAR * best)))
    return np.asarray(chance * np.minimum(order / top, 1.0) ** FALLOFF, np.float32)
