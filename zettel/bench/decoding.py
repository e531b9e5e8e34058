"""Memory decoders trained on labelled conversations, and what they are worth on others.

As for the default scorer's weights (see ``fitting``), every collection is stored in a scope of its own and asked its
questions through the engine; a reranker that keeps what it is shown collects the shortlists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from zettel import AsyncMemory
from zettel.annotate.index import vector_text
from zettel.errors import InvalidInput
from zettel.model import Scope
from zettel.scoring.decoder import MemoryDecoderScorer
from zettel.scoring.decoder_model import BIASES, MemoryDecoder, MemoryDecoderConfig
from zettel.scoring.slots import Shown, show
from zettel.scoring.training import Example, K, Settings, base, hold_back, recall, scores, talk_only, train

from . import locomo, two_wiki
from .evaluation import Collection, Progress, answering, embedder_called, store
from .fitting import K_DOCUMENTS, read
from .machine import Cell, Result, data_file, result
from .pictures import LEARNING

if TYPE_CHECKING:
    from zettel.ports import Embedder
    from zettel.query import Floats, Question, Shortlist

HELD_BACK = 0.15
"""Share of the conversations to learn from that choose the epoch instead."""
COUNTED = f"Recall@{K}, of documents @{K_DOCUMENTS}: questions with an answer, each conversation in its scope."
SWITCHES = ("gates", "setwise", "biases", *BIASES, "vectors")
"""Parts that can be left out, to see what they are worth; ``biases`` are all of those after it."""


class Watch:
    """A reranker that keeps what it is shown, and changes nothing."""

    name = "watch"
    reads = 100
    wants_vectors = True

    def __init__(self) -> None:
        self.seen: list[tuple[Question, Shortlist]] = []

    async def rerank(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[Floats]:
        """The order as it is."""
        self.seen += zip(questions, shortlists, strict=True)
        return [-np.arange(len(one.rows), dtype=np.float32) for one in shortlists]


async def learn(
    paths: Sequence[Path],
    progress: Progress,
    out: Path,
    test: Sequence[Path] = (),
    documents: tuple[Path, Path] | None = None,
    without: Sequence[str] = (),
    embedder: str | None = None,
    settings: Settings | None = None,
    bank: int = 0,
) -> Result:
    """Train on the conversations of ``paths`` (and ``documents``), write the decoder to ``out``, and tell what it is
    worth there, and on the conversations of ``test``. ``bank``: slots for each scope.

    Raises ``InvalidInput`` for fewer than two conversations or an unknown part, ``BadRecord`` for a damaged file.
    """
    settings = settings or Settings()
    model = embedder_called(embedder)
    config = config_without(without, model, bank)
    told = [one for path in paths for one in read(path)]
    if len(told) < 2:
        raise InvalidInput("name two conversations or more to learn from: some are held back")
    tested = [one for path in test for one in read(path)]
    corpus = [two_wiki.read(*documents)[0]] if documents else []
    shown = await collect([*told, *corpus, *tested], model, progress)
    groups = [one.name for one in (*told, *corpus)]
    held = set(np.array(groups[: len(told)])[hold_back(groups[: len(told)], HELD_BACK, settings.seed)])
    examples = [one for name in groups if name not in held for one in shown[name]]
    choosing = [one for name in groups if name in held for one in shown[name]]
    trained = train(examples, choosing, config, settings, progress)
    trained.model.config = replace(config, talk_only=talk_only(trained.model, [*examples, *choosing], K_DOCUMENTS))
    MemoryDecoderScorer(trained.model).save(out)
    rows: list[list[Cell]] = []
    for name, kind in [
        *((name, "held back" if name in held else "learned from") for name in groups),
        *((one.name, "test") for one in tested),
    ]:
        k = K_DOCUMENTS if corpus and name == corpus[0].name else K
        rows.append([f"{name} ({kind})", *_worth(trained.model, shown[name], k)])
    parts = {"held back": sorted(held), "test": [one.name for one in tested]}
    for kind, names in parts.items():
        if several := [one for name in names for one in shown[name]]:
            rows.append([f"all {kind}", *_worth(trained.model, several, K)])
    files = (*paths, *test, *(documents or ()))
    return result(
        bench=LEARNING,
        ran_on={path.name: data_file(path)["sha256"] for path in files},
        settings={
            **answering(None, (), model, K), "left out": ", ".join(without) or None, "epochs": len(trained.epochs),
            "best epoch": trained.best + 1, "seed": settings.seed, "numbers": _size(trained.model),
        },
        columns=["recall of", "questions", "fusion", "decoder", "difference"],
        rows=rows,
        curves={
            "loss": [round(one.loss, 4) for one in trained.epochs],
            "recall held back": [round(one.recall, 4) for one in trained.epochs],
        },
        notes=[COUNTED],
    )  # fmt: skip


def config_without(without: Sequence[str], embedder: Embedder, bank: int = 0) -> MemoryDecoderConfig:
    """A decoder for this embedder with some of the SWITCHES off. Raises ``InvalidInput`` for an unknown one."""
    if unknown := sorted(set(without) - set(SWITCHES)):
        raise InvalidInput(f"there is no part {unknown[0]!r} to leave out; there are {', '.join(SWITCHES)}")
    reads = "vectors" not in without
    return MemoryDecoderConfig(
        vector=embedder.info.dim if reads else 0,
        embedder=embedder.info.fingerprint if reads else "",
        gates="gates" not in without,
        setwise="setwise" not in without,
        biases=() if "biases" in without else tuple(one for one in BIASES if one not in without),
        bank=bank,
    )


async def judge(
    folder: str | None,
    paths: Sequence[Path],
    progress: Progress,
    documents: tuple[Path, Path] | None = None,
    embedder: str | None = None,
) -> Result:
    """What the decoder of a folder (None: the one that is shipped) is worth on these conversations and documents."""
    scorer = MemoryDecoderScorer.load(folder)
    told = [one for path in paths for one in read(path)]
    corpus = [two_wiki.read(*documents)[0]] if documents else []
    model = embedder_called(embedder)
    shown = await collect([*told, *corpus], model, progress)
    rows: list[list[Cell]] = [[one.name, *_worth(scorer.model, shown[one.name], K)] for one in told]
    rows.append(["all", *_worth(scorer.model, [one for name in told for one in shown[name.name]], K)])
    rows += [[one.name, *_worth(scorer.model, shown[one.name], K_DOCUMENTS)] for one in corpus]
    return result(
        bench="scorer eval",
        ran_on={path.name: data_file(path)["sha256"] for path in (*paths, *(documents or ()))},
        settings={**answering(None, (), model, K), "decoder": folder or "shipped"},
        columns=["recall of", "questions", "fusion", "decoder", "difference"],
        rows=rows,
        notes=[COUNTED],
    )


async def collect(
    collections: Sequence[Collection], embedder: Embedder, progress: Progress
) -> Mapping[str, list[Example]]:
    """What a decoder is shown of each collection's questions. Raises ``InvalidInput`` for a name twice."""
    names = [collection.name for collection in collections]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"there are two conversations {twice[0]!r}: name each file once, and differently")
    watch = Watch()
    found: dict[str, list[Example]] = {}
    with TemporaryDirectory(prefix="zettel-train-") as folder:
        async with AsyncMemory(str(Path(folder) / "train.db"), embedder=embedder, scorer=watch) as memory:
            for place, collection in enumerate(collections):
                scope = Scope(user=collection.name)
                await store(memory, collection, scope, progress)
                progress("asking", place, len(collections))
                told = [(note, str(event.id)) async for event, notes in memory.dump(scope=scope) for note in notes]
                events = {note.id: event for note, event in told}
                history = await embedder.embed([vector_text(note) for note, _ in told])
                found[collection.name] = []
                for question in collection.questions:
                    if question.group == locomo.UNANSWERABLE or not question.needed:
                        continue
                    watch.seen.clear()
                    await memory.search(question.text, k=1, scope=scope, log=False)
                    for asked, shortlist in watch.seen:  # none for a scope of one note
                        answers = np.array([events[note.id] in question.needed for note in shortlist.notes])
                        seen = _light(show(asked, shortlist))
                        found[collection.name].append(
                            Example(seen, answers, len(question.needed), question.group, history)
                        )
    return found


def _light(shown: Shown) -> Shown:
    """The same with its pairs in half precision: those of 3,000 questions take 1 GB."""
    return shown._replace(pairs=shown.pairs.astype(np.float16))


def _worth(model: MemoryDecoder, examples: Sequence[Example], k: int) -> list[Cell]:
    before = recall([base(one) for one in examples], examples, k)
    after = recall(scores(model, examples), examples, k)
    return [len(examples), round(before, 4), round(after, 4), round(after - before, 4)]


def _size(model: MemoryDecoder) -> int:
    return sum(weights.numel() for weights in model.parameters())
