"""Fits the networks of the default scorer to labelled questions, with torch.

For the local score the loss is ListNet's top-one loss (Cao et al. 2007, "Learning to Rank: From Pairwise Approach to
Listwise Approach"): the cross-entropy between the evidence and the softmax over the events of a question. An event
scores as its best part. For the chance of an answer it is the binary cross-entropy. Each kind of memory has a fixed
share, whatever its number of questions. Several networks that differ by their random numbers are fitted and averaged,
which is better than any of them (Hansen and Salamon 1990, "Neural Network Ensembles").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from zettel.errors import InvalidInput
from zettel.scoring.device import require_torch
from zettel.scoring.networks import Networks, standardized

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.ports.query import Floats, Ints

LEAST_SCALE = 1e-3
"""Added to standard deviations: a constant feature is 0."""
GRADIENT_NORM = 1.0
"""Longest gradient of a step."""


class Labelled(NamedTuple):
    """Features of a question's r notes, their events, and how much each event is evidence.

    ``kind`` is the kind of memory.
    """

    values: Floats  # (r, f)
    event: Ints  # (r,) from 0
    evidence: Floats  # (events,) 0: none
    kind: str


class Judged(NamedTuple):
    """Features of one question with its best note, and whether that question has an answer."""

    values: Floats  # (f,)
    is_answered: bool
    kind: str


@dataclass(frozen=True)
class FitSettings:
    """Settings of a fit. The defaults were chosen on memories of the fit that were left out of it."""

    networks: int = 6
    hidden: int = 32
    epochs: int = 12
    batch: int = 24
    rate: float = 2e-3
    decay: float = 1e-3
    dropout: float = 0.3
    seed: int = 0


CALIBRATION_FIT = FitSettings(networks=3, hidden=16, epochs=30, batch=256, rate=5e-3, decay=0.05, dropout=0.2)
"""Settings for the chance of an answer, which has many questions and few features."""

OnEpoch: TypeAlias = "Callable[[int, int], None]"
"""Called with the number of finished epochs, and of all."""


def fit_local(
    examples: Sequence[Labelled],
    names: Sequence[str],
    settings: FitSettings,
    shares: Mapping[str, float] | None = None,
    on_epoch: OnEpoch = lambda *_: None,
) -> Networks:
    """Fit the local score. ``shares`` are the weights of the kinds of memory, by default equal.

    Raises ``InvalidInput`` if no question has evidence beside other notes, ``MissingExtra`` without torch.
    """
    examples = [example for example in examples if (example.evidence > 0).any() and (example.evidence == 0).any()]
    if not examples:
        raise InvalidInput("nothing to fit: no question has evidence among its candidates")
    mean, scale = moments([example.values for example in examples])
    torch = _torch()
    data = [
        (
            torch.from_numpy(standardized(example.values, mean, scale)),
            torch.from_numpy(example.event.astype(np.int64)),
            torch.from_numpy((example.evidence / example.evidence.sum()).astype(np.float32)),
        )
        for example in examples
    ]
    weights = torch.from_numpy(example_weights([example.kind for example in examples], shares))

    def loss(network: Any, chosen: list[int]) -> Any:
        batch = [data[place] for place in chosen]
        scores = network(torch.cat([rows for rows, _, _ in batch])).split([len(rows) for rows, _, _ in batch])
        losses = []
        for score, (_, event, target) in zip(scores, batch, strict=True):
            best = torch.full((len(target),), -torch.inf).scatter_reduce(0, event, score, "amax")
            losses.append(-(target * torch.log_softmax(best, 0)).sum())
        return (torch.stack(losses) * weights[chosen]).sum() / weights[chosen].sum()

    return _fitted(torch, len(data), loss, tuple(names), mean, scale, settings, on_epoch)


def fit_calibration(
    examples: Sequence[Judged],
    names: Sequence[str],
    settings: FitSettings = CALIBRATION_FIT,
    on_epoch: OnEpoch = lambda *_: None,
) -> Networks:
    """Fit the chance that a question has an answer. Raises ``InvalidInput`` without both kinds, ``MissingExtra``."""
    answered = np.array([example.is_answered for example in examples], np.float32)
    if not 0 < answered.sum() < len(answered):
        raise InvalidInput("nothing to fit: give questions with an answer and questions without one")
    values = np.stack([example.values for example in examples])
    mean, scale = moments([values])
    torch = _torch()
    inputs, targets = torch.from_numpy(standardized(values, mean, scale)), torch.from_numpy(answered)
    weights = torch.from_numpy(example_weights([example.kind for example in examples]))

    def loss(network: Any, chosen: list[int]) -> Any:
        scores = network(inputs[chosen])
        return torch.nn.functional.binary_cross_entropy_with_logits(scores, targets[chosen], weights[chosen])

    return _fitted(torch, len(values), loss, tuple(names), mean, scale, settings, on_epoch)


def moments(values: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the columns, (f,) each, every array (r, f) counting equally."""
    mean = np.mean([rows.mean(axis=0, dtype=np.float64) for rows in values], axis=0)
    square = np.mean([np.square(rows, dtype=np.float64).mean(axis=0) for rows in values], axis=0)
    scale = np.sqrt(np.maximum(square - mean**2, 0.0)) + LEAST_SCALE
    return mean.astype(np.float32), scale.astype(np.float32)


def example_weights(kinds: Sequence[str], shares: Mapping[str, float] | None = None) -> Floats:
    """Return a weight for each example, 1 on average, so that each kind has its share, by default equal: (e,)."""
    counts = Counter(kinds)
    shares = shares or dict.fromkeys(counts, 1.0)
    total = sum(shares[kind] for kind in counts)
    return np.array([shares[kind] / total * len(kinds) / counts[kind] for kind in kinds], np.float32)


def _torch() -> Any:
    require_torch("fitting the default scorer")
    import torch

    return torch


def _fitted(
    torch: Any,
    examples: int,
    loss: Callable[[Any, list[int]], Any],
    names: tuple[str, ...],
    mean: Floats,
    scale: Floats,
    settings: FitSettings,
    on_epoch: OnEpoch,
) -> Networks:
    """Fit the networks one after the other with AdamW and a rate that rises and falls once."""
    networks = []
    for number in range(settings.networks):
        torch.manual_seed(settings.seed + number)
        order = np.random.default_rng(settings.seed + number)
        network = _network(torch, len(mean), settings)
        optimizer = torch.optim.AdamW(network.parameters(), lr=settings.rate, weight_decay=settings.decay)
        steps = settings.epochs * -(-examples // settings.batch)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, settings.rate, total_steps=steps)
        for epoch in range(settings.epochs):
            shuffled = order.permutation(examples).tolist()
            for start in range(0, examples, settings.batch):
                optimizer.zero_grad()
                loss(network, shuffled[start : start + settings.batch]).backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), GRADIENT_NORM)
                optimizer.step()
                schedule.step()
            on_epoch(number * settings.epochs + epoch + 1, settings.networks * settings.epochs)
        networks.append(network.eval())
    return _exported(networks, names, mean, scale)


def _network(torch: Any, size: int, settings: FitSettings) -> Any:
    """Return two hidden layers beside a linear path."""

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(size, settings.hidden)
            self.second = torch.nn.Linear(settings.hidden, settings.hidden)
            self.last = torch.nn.Linear(settings.hidden, 1, bias=False)
            self.linear = torch.nn.Linear(size, 1)
            self.dropout = torch.nn.Dropout(settings.dropout)

        def forward(self, rows: Any) -> Any:
            hidden = self.dropout(torch.relu(self.first(rows)))
            hidden = self.dropout(torch.relu(self.second(hidden)))
            return (self.last(hidden) + self.linear(rows))[:, 0]

    return Network()


def _exported(networks: Sequence[Any], names: tuple[str, ...], mean: Floats, scale: Floats) -> Networks:
    def stacked(value: Callable[[Any], Any]) -> NDArray[np.float32]:
        return np.stack([value(network).detach().numpy() for network in networks]).astype(np.float32)

    return Networks(
        names=names,
        mean=mean,
        scale=scale,
        first=stacked(lambda network: network.first.weight.T),
        first_bias=stacked(lambda network: network.first.bias),
        second=stacked(lambda network: network.second.weight.T),
        second_bias=stacked(lambda network: network.second.bias),
        last=stacked(lambda network: network.last.weight[0]),
        linear=stacked(lambda network: network.linear.weight[0]),
        bias=stacked(lambda network: network.linear.bias[0]),
    )
