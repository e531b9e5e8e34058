"""Ablations of the memory decoder: trained without each part, with several seeds, measured on unseen conversations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.scoring.decoder_inputs import LINK_TYPES, PAIR_FEATURES
from zettel.scoring.decoder_model import DecoderBatch, MemoryDecoder, MemoryDecoderConfig, MemoryDecoderLayer
from zettel.scoring.training import Example, K, TrainingSettings, base_scores, recall, scores, train, validation_mask

from . import chats, multihop
from .decoder_training import COUNTED, VALIDATION_SHARE, collect, config_for
from .evaluation import Progress, run_settings
from .fitting import read
from .results import Cell, Result, data_files

if TYPE_CHECKING:
    from zettel.ports import Embedder

SEEDS = 3
EPOCHS = 6
"""Fewer than by default, because an ablation trains about forty decoders."""
WHOLE = "whole"
DIGITS = 4

PAIRS = {
    "talk": ("same session", "neighbours", "near neighbours", "same speaker"),
    "alike": ("cosine", "shared term"),
    "time": ("time gap",),
    "links": ("two hops", *(f"{kind.value} {way}".lower() for kind in LINK_TYPES for way in ("out", "in"))),
}
"""Groups of pair features to leave out."""


class UngatedLayer(MemoryDecoderLayer):
    """Residual connections in place of the gates."""

    def read(self, attn_out: Tensor) -> Tensor:
        return attn_out

    def write(self, notes: Tensor, attn_out: Tensor) -> Tensor:
        return notes + self.dropout(attn_out)


class PointwiseLayer(MemoryDecoderLayer):
    """Notes attend to the question, not to each other."""

    def attend(self, memory: Tensor, states: Tensor, pairs: Tensor, padding_bias: Tensor) -> Tensor:
        return self.note_attention(memory, states)


class UngatedDecoder(MemoryDecoder):
    layer_class = UngatedLayer


class PointwiseDecoder(MemoryDecoder):
    layer_class = PointwiseLayer


def decoder_without_pairs(names: Sequence[str]) -> type[MemoryDecoder]:
    """Return a decoder that reads the pair features of these names as 0."""

    class WithoutPairs(MemoryDecoder):
        def forward(self, batch: DecoderBatch) -> Tensor:
            mask = torch.tensor([float(name not in names) for name in PAIR_FEATURES], device=batch.pairs.device)
            return super().forward(replace(batch, pairs=batch.pairs * mask))

    return WithoutPairs


class Variant(NamedTuple):
    """A decoder without a part, without vectors, or trained on fewer conversations."""

    name: str
    model_class: type[MemoryDecoder] = MemoryDecoder
    vectors: bool = True
    conversations: int | None = None


class Parts(NamedTuple):
    """Training examples by conversation, examples that every variant trains on, and test examples by column."""

    conversations: Mapping[str, Sequence[Example]]
    documents: Sequence[Example]
    test: Mapping[str, Sequence[Example]]


def variants(sizes: Sequence[int]) -> list[Variant]:
    """Return the whole decoder, a variant without each part, and a variant per number of conversations."""
    return [
        Variant(WHOLE),
        Variant("without gates", UngatedDecoder),
        Variant("without setwise", PointwiseDecoder),
        Variant("without biases", decoder_without_pairs(PAIR_FEATURES)),
        *(Variant(f"without biases: {group}", decoder_without_pairs(names)) for group, names in PAIRS.items()),
        Variant("without vectors", vectors=False),
        *(Variant(f"from {size} conversations", conversations=size) for size in sizes),
    ]


async def run(
    paths: Sequence[Path],
    progress: Progress,
    test: Sequence[Path] = (),
    other: Sequence[Path] = (),
    documents: tuple[Path, Path] | None = None,
    seeds: int = SEEDS,
    sizes: Sequence[int] = (),
    only: Sequence[str] = (),
    embedder: str | None = None,
    settings: TrainingSettings | None = None,
) -> Result:
    """Train every variant ``seeds`` times on the conversations of ``paths`` (and ``documents``).

    Measures on all ``test`` files together and on each ``other`` file. ``only`` selects variants by name. Raises
    ``InvalidInput`` for too few conversations, no test file, or an unknown variant.
    """
    settings = settings or TrainingSettings(epochs=EPOCHS)
    selected = _select(variants(sizes), only)
    conversations = [talk for path in paths for talk in read(path)]
    if len(conversations) < max([2, *sizes]) or min([2, *sizes]) < 2:
        raise InvalidInput(
            f"got {len(conversations)} conversations to train on: name two or more, and as many as --size, from 2"
        )
    tested = {"test": [talk for path in test for talk in read(path)]} if test else {}
    tested |= {path.stem: read(path) for path in other}
    if not tested:
        raise InvalidInput("there are no conversations to measure on: pass some with --test or --other")
    corpus = [multihop.read(*documents)[0]] if documents else []
    model = load_embedder(embedder)
    everything = [*conversations, *corpus, *(collection for several in tested.values() for collection in several)]
    examples = await collect(everything, model, progress)
    parts = Parts(
        {talk.name: examples[talk.name] for talk in conversations},
        [example for passages in corpus for example in examples[passages.name]],
        {name: [example for part in several for example in examples[part.name]] for name, several in tested.items()},
    )
    fusion = [round(recall(list(map(base_scores, several)), several), DIGITS) for several in parts.test.values()]
    rows: list[list[Cell]] = [["fusion", None, *(cell for value in fusion for cell in (value, None))]]
    curves: dict[str, list[float]] = {}
    for place, variant in enumerate(selected):
        progress(f"training: {variant.name}", place, len(selected))
        recalls = [list(measure(variant, parts, model, replace(settings, seed=seed))) for seed in range(seeds)]
        rows.append([variant.name, variant.conversations or len(conversations), *_mean_and_spread(recalls)])
        for name, values in zip(parts.test, zip(*recalls, strict=True), strict=True):
            curves[f"{variant.name}: {name}"] = [round(value, DIGITS) for value in values]
    counts = {f"questions of {name}": len(several) for name, several in parts.test.items()}
    return Result(
        bench="scorer ablate",
        data=data_files(chats.files(*paths, *test, *other, *(documents or ()))),
        ran_on={},
        settings={**run_settings(None, (), model, K), "seeds": seeds, "epochs at most": settings.epochs, **counts},
        columns=["decoder", "conversations", *(head for name in tested for head in (name, f"± {name}"))],
        rows=rows,
        curves=curves,
        notes=[COUNTED, "±: standard deviation over the seeds."],
    )


def measure(variant: Variant, parts: Parts, embedder: Embedder, settings: TrainingSettings) -> Iterator[float]:
    """Train a variant once, and yield its recall on each test set."""
    order = np.random.default_rng(settings.seed).permutation(sorted(parts.conversations)).tolist()
    names = order[: variant.conversations]
    mask = validation_mask(names, VALIDATION_SHARE, settings.seed)
    reserved = [name for name, is_reserved in zip(names, mask, strict=True) if is_reserved]
    examples = [example for name in names if name not in reserved for example in parts.conversations[name]]
    examples += parts.documents
    validation = [example for name in reserved for example in parts.conversations[name]]
    config = config_for(embedder) if variant.vectors else MemoryDecoderConfig()
    model = train(examples, validation, config, settings, lambda *_: None, variant.model_class).model
    for several in parts.test.values():
        yield recall(scores(model, several), several)


def _select(known: Sequence[Variant], only: Sequence[str]) -> list[Variant]:
    names = [variant.name for variant in known]
    if unknown := [name for name in only if name not in names]:
        raise InvalidInput(f"unknown variant {unknown[0]!r}: use one of {', '.join(names)}")
    return [variant for variant in known if not only or variant.name in only]


def _mean_and_spread(recalls: Sequence[Sequence[float]]) -> list[Cell]:
    """Return mean and standard deviation of each column; a single run has no deviation."""
    values = np.array(recalls)
    spread = values.std(axis=0, ddof=1).tolist() if len(values) > 1 else [None] * values.shape[1]
    means = values.mean(axis=0).tolist()
    return [
        None if cell is None else round(cell, DIGITS) for pair in zip(means, spread, strict=True) for cell in pair
    ]
