"""Weights from labelled questions: of the local score by listwise softmax regression, of the score by logistic.

Both losses are convex, so that there is one answer, and both are penalised by the square of the weights, each in units
of its feature's standard deviation: a feature pays for what it does, not for the scale it is told in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from zettel.ports import Bools, Floats

    Vector = NDArray[np.float64]
    Loss = Callable[[Vector], tuple[float, Vector]]

DIGITS = 2
"""Significant digits of a rounded weight: more would tell of these questions, not of the features."""
TOLERANCE = 1e-9
"""Of the gradient, at which a fit has arrived."""


class Labelled(NamedTuple):
    """One question's rows: their raw feature values, and which of them are evidence."""

    values: Floats  # (n, f)
    positive: Bools  # (n,)


def listwise(questions: Sequence[Labelled]) -> Loss:
    """Mean cross-entropy between the evidence and the softmax of the local scores, with its gradient.

    With s = values · weights over a question's rows and E its evidence,

        loss = log Σ exp s_i - mean s_i over E

    This is ListNet's top-one loss (Cao et al. 2007, "Learning to Rank: From Pairwise Approach to Listwise Approach"),
    and for one evidence row the conditional logit of McFadden 1974. The gradient is what the softmax expects of each
    feature less what the evidence has. Questions without evidence, or with nothing else, tell nothing and are
    left out; raises ``InvalidInput`` if none remains.
    """
    told = [one for one in questions if one.positive.any() and not one.positive.all()]
    if not told:
        raise InvalidInput("nothing to fit: no question has evidence among its candidates")
    values = [np.asarray(one.values, np.float64) for one in told]
    wanted = [rows[one.positive].mean(axis=0) for rows, one in zip(values, told, strict=True)]

    def loss(weights: Vector) -> tuple[float, Vector]:
        total, slope = 0.0, np.zeros(len(weights))
        for rows, evidence in zip(values, wanted, strict=True):
            scores = rows @ weights
            top = scores.max()
            odds = np.exp(scores - top)
            total += top + np.log(odds.sum()) - evidence @ weights
            slope += odds @ rows / odds.sum() - evidence
        return float(total) / len(values), slope / len(values)

    return loss


def logistic(values: Vector, answered: Bools) -> Loss:
    """Mean binary cross-entropy of logistic regression, with its gradient: (n, f), (n,) bool.

    Raises ``InvalidInput`` unless there are both kinds.
    """
    if answered.all() or not answered.any():
        raise InvalidInput("nothing to fit: it takes questions with an answer and questions without one")

    def loss(weights: Vector) -> tuple[float, Vector]:
        odds = values @ weights
        chance = 1.0 / (1.0 + np.exp(-odds))
        cost = np.logaddexp(0.0, odds) - answered * odds
        return float(cost.mean()), (chance - answered) @ values / len(values)

    return loss


def fit(loss: Loss, spread: Vector, penalty: float) -> Vector:
    """The weights of least loss + penalty / 2 · Σ (spread · weight)², (f,), by L-BFGS.

    ``spread`` is each feature's standard deviation; one that never differs gets the weight 0, and one of 0 that
    does (a bias) is not penalised: pass ``np.nan`` for it.
    """
    from scipy.optimize import minimize

    free = np.isnan(spread)
    used = free | (np.nan_to_num(spread) > 0)
    scale = np.where(used & ~free, spread, 1.0)
    held = np.where(used & ~free, penalty, 0.0)

    def objective(scaled: Vector) -> tuple[float, Vector]:
        cost, slope = loss(scaled / scale)
        slope = np.where(used, slope / scale + held * scaled, 0.0)
        return cost + 0.5 * float(held @ scaled**2), slope

    found = minimize(objective, np.zeros(len(spread)), jac=True, method="L-BFGS-B", options={"gtol": TOLERANCE})
    return np.asarray(found.x / scale, np.float64)
