"""What each part of the memory decoder is worth: it is trained without it, several times, and asked what it never saw.

Runs that differ in the seed alone differ too, in the conversations that choose the epoch and in where the weights
begin. So every variant is trained with the same seeds, and what it reaches is told with its spread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.errors import InvalidInput
from zettel.scoring.decoder_model import BIASES
from zettel.scoring.training import Example, K, Settings, base, hold_back, recall, scores, train

from . import two_wiki
from .decoding import COUNTED, HELD_BACK, SWITCHES, collect, config_without
from .evaluation import Progress, answering, embedder_called
from .fitting import read
from .machine import Cell, Result, data_file, result

if TYPE_CHECKING:
    from zettel.ports import Embedder

SEEDS = 3
BANKS = (4, 16)
EPOCHS = 6
"""Fewer than for a decoder that is to be used: about forty are trained."""
WHOLE = "whole"
DIGITS = 4


class Variant(NamedTuple):
    """A decoder without some of its parts, with a bank of slots, or that learns from fewer conversations."""

    name: str
    without: tuple[str, ...] = ()
    bank: int = 0
    conversations: int | None = None


class Parts(NamedTuple):
    """What is learned from, by conversation; what always is; and what is measured on, by the name of its column."""

    learned: Mapping[str, Sequence[Example]]
    always: Sequence[Example]
    measured: Mapping[str, Sequence[Example]]


def variants(banks: Sequence[int], sizes: Sequence[int]) -> list[Variant]:
    """The whole decoder; each of its parts left out; banks of so many slots; so many conversations to learn from."""
    return [
        Variant(WHOLE),
        *(Variant(_without(part), (part,)) for part in SWITCHES),
        *(Variant(f"with a bank of {slots} slots", bank=slots) for slots in banks),
        *(Variant(f"from {size} conversations", conversations=size) for size in sizes),
    ]


async def run(
    paths: Sequence[Path],
    progress: Progress,
    test: Sequence[Path] = (),
    other: Sequence[Path] = (),
    documents: tuple[Path, Path] | None = None,
    seeds: int = SEEDS,
    banks: Sequence[int] = BANKS,
    sizes: Sequence[int] = (),
    only: Sequence[str] = (),
    embedder: str | None = None,
    settings: Settings | None = None,
) -> Result:
    """Train every variant ``seeds`` times on the conversations of ``paths`` (and ``documents``); measure on ``test``,
    all together, and on each of the ``other`` files. ``only``: the variants of these names.

    Raises ``InvalidInput`` for too few conversations, nothing to measure on, or a variant that there is not.
    """
    settings = settings or Settings(epochs=EPOCHS)
    chosen = _chosen(variants(banks, sizes), only)
    told = [one for path in paths for one in read(path)]
    if min([len(told), *sizes]) < 2 or len(told) < max([2, *sizes]):
        raise InvalidInput(f"there are {len(told)} conversations to learn from: two are needed, and as many as --size")
    tested = {"test": [one for path in test for one in read(path)]} if test else {}
    tested |= {path.stem: read(path) for path in other}
    if not tested:
        raise InvalidInput("name conversations to measure on, with --test or --other")
    corpus = [two_wiki.read(*documents)[0]] if documents else []
    model = embedder_called(embedder)
    everything = [*told, *corpus, *(one for several in tested.values() for one in several)]
    shown = await collect(everything, model, progress)
    parts = Parts(
        {one.name: shown[one.name] for one in told},
        [one for passages in corpus for one in shown[passages.name]],
        {name: [one for part in several for one in shown[part.name]] for name, several in tested.items()},
    )
    fusion = [round(recall([base(one) for one in several], several), DIGITS) for several in parts.measured.values()]
    rows: list[list[Cell]] = [["fusion", None, *(cell for value in fusion for cell in (value, None))]]
    curves: dict[str, list[float]] = {}
    for place, variant in enumerate(chosen):
        progress(f"training: {variant.name}", place, len(chosen))
        reached = [list(worth(variant, parts, model, replace(settings, seed=seed))) for seed in range(seeds)]
        rows.append([variant.name, variant.conversations or len(told), *_spread(reached)])
        for name, values in zip(parts.measured, zip(*reached, strict=True), strict=True):
            curves[f"{variant.name}: {name}"] = [round(value, DIGITS) for value in values]
    counts = {f"questions of {name}": len(several) for name, several in parts.measured.items()}
    return result(
        bench="scorer ablate",
        ran_on={path.name: data_file(path)["sha256"] for path in (*paths, *test, *other, *(documents or ()))},
        settings={**answering(None, (), model, K), "seeds": seeds, "epochs at most": settings.epochs, **counts},
        columns=["decoder", "conversations", *(head for name in tested for head in (name, f"± {name}"))],
        rows=rows,
        curves=curves,
        notes=[COUNTED, "±: standard deviation over the seeds."],
    )


def worth(variant: Variant, parts: Parts, embedder: Embedder, settings: Settings) -> Iterator[float]:
    """The recall that a variant reaches on each of what is measured, trained once."""
    order = np.random.default_rng(settings.seed).permutation(sorted(parts.learned)).tolist()
    names = order[: variant.conversations]
    held = [name for name, back in zip(names, hold_back(names, HELD_BACK, settings.seed), strict=True) if back]
    examples = [one for name in names if name not in held for one in parts.learned[name]] + [*parts.always]
    choosing = [one for name in held for one in parts.learned[name]]
    config = config_without(variant.without, embedder, variant.bank)
    model = train(examples, choosing, config, settings, lambda *_: None).model
    for several in parts.measured.values():
        yield recall(scores(model, several), several)


def _chosen(known: Sequence[Variant], only: Sequence[str]) -> list[Variant]:
    names = [variant.name for variant in known]
    if unknown := [name for name in only if name not in names]:
        raise InvalidInput(f"there is no variant {unknown[0]!r}; there are {', '.join(names)}")
    return [variant for variant in known if not only or variant.name in only]


def _without(part: str) -> str:
    return f"without biases: {part}" if part in BIASES else f"without {part}"


def _spread(reached: Sequence[Sequence[float]]) -> list[Cell]:
    """The mean of each column and its standard deviation, of one run none."""
    values = np.array(reached)
    spread = values.std(axis=0, ddof=1).tolist() if len(values) > 1 else [None] * values.shape[1]
    means = values.mean(axis=0).tolist()
    return [
        None if cell is None else round(cell, DIGITS) for pair in zip(means, spread, strict=True) for cell in pair
    ]
