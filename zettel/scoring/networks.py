"""Small networks that score notes, evaluated with numpy.

What a feature is worth depends on the others: a matching word means more in a short message than in a long answer, and
a message of the assistant answers other questions than one of the user. So a score is not a weighted sum but the mean
of a few networks with two hidden layers of ReLU units and a linear path, fitted by ``zettel.scoring.network_fit``.

A score explains itself by Shapley values (Shapley 1953; for models Lundberg and Lee 2017, arXiv:1705.07874) of groups
of features. A group that is left out has the mean of the training data. The values of all groups add up to the
difference between the score and that of an input with nothing but means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations, pairwise
from math import factorial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.errors import ScorerError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.ports.query import Floats

SHIPPED = Path(__file__).parent / "weights"
"""Folder of the default scorer's weights."""
LOCAL, CALIBRATION = "local.safetensors", "calibration.safetensors"
"""Files of the local score, and of the chance that the best note answers."""
FORMAT = "zettel-networks/1"
ROWS_AT_ONCE = 96
"""Rows whose hidden units are computed together: they stay in the processor's cache, and OpenBLAS computes products of
at most 2^18 multiplications on one thread (its gemm.c). Threads of larger products wait busily for the next one."""
LIMIT = 4.0
"""Standardised features are cut to ±LIMIT, so that an unusual memory gives no extreme score."""


def standardized(values: Floats, mean: Floats, scale: Floats) -> Floats:
    """Return values in units of ``scale`` from ``mean``, cut to ±LIMIT: (n, f), (f,), (f,) -> (n, f)."""
    return np.asarray(np.clip((values - mean) / scale, -LIMIT, LIMIT), np.float32)


class Networks(NamedTuple):
    """m networks over f features, with h hidden units in each of two layers.

    ``names`` are the features in the order of the inputs. ``mean`` and ``scale`` standardise them.
    """

    names: tuple[str, ...]
    mean: Floats  # (f,)
    scale: Floats  # (f,)
    first: Floats  # (m, f, h)
    first_bias: Floats  # (m, h)
    second: Floats  # (m, h, h)
    second_bias: Floats  # (m, h)
    last: Floats  # (m, h)
    linear: Floats  # (m, f)
    bias: Floats  # (m,)

    def standardized(self, values: Floats) -> Floats:
        """Return the networks' input: (n, f) -> (n, f)."""
        return standardized(values, self.mean, self.scale)

    def scores(self, inputs: Floats) -> NDArray[np.float64]:
        """Return scores in log-odds: (n, f) standardised -> (n,)."""
        hidden = np.maximum(inputs @ self.first + self.first_bias[:, None], 0.0)  # (m, n, h)
        hidden = np.maximum(hidden @ self.second + self.second_bias[:, None], 0.0)
        each = np.einsum("mnh,mh->nm", hidden, self.last) + inputs @ self.linear.T + self.bias
        return np.asarray(each.mean(axis=1), np.float64)

    def stacked(self, question_features: int) -> StackedNetworks:
        """Return the same score for inputs whose last ``question_features`` columns belong to the question."""
        notes, m = len(self.names) - question_features, len(self.first)
        linear = self.linear.mean(axis=0)
        return StackedNetworks(
            np.ascontiguousarray(self.first[:, :notes]), self.first[:, notes:], self.first_bias[:, None], self.second,
            self.second_bias[:, None], self.last[:, :, None] / np.float32(m), linear[:notes], linear[notes:],
            float(self.bias.mean()),
        )  # fmt: skip

    def contributions(self, inputs: Floats, groups: Mapping[str, Sequence[int]]) -> dict[str, float]:
        """Return the Shapley value of each group of columns for one standardised row, (f,).

        Columns outside all groups keep their values: they are the situation in which the note is scored. Costs
        2^len(groups) evaluations of the networks.
        """
        names = list(groups)
        coalitions = [set(chosen) for size in range(len(names) + 1) for chosen in combinations(range(len(names)), size)]
        rows = np.repeat(inputs[None], len(coalitions), axis=0)
        for row, coalition in zip(rows, coalitions, strict=True):
            for place, name in enumerate(names):
                if place not in coalition:
                    row[list(groups[name])] = 0.0  # the mean
        value = {frozenset(coalition): score for coalition, score in zip(coalitions, self.scores(rows), strict=True)}
        total = factorial(len(names))
        return {
            name: float(
                sum(
                    factorial(len(coalition)) * factorial(len(names) - len(coalition) - 1) / total
                    * (value[frozenset(coalition | {place})] - value[frozenset(coalition)])
                    for coalition in coalitions
                    if place not in coalition
                )
            )
            for place, name in enumerate(names)
        }  # fmt: skip

    def save(self, path: Path) -> None:
        """Write the networks as safetensors."""
        from safetensors.numpy import save_file

        arrays = {name: np.ascontiguousarray(value) for name, value in self._asdict().items() if name != "names"}
        save_file(arrays, path, metadata={"format": FORMAT, "names": json.dumps(self.names)})

    @classmethod
    def load(cls, path: Path) -> Networks:
        """Read networks. Raises ``ScorerError`` for a file that is missing, damaged, or of another format."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata() or {}
                if metadata.get("format") != FORMAT:
                    raise ScorerError(f"{path} does not contain a score: its format is not {FORMAT}")
                arrays = {name: file.get_tensor(name) for name in cls._fields if name != "names"}
                return cls(names=tuple(json.loads(metadata["names"])), **arrays)
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise ScorerError(f"{path} does not contain a score: {error}") from error


class StackedNetworks(NamedTuple):
    """The networks as a few products of matrices: n features of a note and g of its question, which its notes share."""

    first_note: Floats  # (m, n, h)
    first_question: Floats  # (m, g, h)
    first_bias: Floats  # (m, 1, h)
    second: Floats  # (m, h, h)
    second_bias: Floats  # (m, 1, h)
    last: Floats  # (m, h, 1), divided by m
    linear_note: Floats  # (n,)
    linear_question: Floats  # (g,)
    bias: float

    def scores(self, notes: Floats, questions: Floats, bounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return scores in log-odds: (r, n) and (s, g) standardised -> (r,). Rows of a question are between two bounds.

        They are those of :meth:`Networks.scores`, but for rounding.
        """
        score = np.empty(len(notes))
        shared = questions @ self.first_question + self.first_bias  # (m, s, h)
        alone = questions @ self.linear_question + self.bias
        for number, (start, end) in enumerate(pairwise(bounds.tolist())):
            for first in range(start, end, ROWS_AT_ONCE):
                rows = slice(first, min(first + ROWS_AT_ONCE, end))
                score[rows] = self._scores(notes[rows], shared[:, number, None]) + alone[number]
        return score

    def _scores(self, notes: Floats, shared: Floats) -> Floats:
        hidden = notes @ self.first_note  # (m, r, h)
        hidden += shared
        np.maximum(hidden, 0.0, out=hidden)
        deeper = hidden @ self.second
        deeper += self.second_bias
        np.maximum(deeper, 0.0, out=deeper)
        score: Floats = (deeper @ self.last).sum(axis=0)[:, 0] + notes @ self.linear_note
        return score


class ScoreModels(NamedTuple):
    """The networks of the default scorer: the local score of a note, and the chance that the best note answers."""

    local: Networks
    calibration: Networks

    def save(self, folder: Path) -> None:
        """Write both to an existing folder."""
        self.local.save(folder / LOCAL)
        self.calibration.save(folder / CALIBRATION)

    @classmethod
    def load(cls, folder: Path = SHIPPED) -> ScoreModels:
        """Read both from a folder. Raises ``ScorerError``, also for networks of other features."""
        from zettel.scoring.calibrate import ANSWER_FEATURES
        from zettel.scoring.features import FEATURE_NAMES

        models = cls(Networks.load(folder / LOCAL), Networks.load(folder / CALIBRATION))
        for networks, names in zip(models, (FEATURE_NAMES, ANSWER_FEATURES), strict=True):
            if networks.names != names:
                raise ScorerError(f"the networks in {folder} have other features than this zettel: fit them again")
        return models


@lru_cache(maxsize=1)
def shipped_models() -> ScoreModels:
    """Return the shipped models, loaded once per process."""
    return ScoreModels.load()
