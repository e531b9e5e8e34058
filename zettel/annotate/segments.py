"""Finds topic borders: turns that differ from the turns just before them.

After EM-LLM (Fountas et al. 2024), which begins an event at a token t whose surprise exceeds what was usual before:

    -log P(x_t | x_1 .. x_{t-1}) > mu + gamma * sigma    mu, sigma: mean and deviation of the last tau surprises

Here a token is a turn, and its surprise needs no model: 1 - cos(v_t, v_{t-near} + .. + v_{t-1}). Segments have a least
and a most size: of all ways to cut, the result has borders with the greatest sum of excess over the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Surprises: TypeAlias = NDArray[np.float64]

NEAR = 4
"""Preceding turns whose mean vector a turn is compared with: two exchanges."""
TAU = 24
"""Preceding surprises that define the usual value."""
GAMMA = 1.5
"""Deviations above the usual surprise that justify a shorter segment."""
LEAST, MOST = 8, 24
"""Turns per segment: fewer waste prompt tokens, and one request takes no more."""
MIN_DEVIATION = 0.02
"""Lower bound of the deviation: below, all turns are alike and rounding would make borders."""


def segments(
    vectors: NDArray[Any] | Sequence[Sequence[float]],
    least: int = LEAST,
    most: int = MOST,
    gamma: float = GAMMA,
) -> list[tuple[int, int]]:
    """Return (start, end) of the segments of consecutive turns, in order, together all of them.

    ``vectors`` is (n, d), unit rows in order of time; zero rows (no known word) are never surprising. Every segment
    has at most ``most`` turns, and at least ``least`` unless n allows no such cut: then the pieces are about equal.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    count = len(rows)
    if count == 0:
        return []
    pieces = -(-count // most)
    return _best_cut(_excess(_surprises(rows), gamma), min(least, count // pieces), most)


def _surprises(rows: Surprises) -> Surprises:
    """(n,) how far each turn is from the mean of those just before; NaN where there is nothing to compare."""
    count = len(rows)
    sums = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows, axis=0)])
    places = np.arange(count)
    means = sums[places] - sums[np.maximum(places - NEAR, 0)]
    lengths = np.linalg.norm(means, axis=1) * np.linalg.norm(rows, axis=1)
    known = lengths > np.finfo(np.float32).eps  # sums of sums leave a trace where all rows are zero
    return np.where(known, 1 - np.einsum("nd,nd->n", rows, means) / np.where(known, lengths, 1), np.nan)


def _excess(surprises: Surprises, gamma: float) -> Surprises:
    """Return (n,) deviations by which each surprise exceeds the threshold; a turn without a comparison is usual."""
    excess = np.full(len(surprises), -gamma)
    for place in range(len(surprises)):
        past = surprises[max(0, place - TAU) : place]
        past = past[~np.isnan(past)]
        if len(past) >= NEAR and not np.isnan(surprises[place]):
            excess[place] += (surprises[place] - past.mean()) / max(float(past.std()), MIN_DEVIATION)
    return excess


def _best_cut(excess: Surprises, least: int, most: int) -> list[tuple[int, int]]:
    """Return the cut into pieces of ``least`` to ``most`` whose borders have the greatest sum of excess."""
    count = len(excess)
    best = np.full(count + 1, -np.inf)
    start_of = np.zeros(count + 1, dtype=np.intp)
    best[0] = 0.0
    worth = np.concatenate([np.zeros(1), excess[1:]])  # the first turn is not a border
    for end in range(least, count + 1):
        starts = np.arange(max(0, end - most), end - least + 1)
        sums = best[starts] + worth[starts]
        place = int(sums.argmax())
        best[end], start_of[end] = sums[place], starts[place]
    cuts = []
    end = count
    while end > 0:
        start = int(start_of[end])
        cuts.append((start, end))
        end = start
    return cuts[::-1]
