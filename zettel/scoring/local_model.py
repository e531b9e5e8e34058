"""The local score: a small network over a note's features and the question's, evaluated with numpy.

What a feature is worth depends on the others: a matching word means more in a short message than in a long answer, and a
message of the assistant answers other questions than one of the user. So the score is not a weighted sum but the mean of
a few networks with two hidden layers of ReLU units and a linear path, fitted by ``zettel.scoring.fit``.

A score explains itself by Shapley values (Shapley 1953; for models Lundberg and Lee 2017, arXiv:1705.07874) of groups of
features. A group that is left out has the mean of the training data. The values of all groups add up to the difference
between the note's score and that of a note with nothing but means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from math import factorial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.errors import ScorerError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.ports.query import Floats

SHIPPED = Path(__file__).parent / "weights" / "local.safetensors"
"""The weights of the default scorer."""
FORMAT = "zettel-local-score/1"
LIMIT = 4.0
"""Standardised features are cut to ±LIMIT, so that an unusual memory gives no extreme score."""


class LocalModel(NamedTuple):
    """m networks over f note features and g question features, with h hidden units in each of two layers.

    ``names`` are the f + g features in the order of the inputs. ``mean`` and ``scale`` standardise them.
    """

    names: tuple[str, ...]
    mean: Floats  # (f + g,)
    scale: Floats  # (f + g,)
    first: Floats  # (m, f + g, h)
    first_bias: Floats  # (m, h)
    second: Floats  # (m, h, h)
    second_bias: Floats  # (m, h)
    last: Floats  # (m, h)
    linear: Floats  # (m, f + g)
    bias: Floats  # (m,)

    def standardized(self, notes: Floats, question: Floats) -> Floats:
        """Return the networks' input: (n, f), (g,) -> (n, f + g)."""
        rows = np.concatenate([notes, np.broadcast_to(question, (len(notes), len(question)))], axis=1)
        return np.asarray(np.clip((rows - self.mean) / self.scale, -LIMIT, LIMIT), np.float32)

    def scores(self, inputs: Floats) -> NDArray[np.float64]:
        """Return local scores in log-odds: (n, f + g) -> (n,)."""
        hidden = np.maximum(inputs @ self.first + self.first_bias[:, None], 0.0)  # (m, n, h)
        hidden = np.maximum(hidden @ self.second + self.second_bias[:, None], 0.0)
        each = np.einsum("mnh,mh->nm", hidden, self.last) + inputs @ self.linear.T + self.bias
        return np.asarray(each.mean(axis=1), np.float64)

    def contributions(self, inputs: Floats, groups: Mapping[str, Sequence[int]]) -> dict[str, float]:
        """Return the Shapley value of each group of columns for one row, (f + g,).

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
        """Write the model as safetensors."""
        from safetensors.numpy import save_file

        arrays = {name: np.ascontiguousarray(value) for name, value in self._asdict().items() if name != "names"}
        save_file(arrays, path, metadata={"format": FORMAT, "names": json.dumps(self.names)})

    @classmethod
    def load(cls, path: Path = SHIPPED) -> LocalModel:
        """Read a model. Raises ``ScorerError`` for a file that is missing, damaged, or of another format."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata() or {}
                if metadata.get("format") != FORMAT:
                    raise ScorerError(f"{path} does not contain a local score: its format is not {FORMAT}")
                arrays = {name: file.get_tensor(name) for name in cls._fields if name != "names"}
                return cls(names=tuple(json.loads(metadata["names"])), **arrays)
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise ScorerError(f"{path} does not contain a local score: {error}") from error


@lru_cache(maxsize=1)
def shipped_model() -> LocalModel:
    """Return the shipped model, loaded once per process."""
    return LocalModel.load()
