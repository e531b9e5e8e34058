"""Training of a memory decoder on labelled questions.

The loss is the listwise softmax cross-entropy over a shortlist (ListNet, Cao et al. 2007), plus a penalty on the
correction to the default scorer. Recall on validation questions selects the epoch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from zettel.errors import InvalidInput
from zettel.scoring.decoder import predict, to_batch
from zettel.scoring.decoder_model import DecoderBatch, MemoryDecoder, MemoryDecoderConfig
from zettel.scoring.device import resolve_device

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.ports.query import Bools, Floats
    from zettel.scoring.decoder_inputs import DecoderInput

Progress = Callable[[str, int, int], None]
"""Called with the current step, the count so far, and the total."""
K = 10
"""Cutoff of recall@k."""
CLIP = 1.0
"""Largest norm of a gradient."""
EMA_DECAY = 0.99
"""Decay of the moving average of the weights (Polyak and Juditsky 1992): about 100 steps. Evaluation uses it."""
WARM_UP = 0.3
"""Share of the steps in which the learning rate rises."""


class Example(NamedTuple):
    """A labelled question: the decoder's input, which of the m notes answer, and how many notes answer in total."""

    input: DecoderInput
    answers: Bools  # (m,)
    needed: int


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """Hyperparameters. ``rate``: the highest learning rate; ``decay``: weight decay; ``correction``: weight of the
    penalty on the correction; ``patience``: epochs without better recall before training stops.

    ``device``: None for the fastest. ``compile``: use ``torch.compile``, which takes a minute before it saves time. The
    same ``seed`` gives the same weights on the same machine.
    """

    epochs: int = 10
    batch: int = 16
    rate: float = 2e-3
    decay: float = 0.1
    correction: float = 0.03
    patience: int = 4
    seed: int = 0
    device: str | None = "cpu"
    compile: bool = False


class Epoch(NamedTuple):
    """Mean training loss of an epoch, and recall on the validation questions after it."""

    loss: float
    recall: float


class Trained(NamedTuple):
    """The model of the best epoch, and the history. ``best`` is -1 if no epoch beats the default scorer; the model is
    then untrained. ``untrained`` is the recall of the default scorer on the validation questions."""

    model: MemoryDecoder
    epochs: list[Epoch]
    best: int
    untrained: float


def train(
    examples: Sequence[Example],
    validation: Sequence[Example],
    config: MemoryDecoderConfig,
    settings: TrainingSettings,
    progress: Progress,
    model_class: type[MemoryDecoder] = MemoryDecoder,
) -> Trained:
    """Train on ``examples``; recall on ``validation`` selects the epoch.

    Raises ``InvalidInput`` if no example has an answer on its shortlist, or ``validation`` is empty.
    """
    examples = [example for example in examples if example.answers.any()]
    if not examples or not validation:
        raise InvalidInput("training requires questions with answers, and validation questions: add more")
    device = resolve_device(settings.device)
    torch.manual_seed(settings.seed)
    rng = np.random.default_rng(settings.seed)
    model = model_class(config).to(device)
    forward = torch.compile(model, dynamic=True) if settings.compile else model
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(EMA_DECAY))
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.rate, weight_decay=settings.decay)
    steps = -(-len(examples) // settings.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, settings.rate, total_steps=settings.epochs * steps, pct_start=WARM_UP
    )
    untrained = recall(list(map(base_scores, validation)), validation)
    best_model, best, best_recall = copy.deepcopy(model), -1, untrained
    epochs: list[Epoch] = []
    for epoch in range(settings.epochs):
        progress("training", epoch, settings.epochs)
        model.train()
        total = 0.0
        shuffled = rng.permutation(len(examples))
        for start in range(0, len(examples), settings.batch):
            chunk = [examples[place] for place in shuffled[start : start + settings.batch]]
            batch = to_batch([example.input for example in chunk], config, device)
            odds = forward(batch)
            loss = listwise(odds, chunk) + settings.correction * correction_penalty(odds, batch)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            schedule.step()
            average.update_parameters(model)
            total += float(loss.detach()) * len(chunk) / len(examples)
        epochs.append(Epoch(total, recall(scores(average.module, validation), validation)))
        if epochs[-1].recall > best_recall:
            best_model, best, best_recall = copy.deepcopy(average.module), epoch, epochs[-1].recall
        elif epoch - best >= settings.patience:
            break
    progress("training", settings.epochs, settings.epochs)
    return Trained(best_model.eval(), epochs, best, untrained)


def listwise(odds: torch.Tensor, examples: Sequence[Example]) -> torch.Tensor:
    """Cross-entropy of softmax(odds) against the answers, each of equal weight, averaged: (b, m) -> ()."""
    target = torch.zeros_like(odds)
    for row, example in enumerate(examples):
        answers = example.answers
        target[row, : len(answers)] = torch.from_numpy(answers / answers.sum()).float()
    return -(target * torch.log_softmax(odds, dim=1)).sum(dim=1).mean()


def correction_penalty(odds: torch.Tensor, batch: DecoderBatch) -> torch.Tensor:
    """Mean variance of the correction to the default scorer within each shortlist: (b, m) -> ()."""
    padding = batch.padding_mask
    count = (~padding).sum(dim=1, keepdim=True)  # (b, 1)
    correction = (odds - batch.base_score).masked_fill(padding, 0.0)  # (b, m)
    centred = (correction - correction.sum(dim=1, keepdim=True) / count).masked_fill(padding, 0.0)
    return (centred.square().sum(dim=1, keepdim=True) / count).mean()


def scores(model: MemoryDecoder, examples: Sequence[Example]) -> list[Floats]:
    """Return the model's log-odds, (m,) for each example."""
    model.eval()
    device = str(next(model.parameters()).device)
    return predict(model, [example.input for example in examples], model.config, device)


def base_scores(example: Example) -> Floats:
    """Return the default scorer's order as scores, (m,); ties keep their order."""
    return -np.arange(len(example.answers), dtype=np.float32)


def recall(predicted: Sequence[Floats], examples: Sequence[Example], k: int = K) -> float:
    """Recall@k, averaged over the questions that have an answer."""
    shares = [
        float(example.answers[np.argsort(-values, kind="stable")[:k]].sum()) / example.needed
        for values, example in zip(predicted, examples, strict=True)
        if example.needed
    ]
    return float(np.mean(shares)) if shares else 0.0


def is_conversations_only(model: MemoryDecoder, examples: Sequence[Example], k: int) -> bool:
    """True if the model should leave documents in the default scorer's order.

    That is the case if recall@k of the documents among the examples does not rise, or no example is a document.
    """
    documents = [example for example in examples if not example.input.is_conversation]
    if len(documents) in (0, len(examples)):
        return not documents
    baseline = recall(list(map(base_scores, documents)), documents, k)
    return recall(scores(model, documents), documents, k) <= baseline


def validation_mask(groups: Sequence[str], share: float, seed: int) -> NDArray[np.bool_]:
    """Return a mask of the validation examples: whole groups, about ``share`` of them and at least one."""
    names = sorted(set(groups))
    chosen = np.random.default_rng(seed).permutation(len(names))[: max(1, round(share * len(names)))]
    return np.isin(groups, [names[place] for place in chosen])
