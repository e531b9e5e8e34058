"""Training a memory decoder on labelled questions.

The loss is listwise: the softmax over all notes of a shortlist against the notes that answer, all alike (Cao et al.
2007, ListNet), and a little for whatever is added to the default scorer, so that only what pays is. After every epoch
the recall on questions that are held back decides: the best epoch is kept, and training ends when several brought
nothing better.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from zettel.errors import InvalidInput
from zettel.scoring.decoder import batched, odds
from zettel.scoring.decoder_model import Batch, MemoryDecoder, MemoryDecoderConfig

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.query import Bools, Floats
    from zettel.scoring.bank import SlotBank
    from zettel.scoring.slots import Shown

Progress = Callable[[str, int, int], None]
"""What is done, how far, of how much."""
K = 10
"""Places that recall is counted in."""
CLIP = 1.0
"""Norm at which a gradient is cut."""
REMEMBERED = 0.99
"""Of the average of the weights at each step: what is measured and kept is the average over about 100 steps, which
knows less of the last questions (Polyak and Juditsky 1992)."""
WARM_UP = 0.3
"""Share of the steps in which the learning rate rises."""


class Example(NamedTuple):
    """A question as a decoder is shown it, which of the m notes answer, and how many notes answer in all.

    ``history`` are the vectors of the scope's notes by ``seq``, one array for all of its questions; only a decoder with
    a bank of slots needs them.
    """

    shown: Shown
    answers: Bools  # (m,)
    needed: int
    group: str = ""
    history: Floats | None = None  # (n, d)


@dataclass(frozen=True, slots=True)
class Settings:
    """How to train. ``rate``: the highest learning rate; ``decay``: weight decay (AdamW); ``modesty``: the weight that
    what is added has in the loss; ``patience``: the epochs without a better recall after which it ends.

    The same ``seed`` gives the same weights on the same machine.
    """

    epochs: int = 10
    batch: int = 16
    rate: float = 2e-3
    decay: float = 0.1
    modesty: float = 0.03
    patience: int = 4
    seed: int = 0


class Epoch(NamedTuple):
    """The mean loss in an epoch, and the recall after it on what was held back."""

    loss: float
    recall: float


class Trained(NamedTuple):
    """The model of the best epoch, all epochs, which one was the best (-1: none was better than the default scorer,
    and the model adds nothing to it), and the recall of the default scorer on what was held back."""

    model: MemoryDecoder
    epochs: list[Epoch]
    best: int
    untrained: float


def train(
    examples: Sequence[Example],
    held: Sequence[Example],
    config: MemoryDecoderConfig,
    settings: Settings,
    progress: Progress,
) -> Trained:
    """Train on ``examples``; ``held`` back ones choose the epoch.

    Raises ``InvalidInput`` if none of the examples has an answer on its shortlist, or none is held back.
    """
    useful = [one for one in examples if one.answers.any()]
    if not useful or not held:
        raise InvalidInput("there is nothing to learn from: questions with an answer are needed, and some to hold back")
    torch.manual_seed(settings.seed)
    order = np.random.default_rng(settings.seed)
    model = MemoryDecoder(config)
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(REMEMBERED))
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.rate, weight_decay=settings.decay)
    steps = -(-len(useful) // settings.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, settings.rate, total_steps=settings.epochs * steps, pct_start=WARM_UP
    )
    untrained = recall([base(one) for one in held], held)
    kept, best, best_recall = copy.deepcopy(model), -1, untrained
    epochs: list[Epoch] = []
    for epoch in range(settings.epochs):
        progress("training", epoch, settings.epochs)
        model.train()
        loss = 0.0
        shuffled = order.permutation(len(useful))
        for start in range(0, len(useful), settings.batch):
            some = [useful[place] for place in shuffled[start : start + settings.batch]]
            optimizer.zero_grad()
            shown = _batch(model, some)
            told = model(shown)
            wrong = listwise(told, some) + settings.modesty * added(told, shown)
            wrong.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            schedule.step()
            averaged.update_parameters(model)
            loss += float(wrong.detach()) * len(some) / len(useful)
        now = averaged.module
        epochs.append(Epoch(loss, recall(scores(now, held), held)))
        if epochs[-1].recall > best_recall:
            kept, best, best_recall = copy.deepcopy(now), epoch, epochs[-1].recall
        elif epoch - best >= settings.patience:
            break
    progress("training", settings.epochs, settings.epochs)
    return Trained(kept.eval(), epochs, best, untrained)


def listwise(odds: torch.Tensor, examples: Sequence[Example]) -> torch.Tensor:
    """Mean of -sum(y log softmax(odds)), y the answers of a question, summing to 1: (b, m) -> ()."""
    answers = torch.zeros_like(odds)
    for place, one in enumerate(examples):
        answers[place, : len(one.answers)] = torch.from_numpy(one.answers / one.answers.sum()).float()
    return -(answers * torch.log_softmax(odds, dim=1)).sum(dim=1).mean()


def added(odds: torch.Tensor, shown: Batch) -> torch.Tensor:
    """Mean square of what is added to the default scorer's log shares, less its mean, which ranks nothing: () ."""
    there = ~shown.absent
    count = there.sum(dim=1, keepdim=True)  # (b, 1)
    more = (odds - shown.score).masked_fill(shown.absent, 0.0)  # (b, m)
    spread = (more - more.sum(dim=1, keepdim=True) / count).masked_fill(shown.absent, 0.0)
    return (spread.square().sum(dim=1, keepdim=True) / count).mean()


def scores(model: MemoryDecoder, examples: Sequence[Example]) -> list[Floats]:
    """What the model says of each shortlist, (m,) each; without its bank where another embedder made the vectors."""
    model.eval()
    shown = [one.shown for one in examples]
    if model.bank is not None and all(one.embedder == model.config.embedder for one in shown):
        with torch.inference_mode():
            slots, places = _slots(model.bank, examples)
        shown = [one._replace(bank=slots[place].numpy()) for one, place in zip(shown, places, strict=True)]
    return odds(model, shown, model.config)


def _batch(model: MemoryDecoder, examples: Sequence[Example]) -> Batch:
    """Examples to learn from; a bank is written on the way, so that it learns what to keep."""
    shown = batched([one.shown for one in examples], model.config)
    if model.bank is None:
        return shown
    slots, places = _slots(model.bank, examples)
    return replace(shown, bank=slots[places], written=torch.ones_like(shown.written))


def _slots(bank: SlotBank, examples: Sequence[Example]) -> tuple[torch.Tensor, list[int]]:
    """The slots of each scope, (scopes, s, d), and which of them is that of each example."""
    histories = {id(one.history): one.history for one in examples if one.history is not None}
    if any(one.history is None for one in examples):
        raise InvalidInput("a bank of slots learns from the vectors of all notes, and an example has none")
    places = {history: place for place, history in enumerate(histories)}
    return bank.of_scopes(list(histories.values())), [places[id(one.history)] for one in examples]


def base(example: Example) -> Floats:
    """What the default scorer says: a shortlist is in its order, also where two scores are equal."""
    return -np.arange(len(example.answers), dtype=np.float32)


def recall(told: Sequence[Floats], examples: Sequence[Example], k: int = K) -> float:
    """Recall@k, averaged over the questions that have an answer at all."""
    shares = [
        float(one.answers[np.argsort(-values, kind="stable")[:k]].sum()) / one.needed
        for values, one in zip(told, examples, strict=True)
        if one.needed
    ]
    return float(np.mean(shares)) if shares else 0.0


def talk_only(model: MemoryDecoder, examples: Sequence[Example], k: int) -> bool:
    """Whether a model that learned from conversations is to leave documents in the default scorer's order: recall@k of
    none is better, not even of those that it learned from, or there were none."""
    documents = [one for one in examples if not one.shown.talk]
    if len(documents) in (0, len(examples)):
        return not documents
    return recall(scores(model, documents), documents, k) <= recall([base(one) for one in documents], documents, k)


def hold_back(groups: Sequence[str], share: float, seed: int) -> NDArray[np.bool_]:
    """Which of these examples are held back: whole groups, about ``share`` of them and one at least."""
    names = sorted(set(groups))
    chosen = np.random.default_rng(seed).permutation(len(names))[: max(1, round(share * len(names)))]
    return np.isin(groups, [names[place] for place in chosen])
