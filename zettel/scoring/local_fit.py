"""Fits the local score to labelled questions, with torch.

The loss is ListNet's top-one loss (Cao et al. 2007, "Learning to Rank: From Pairwise Approach to Listwise Approach"): the
cross-entropy between the evidence and the softmax over the events of a question. An event scores as its best part. Kinds
of memory count equally, whatever their number of questions. Several networks that differ by their random numbers are
fitted and averaged, which ranks better than any of them (Hansen and Salamon 1990, "Neural Network Ensembles").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from zettel.errors import InvalidInput
from zettel.scoring.device import require_torch
from zettel.scoring.features import NOTE_NAMES, QUESTION_FEATURES
from zettel.scoring.local_model import LIMIT, LocalModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.ports.query import Bools, Floats, Ints

LEAST_SCALE = 1e-3
"""Added to standard deviations: a constant feature is 0."""
GRADIENT_NORM = 1.0
"""Longest gradient of a step."""


class Labelled(NamedTuple):
    """Features of a question's r notes, their events, and which notes are evidence. ``kind`` is that of its memory."""

    notes: Floats  # (r, f)
    question: Floats  # (g,)
    event: Ints  # (r,) from 0
    positive: Bools  # (r,)
    kind: str
    memory: str


@dataclass(frozen=True)
class LocalFitSettings:
    """Settings of a fit. The defaults were chosen on conversations of the fit that were left out of it."""

    networks: int = 6
    hidden: int = 32
    epochs: int = 10
    batch: int = 24
    rate: float = 2e-3
    decay: float = 1e-3
    dropout: float = 0.3
    seed: int = 0


def fit_local_model(
    examples: Sequence[Labelled],
    settings: LocalFitSettings | None = None,
    shares: dict[str, float] | None = None,
    on_epoch: Callable[[int, int], None] = lambda done, total: None,
) -> LocalModel:
    """Fit a model. ``shares`` are the weights of the kinds of memory in the loss, by default equal.

    Calls ``on_epoch`` with the number of finished epochs and of all. Raises ``InvalidInput`` if no question has evidence
    beside other notes, ``MissingExtra`` without torch.
    """
    require_torch("fitting the local score")
    import torch

    settings = settings or LocalFitSettings()
    examples = [example for example in examples if example.positive.any() and not example.positive.all()]
    if not examples:
        raise InvalidInput("nothing to fit: no question has evidence among its candidates")
    mean, scale = moments(examples)
    inputs = [_tensors(example, mean, scale, torch) for example in examples]
    weights = torch.from_numpy(example_weights([example.kind for example in examples], shares))
    networks = []
    total = settings.networks * settings.epochs
    for number in range(settings.networks):
        torch.manual_seed(settings.seed + number)
        order = np.random.default_rng(settings.seed + number)
        network = _network(torch, len(mean), settings)
        optimizer = torch.optim.AdamW(network.parameters(), lr=settings.rate, weight_decay=settings.decay)
        steps = settings.epochs * -(-len(inputs) // settings.batch)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, settings.rate, total_steps=steps)
        for epoch in range(settings.epochs):
            shuffled = order.permutation(len(inputs))
            for start in range(0, len(inputs), settings.batch):
                chosen = shuffled[start : start + settings.batch].tolist()
                optimizer.zero_grad()
                loss = _loss(torch, network, [inputs[place] for place in chosen], weights[chosen])
                loss.backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), GRADIENT_NORM)
                optimizer.step()
                schedule.step()
            on_epoch(number * settings.epochs + epoch + 1, total)
        networks.append(network.eval())
    return _exported(networks, mean, scale)


def moments(examples: Sequence[Labelled]) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the features, (f + g,) each, every question counting equally."""
    notes = [np.stack([example.notes.mean(axis=0), (example.notes**2).mean(axis=0)]) for example in examples]
    questions = [np.stack([example.question, example.question**2]) for example in examples]
    mean, square = np.concatenate([np.mean(notes, axis=0), np.mean(questions, axis=0)], axis=1)
    scale = np.sqrt(np.maximum(square - mean**2, 0.0)) + LEAST_SCALE
    return mean.astype(np.float32), scale.astype(np.float32)


def example_weights(kinds: Sequence[str], shares: dict[str, float] | None = None) -> Floats:
    """Return a weight for each example, 1 on average, so that each kind has its share: (e,)."""
    counts = Counter(kinds)
    shares = shares or dict.fromkeys(counts, 1.0)
    total = sum(shares[kind] for kind in counts)
    return np.array([shares[kind] / total / counts[kind] * len(kinds) for kind in kinds], np.float32)


def _tensors(example: Labelled, mean: Floats, scale: Floats, torch: Any) -> tuple[Any, Any, Any]:
    """Return standardised inputs (r, f + g), events (r,), and the target over events."""
    rows = np.concatenate(
        [example.notes, np.broadcast_to(example.question, (len(example.notes), len(example.question)))], axis=1
    )
    rows = np.clip((rows - mean) / scale, -LIMIT, LIMIT).astype(np.float32)
    target = np.zeros(int(example.event.max()) + 1, np.float32)
    target[example.event[example.positive]] = 1.0
    return torch.from_numpy(rows), torch.from_numpy(example.event.astype(np.int64)), torch.from_numpy(target / target.sum())


def _network(torch: Any, size: int, settings: LocalFitSettings) -> Any:
    """Return two hidden layers beside a linear path."""

    class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
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


def _loss(torch: Any, network: Any, batch: Sequence[tuple[Any, Any, Any]], weights: Any) -> Any:
    scores = network(torch.cat([rows for rows, _, _ in batch])).split([len(rows) for rows, _, _ in batch])
    losses = []
    for score, (_, event, target) in zip(scores, batch, strict=True):
        empty = torch.full((len(target),), -torch.inf)
        best = empty.scatter_reduce(0, event, score, "amax")
        losses.append(-(target * torch.log_softmax(best, 0)).sum())
    return (torch.stack(losses) * weights).sum() / weights.sum()


def _exported(networks: Sequence[Any], mean: Floats, scale: Floats) -> LocalModel:
    def stacked(value: Callable[[Any], Any]) -> NDArray[np.float32]:
        return np.stack([value(network).detach().numpy() for network in networks]).astype(np.float32)

    return LocalModel(
        names=(*NOTE_NAMES, *QUESTION_FEATURES),
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
