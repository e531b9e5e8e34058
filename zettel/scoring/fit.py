"""Fits weights to labelled questions: listwise softmax regression for the local score, logistic for the calibration.

Both losses are convex. The penalty is the squared weight in units of the feature's standard deviation, so that it does
not depend on a feature's scale. Leave-one-group-out validation chooses its size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from zettel.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from zettel.ports.query import Bools, Floats

    Vector = NDArray[np.float64]
    Loss = Callable[[Vector], tuple[float, Vector]]

Group = TypeVar("Group")

PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Candidate penalties: the smallest barely matters, the largest halves the weights."""
TOLERANCE = 1e-8
"""Gradient at which a fit has converged."""


class Labelled(NamedTuple):
    """Raw feature values of a question's rows, and a mask of the evidence."""

    values: Floats  # (n, f)
    positive: Bools  # (n,)


def listwise(questions: Sequence[Labelled]) -> Loss:
    """Mean cross-entropy between the evidence and the softmax of the local scores, with its gradient.

    With s = values · weights over a question's rows and E its evidence,

        loss = log Σ exp s_i - mean s_i over E

    This is ListNet's top-one loss (Cao et al. 2007, "Learning to Rank: From Pairwise Approach to Listwise Approach"),
    and for one evidence row the conditional logit of McFadden 1974. The gradient is the softmax mean of each
    feature minus its mean over the evidence. Questions with no evidence, or with nothing else, are skipped. Raises
    ``InvalidInput`` if none remains.
    """
    questions = [question for question in questions if question.positive.any() and not question.positive.all()]
    if not questions:
        raise InvalidInput("nothing to fit: no question has evidence among its candidates")
    values = [np.asarray(question.values, np.float64) for question in questions]
    evidence = [rows[question.positive].mean(axis=0) for rows, question in zip(values, questions, strict=True)]

    def loss(weights: Vector) -> tuple[float, Vector]:
        total, slope = 0.0, np.zeros(len(weights))
        for rows, target in zip(values, evidence, strict=True):
            scores = rows @ weights
            top = scores.max()
            odds = np.exp(scores - top)
            total += top + np.log(odds.sum()) - target @ weights
            slope += odds @ rows / odds.sum() - target
        return float(total) / len(values), slope / len(values)

    return loss


def logistic(values: Vector, answered: Bools) -> Loss:
    """Mean binary cross-entropy of logistic regression, with its gradient: (n, f), (n,) bool.

    Raises ``InvalidInput`` unless some questions are answered and some are not.
    """
    if answered.all() or not answered.any():
        raise InvalidInput("nothing to fit: give questions with an answer and questions without one")

    def loss(weights: Vector) -> tuple[float, Vector]:
        odds = values @ weights
        cost = np.logaddexp(0.0, odds) - answered * odds
        return float(cost.mean()), (chances(values, weights) - answered) @ values / len(values)

    return loss


def chances(values: Vector, weights: Vector) -> Vector:
    """The logistic function of values · weights: (n, f), (f,) -> (n,) in 0..1."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * (values @ weights))), np.float64)


def fit(loss: Loss, spread: Vector, penalty: float) -> Vector:
    """The weights with the least loss + penalty / 2 · Σ (spread · weight)², (f,), by L-BFGS from 0.

    A weight with ``spread`` 0 is not penalised: a column of ones is a bias, and a feature that is constant within every
    question has no gradient and stays at 0.
    """
    try:
        from scipy.optimize import minimize
    except ImportError as error:
        raise MissingExtra("fitting weights", "bench") from error

    scale = np.where(spread > 0, spread, 1.0)
    penalties = np.where(spread > 0, penalty, 0.0)

    def objective(scaled: Vector) -> tuple[float, Vector]:
        cost, slope = loss(scaled / scale)
        return cost + 0.5 * float(penalties @ scaled**2), slope / scale + penalties * scaled

    fitted = minimize(objective, np.zeros(len(spread)), jac=True, method="L-BFGS-B", options={"gtol": TOLERANCE})
    return np.asarray(fitted.x / scale, np.float64)


def spread_within(questions: Sequence[Labelled]) -> Vector:
    """Each feature's standard deviation within a question, root mean square over questions, (f,)."""
    variances = [np.asarray(question.values, np.float64).var(axis=0) for question in questions]
    return np.asarray(np.sqrt(np.mean(variances, axis=0)), np.float64)


def fit_listwise(questions: Sequence[Labelled], penalty: float) -> Vector:
    """Weights of the local score, (f,). Raises ``InvalidInput`` as :func:`listwise` does."""
    return fit(listwise(questions), spread_within(questions), penalty)


def fit_logistic(values: Vector, answered: Bools, penalty: float) -> Vector:
    """Log-odds per column of ``values``, (f,); a column of ones is the bias. Raises ``InvalidInput``."""
    return fit(logistic(values, answered), values.std(axis=0), penalty)


def leave_one_out(groups: Sequence[Group], weigh: Callable[[Sequence[Group]], Vector]) -> list[Vector]:
    """Return for each of two or more groups the weights that ``weigh`` fits to the others."""
    return [weigh([*groups[:place], *groups[place + 1 :]]) for place in range(len(groups))]


def best_penalty(
    groups: Sequence[Group],
    weigh: Callable[[Sequence[Group], float], Vector],
    cost: Callable[[Group, Vector], float],
) -> float:
    """The penalty with the least mean ``cost`` of a group under weights fitted to the others."""

    def expected(penalty: float) -> float:
        weights = leave_one_out(groups, lambda others: weigh(others, penalty))
        return sum(map(cost, groups, weights)) / len(groups)

    return min(PENALTIES, key=expected)


def rounded(weights: Vector, digits: int) -> Vector:
    """Round to significant digits, (f,)."""
    return np.array([float(f"{weight:.{digits}g}") + 0.0 for weight in weights])
