"""Calls, tokens, recall and ``add`` times with a language model that writes notes and links.

The model is a local HTTP server that replays recorded notes of one LoCoMo conversation (``replay``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import anyio

from zettel import AsyncMemory
from zettel.annotate.by_model import LiteLLMAnnotator, Mode
from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.llm.lite import LiteLLM
from zettel.model import Event, Kind, Scope
from zettel.ports import Embedder
from zettel.ports.language_model import ModelAnnotation
from zettel.text.filler import is_filler

from . import locomo
from .child_process import chat, run_in_child
from .completions import CompletionServer
from .evaluation import Collection, Outcome, Progress, remember, search, temporary_memory
from .replay import Replay, Spoken, recorded_annotations
from .results import Cell, Result, data_files
from .timing import percentiles

MODEL = "openai/recorded"
K = 10
DAMAGED = 0.05
"""Share of damaged items in the run with damage."""
SLOW = 5.0
"""Seconds per answer of the model while ``add`` is timed."""
ADDS = 300
WARM_UPS = 20
"""Turns that are added and processed before the timed ones."""
PACE = 1.0
"""Seconds between two turns of the timed chat, shorter than between people."""
PERCENTILES = (50, 95)


PRICED = ("openai/gpt-4o-mini", "gemini/gemini-2.5-flash-lite", "anthropic/claude-haiku-4-5")
"""Models whose prices for these tokens are shown."""
PRICED_TURNS = 1_000


class Run(NamedTuple):
    """Recall and cost of one import: calls and tokens per turn, the answers' share of the tokens, and the share of
    notes with the model's fields."""

    recall: float
    calls: float | None = None
    tokens: float | None = None
    answers: float | None = None
    written: float | None = None


async def run(
    path: Path, notes_file: Path, progress: Progress, conversation: str | None = None, embedder: str | None = None
) -> Result:
    """Measure one conversation without a model, with one, in lean mode, and with damaged answers.

    ``RecordedAnnotator`` reads ``notes_file``. ``conversation`` is optional if the file contains one. Raises
    ``InvalidInput``, ``BadRecord``.
    """
    collections, _ = locomo.read(path, [conversation] if conversation else [])
    if len(collections) != 1:
        raise InvalidInput("recorded notes belong to one conversation: name it with --conversation")
    (collection,) = collections
    recorded = await recorded_annotations(notes_file, collection.events)
    if not recorded:
        raise InvalidInput(f"{notes_file} has no note of this conversation: name another with --conversation")
    model = load_embedder(embedder)
    measure = partial(_measure, collection, recorded, model, progress)
    runs = {
        "no model": await measure("no model", None),
        "default": await measure("default", "default"),
        "lean": await measure("lean", "lean"),
        "damaged": await measure("damaged", "default", DAMAGED),
    }
    with_model, without = await _add_times(collection.events, recorded, embedder, progress)
    turns = len(collection.events)
    fillers = sum(is_filler(event.content, event.role) for event in collection.events)
    return Result(
        bench="llm",
        data=data_files([path, notes_file]),
        ran_on={"conversation": collection.name, "turns": turns},
        settings={
            "notes": notes_file.name,
            "model": f"{MODEL}, served over HTTP",
            "damaged": DAMAGED,
            "adds": ADDS,
            "pace, s": PACE,
            "answer, s": SLOW,
            "embedder": model.info.name,
            "store": "embedded",
        },
        columns=["measured", *runs, "unit"],
        rows=[
            ["calls", *(_rounded(run.calls) for run in runs.values()), "a turn"],
            ["tokens", *(_rounded(run.tokens, 1) for run in runs.values()), "a turn"],
            ["- of answers", *(_rounded(run.answers) for run in runs.values()), "of 1"],
            *([f"{PRICED_TURNS:,} turns, {name}", *(_price(name, run) for run in runs.values()), "USD"]
              for name in PRICED),
            ["notes with the model's fields", *(_rounded(run.written) for run in runs.values()), "of 1"],
            [f"recall @{K}", *(_rounded(run.recall) for run in runs.values()), "of 1"],
            ["filler", *[round(fillers / turns, 4)] * len(runs), "of 1"],
            *([f"add p{p}", plain, slow, None, None, "ms"] for p, plain, slow in _paired_times(without, with_model)),
            *([f"add p{p} ÷ without", 1.0, round(slow / plain, 2), None, None, "times"]
              for p, plain, slow in _paired_times(without, with_model)),
        ],
        notes=[
            f"{turns} turns, {fillers} of them filler, which is not sent; recall is that of categories 1 to 4.",
            "Tokens are those of the tokenizer that comes with LiteLLM: messages, schema and answer. Prices are those "
            "of its table, without discounts. Of the notes with the model's fields, filler is left out. damaged: "
            f"{DAMAGED:.0%} of the items of notes.",
            f"add: {ADDS} turns, one every {PACE:g} s, in two processes at once, of which one has a model that takes "
            f"{SLOW:g} s an answer.",
        ],
    )  # fmt: skip


async def _measure(
    collection: Collection,
    recorded: Mapping[Spoken, ModelAnnotation],
    embedder: Embedder,
    progress: Progress,
    name: str,
    mode: Mode | None,
    damaged: float = 0.0,
) -> Run:
    """Store a conversation, with a model unless ``mode`` is None, and search for its questions."""
    scope = Scope(user=collection.name)
    outcome = Outcome({}, {}, 0.0)
    async with AsyncExitStack() as stack:
        model_arguments: dict[str, Any] = {}
        if mode is not None:
            server = stack.enter_context(CompletionServer(Replay(recorded, damaged)))
            model_arguments = {"llm": LiteLLM(MODEL, api_base=server.url), "annotator": LiteLLMAnnotator(mode)}
        memory = await stack.enter_async_context(temporary_memory(embedder=embedder, **model_arguments))
        event_ids = await remember(memory, collection, progress)
        await search(memory, name, None, collection, event_ids, K, outcome, progress)
        recall = locomo.mean(outcome.results[name], K).recall
        if mode is None:
            return Run(recall)
        stats, turns = await memory.stats(scope=scope), len(collection.events)
        share = await _written_share(memory, scope, stats["notes"], recorded)
        answers = server.written_tokens / (server.written_tokens + server.sent_tokens)
        return Run(recall, stats["llm_calls"] / turns, stats["llm_tokens"] / turns, answers, share)


async def _written_share(
    memory: AsyncMemory, scope: Scope, notes: int, recorded: Mapping[Spoken, ModelAnnotation]
) -> float:
    """Return the share of the notes, without filler, that have the recorded context; ``notes`` counts all kinds."""
    page = await memory.list(kinds=[Kind.EPISODIC], limit=notes, scope=scope)
    sent = [note for note in page.notes if not is_filler(note.content, note.role)]
    annotations = [recorded.get(Spoken(note.speaker or "", note.content)) for note in sent]
    return sum(
        annotation is not None and note.context == annotation.context
        for note, annotation in zip(sent, annotations, strict=True)
    ) / len(sent)


async def _add_times(
    events: Sequence[Event], recorded: Mapping[Spoken, ModelAnnotation], embedder: str | None, progress: Progress
) -> tuple[list[float], list[float]]:
    """Return seconds of each ``add`` of one chat in two concurrent processes: with a slow model, and without."""
    progress("adding", 0, ADDS)
    turns = enumerate(islice(cycle(events), WARM_UPS + ADDS))
    turns_json = [
        event.model_copy(update={"external_id": str(number)}).model_dump(mode="json") for number, event in turns
    ]
    with TemporaryDirectory(prefix="zettel-bench-") as folder, CompletionServer(Replay(recorded), SLOW) as server:
        (Path(folder) / "ready").mkdir()
        common = {
            "embedder": embedder,
            "events": turns_json,
            "before": WARM_UPS,
            "pace": PACE,
            "ready_folder": str(Path(folder) / "ready"),
        }
        slow = {"store": str(Path(folder) / "slow.db"), "delay": PACE / 2, "model": [MODEL, server.url]}
        plain = {"store": str(Path(folder) / "plain.db"), "delay": 0.0, "model": None}
        with_model, without = await asyncio.gather(
            *(anyio.to_thread.run_sync(partial(run_in_child, chat, **common, **side)) for side in (slow, plain))
        )
    return with_model["seconds"], without["seconds"]


def _paired_times(without: Sequence[float], with_model: Sequence[float]) -> list[tuple[int, float, float]]:
    """Return each percentile with both times, in milliseconds."""
    return list(
        zip(PERCENTILES, percentiles(without, PERCENTILES), percentiles(with_model, PERCENTILES), strict=True)
    )


def _price(model: str, run: Run) -> Cell:
    """Return the price of the turns in USD, None without a model or without a known price."""
    if run.tokens is None or run.answers is None:
        return None
    tokens = run.tokens * PRICED_TURNS
    written = round(tokens * run.answers)
    return _rounded(LiteLLM(model).price(round(tokens) - written, written))


def _rounded(value: float | None, digits: int = 4) -> Cell:
    return None if value is None else round(value, digits)
