"""Weights from labelled questions: of the local score by listwise softmax regression, of the score by logistic.

Both losses are convex, so that there is one answer, and both are penalised by the square of the weights, each in units
of its feature's standard deviation: a feature pays for what it does, not for the scale it is told in. How much they are
penalised is chosen by leaving out one group of questions after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from zettel.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from zettel.query import Bools, Floats

    Vector = NDArray[np.float64]
    Loss = Callable[[Vector], tuple[float, Vector]]

Group = TypeVar("Group")

PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Which are tried: from one that is hardly felt to one that halves the weights."""
TOLERANCE = 1e-8
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
        cost = np.logaddexp(0.0, odds) - answered * odds
        return float(cost.mean()), (chances(values, weights) - answered) @ values / len(values)

    return loss


def chances(values: Vector, weights: Vector) -> Vector:
    """The logistic function of values · weights: (n, f), (f,) -> (n,) in 0..1."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * (values @ weights))), np.float64)


def fit(loss: Loss, spread: Vector, penalty: float) -> Vector:
    """The weights of least loss + penalty / 2 · Σ (spread · weight)², (f,), by L-BFGS from 0.

    Where ``spread`` is 0 nothing is penalised: a column of ones is a bias, and a feature that never differs
    within a question has no gradient and stays at 0.
    """
    from scipy.optimize import minimize

    scale = np.where(spread > 0, spread, 1.0)
    held = np.where(spread > 0, penalty, 0.0)

    def objective(scaled: Vector) -> tuple[float, Vector]:
        cost, slope = loss(scaled / scale)
        return cost + 0.5 * float(held @ scaled**2), slope / scale + held * scaled

    found = minimize(objective, np.zeros(len(spread)), jac=True, method="L-BFGS-B", options={"gtol": TOLERANCE})
    return np.asarray(found.x / scale, np.float64)


def spread_within(questions: Sequence[Labelled]) -> Vector:
    """Each feature's standard deviation within a question, root mean square over questions, (f,)."""
    variances = [np.asarray(one.values, np.float64).var(axis=0) for one in questions]
    return np.asarray(np.sqrt(np.mean(variances, axis=0)), np.float64)


def fit_listwise(questions: Sequence[Labelled], penalty: float) -> Vector:
    """Weights of the local score, (f,). Raises ``InvalidInput`` if no question tells anything."""
    return fit(listwise(questions), spread_within(questions), penalty)


def fit_logistic(values: Vector, answered: Bools, penalty: float) -> Vector:
    """Log-odds per column of ``values``, (f,); a column of ones is the bias. Raises ``InvalidInput`` as above."""
    return fit(logistic(values, answered), values.std(axis=0), penalty)


def held_out(groups: Sequence[Group], weigh: Callable[[Sequence[Group]], Vector]) -> list[Vector]:
    """For each group the weights that ``weigh`` makes of all the others. Takes two groups or more."""
    return [weigh([*groups[:place], *groups[place + 1 :]]) for place in range(len(groups))]


def best_penalty(
    groups: Sequence[Group],
    weigh: Callable[[Sequence[Group], float], Vector],
    cost: Callable[[Group, Vector], float],
) -> float:
    """The one of PENALTIES with the least mean ``cost`` of each group under the weights that the others give."""

    def expected(penalty: float) -> float:
        weights = held_out(groups, lambda others: weigh(others, penalty))
        return sum(map(cost, groups, weights)) / len(groups)

    return min(PENALTIES, key=expected)


def rounded(weights: Vector, digits: int) -> Vector:
    """To so many significant digits, (f,)."""
    return np.array([float(f"{weight:.{digits}g}") + 0.0 for weight in weights])
