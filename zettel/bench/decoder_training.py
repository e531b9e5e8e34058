"""Training and evaluation of memory decoders on labelled conversations.

Every collection is stored in its own scope and its questions are searched through the engine. A reranker records the
shortlists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.model import Scope
from zettel.scoring.decoder import MemoryDecoderScorer
from zettel.scoring.decoder_inputs import decoder_input
from zettel.scoring.decoder_model import MemoryDecoder, MemoryDecoderConfig
from zettel.scoring.training import (
    Example,
    K,
    TrainingSettings,
    base_scores,
    is_conversations_only,
    recall,
    scores,
    train,
    validation_mask,
)

from . import chats, locomo, multihop
from .evaluation import Collection, Progress, external_ids_by_note, run_settings, store, temporary_memory
from .fitting import K_DOCUMENTS, read
from .plots import LEARNING
from .results import Cell, Result, data_files

if TYPE_CHECKING:
    from zettel.ports import Embedder
    from zettel.ports.query import Floats, Question, Shortlist

VALIDATION_SHARE = 0.15
"""Share of the training conversations that select the epoch."""
COUNTED = f"Recall@{K}, of documents @{K_DOCUMENTS}: questions with an answer, each conversation in its scope."


class Recorder:
    """A reranker that records its input and keeps the order."""

    name = "recorder"
    reads = 100
    wants_vectors = True

    def __init__(self) -> None:
        self.seen: list[tuple[Question, Shortlist]] = []

    async def rerank(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[Floats]:
        self.seen += zip(questions, shortlists, strict=True)
        return [-np.arange(len(shortlist.rows), dtype=np.float32) for shortlist in shortlists]


async def learn(
    paths: Sequence[Path],
    progress: Progress,
    out: Path,
    test: Sequence[Path] = (),
    documents: tuple[Path, Path] | None = None,
    vectors: bool = True,
    embedder: str | None = None,
    settings: TrainingSettings | None = None,
) -> Result:
    """Train on the conversations of ``paths`` (and ``documents``), save the decoder to ``out``, and measure it.

    Raises ``InvalidInput`` for fewer than two conversations, ``BadRecord`` for a damaged file.
    """
    settings = settings or TrainingSettings()
    model = load_embedder(embedder)
    config = config_for(model) if vectors else MemoryDecoderConfig()
    conversations = [talk for path in paths for talk in read(path)]
    if len(conversations) < 2:
        raise InvalidInput("pass two conversations or more: some of them select the epoch")
    tested = [talk for path in test for talk in read(path)]
    corpus = [multihop.read(*documents)[0]] if documents else []
    examples = await collect([*conversations, *corpus, *tested], model, progress)
    names = [talk.name for talk in conversations]
    reserved = set(np.array(names)[validation_mask(names, VALIDATION_SHARE, settings.seed)])
    names += [passages.name for passages in corpus]
    training = [example for name in names if name not in reserved for example in examples[name]]
    validation = [example for name in names if name in reserved for example in examples[name]]
    trained = train(training, validation, config, settings, progress)
    decoder = trained.model
    conversations_only = is_conversations_only(decoder, [*training, *validation], K_DOCUMENTS)
    decoder.config = replace(config, conversations_only=conversations_only)
    MemoryDecoderScorer(decoder).save(out)
    rows: list[list[Cell]] = []
    for name, kind in [
        *((name, "held out" if name in reserved else "trained on") for name in names),
        *((talk.name, "test") for talk in tested),
    ]:
        k = K_DOCUMENTS if corpus and name == corpus[0].name else K
        rows.append([f"{name} ({kind})", *_gain(decoder, examples[name], k)])
    for kind, group in {"held out": sorted(reserved), "test": [talk.name for talk in tested]}.items():
        if several := [example for name in group for example in examples[name]]:
            rows.append([f"all {kind}", *_gain(decoder, several, K)])
    return Result(
        bench=LEARNING,
        data=data_files(chats.files(*paths, *test, *(documents or ()))),
        ran_on={},
        settings={
            **run_settings(None, (), model, K), "vectors": vectors, "epochs": len(trained.epochs),
            "best epoch": trained.best + 1, "seed": settings.seed,
            "parameters": sum(weights.numel() for weights in decoder.parameters()),
        },
        columns=["recall of", "questions", "fusion", "decoder", "difference"],
        rows=rows,
        curves={
            "loss": [round(epoch.loss, 4) for epoch in trained.epochs],
            "recall held out": [round(epoch.recall, 4) for epoch in trained.epochs],
        },
        notes=[COUNTED],
    )  # fmt: skip


def config_for(embedder: Embedder) -> MemoryDecoderConfig:
    """Return the configuration of a decoder that reads the vectors of this embedder."""
    return MemoryDecoderConfig(vector_dim=embedder.info.dim, embedder=embedder.info.fingerprint)


async def judge(
    folder: str | None,
    paths: Sequence[Path],
    progress: Progress,
    documents: tuple[Path, Path] | None = None,
    embedder: str | None = None,
) -> Result:
    """Measure the decoder of a folder (None: the shipped one) on conversations and documents."""
    scorer = MemoryDecoderScorer.load(folder)
    conversations = [talk for path in paths for talk in read(path)]
    corpus = [multihop.read(*documents)[0]] if documents else []
    model = load_embedder(embedder)
    examples = await collect([*conversations, *corpus], model, progress)
    rows: list[list[Cell]] = [[talk.name, *_gain(scorer.model, examples[talk.name], K)] for talk in conversations]
    every = [example for talk in conversations for example in examples[talk.name]]
    rows.append(["all", *_gain(scorer.model, every, K)])
    rows += [[passages.name, *_gain(scorer.model, examples[passages.name], K_DOCUMENTS)] for passages in corpus]
    return Result(
        bench="scorer eval",
        data=data_files(chats.files(*paths, *(documents or ()))),
        ran_on={},
        settings={**run_settings(None, (), model, K), "decoder": folder or "shipped"},
        columns=["recall of", "questions", "fusion", "decoder", "difference"],
        rows=rows,
        notes=[COUNTED],
    )


async def collect(
    collections: Sequence[Collection], embedder: Embedder, progress: Progress
) -> Mapping[str, list[Example]]:
    """Return examples of each collection's answerable questions. Raises ``InvalidInput`` for a duplicate name."""
    names = [collection.name for collection in collections]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"two conversations are named {twice[0]!r}: name each file once, and differently")
    recorder = Recorder()
    examples: dict[str, list[Example]] = {}
    async with temporary_memory(embedder=embedder, scorer=recorder) as memory:
        for place, collection in enumerate(collections):
            scope = Scope(user=collection.name)
            await store(memory, collection, scope, progress)
            progress("asking", place, len(collections))
            events = await external_ids_by_note(memory, scope)
            examples[collection.name] = []
            for question in collection.questions:
                if question.group == locomo.UNANSWERABLE or not question.needed:
                    continue
                recorder.seen.clear()
                await memory.search(question.text, k=1, scope=scope, log=False)
                for parsed, shortlist in recorder.seen:  # no shortlist for a scope of one note
                    answers = np.array([events[note.id] in question.needed for note in shortlist.notes])
                    inputs = decoder_input(parsed, shortlist)
                    inputs = inputs._replace(pairs=inputs.pairs.astype(np.float16))  # 1 GB for 3,000 questions
                    examples[collection.name].append(Example(inputs, answers, len(question.needed)))
    return examples


def _gain(model: MemoryDecoder, examples: Sequence[Example], k: int) -> list[Cell]:
    before = recall([base_scores(example) for example in examples], examples, k)
    after = recall(scores(model, examples), examples, k)
    return [len(examples), round(before, 4), round(after, 4), round(after - before, 4)]
