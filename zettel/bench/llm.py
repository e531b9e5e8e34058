"""What it costs to have a language model write the notes and decide the links, and what comes of it.

The model is a server on this machine that has its answers already (``replay``): notes that were recorded of the turns
of one LoCoMo conversation. All else is as with any model: questions, HTTP, answers that have to be read and checked.
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
from zettel.annotate.filler import is_filler
from zettel.annotate.recorded import RecordedAnnotator
from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.llm.lite import LiteLLM
from zettel.llm.ports import Reading, Turn, Written, nobody
from zettel.model import Event, Kind, Scope
from zettel.ports import Embedder, Passage

from . import locomo
from .completions import CompletionServer
from .evaluation import Collection, Outcome, Progress, ask, remember
from .machine import Cell, Result, data_file, result
from .probe import in_fresh_process
from .replay import Replay, Spoken
from .timing import percentiles

MODEL = "openai/recorded"
K = 10
DAMAGED = 0.05
"""Share of damaged items in the run that has some."""
SLOW = 5.0
"""Seconds that the model takes for an answer while ``add`` is timed."""
ADDS = 300
WARM_UPS = 20
"""Turns that are added and worked off before those that are timed, so that all is loaded."""
PACE = 1.0
"""Seconds between two turns of the timed chat: quicker than people write, so that more falls together."""
PERCENTILES = (50, 95)


class Run(NamedTuple):
    """What one way of remembering came to. Calls and tokens are per turn, the rest are shares."""

    recall: float
    calls: float | None = None
    tokens: float | None = None
    written: float | None = None


async def run(
    path: Path, notes_file: Path, progress: Progress, conversation: str | None = None, embedder: str | None = None
) -> Result:
    """Remember one conversation without a model, with one, with one that is asked for little, and with a damaged one.

    ``notes_file`` is as ``RecordedAnnotator`` reads it. ``conversation`` may be left out where the file has one.
    Raises ``InvalidInput``, ``BadRecord``.
    """
    collections, _ = locomo.read(path, [conversation] if conversation else [])
    if len(collections) != 1:
        raise InvalidInput("recorded notes belong to one conversation: name it with --conversation")
    (collection,) = collections
    written = await _recorded(RecordedAnnotator(notes_file), collection.events)
    model = load_embedder(embedder)
    measure = partial(_measure, collection, written, model, progress)
    runs = {
        "no model": await measure("no model", None),
        "default": await measure("default", "default"),
        "lean": await measure("lean", "lean"),
        "damaged": await measure("damaged", "default", DAMAGED),
    }
    with_model, without = await _add_times(collection.events, written, embedder, progress)
    turns = len(collection.events)
    fillers = sum(is_filler(event.content, event.role) for event in collection.events)
    return result(
        bench="llm",
        ran_on={**data_file(path), "conversation": collection.name, "turns": turns},
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
            ["calls", *(_rounded(one.calls) for one in runs.values()), "a turn"],
            ["tokens", *(_rounded(one.tokens, 1) for one in runs.values()), "a turn"],
            ["notes with the model's fields", *(_rounded(one.written) for one in runs.values()), "of 1"],
            [f"recall @{K}", *(_rounded(one.recall) for one in runs.values()), "of 1"],
            ["filler", *[round(fillers / turns, 4)] * len(runs), "of 1"],
            *([f"add p{p}", plain, slow, None, None, "ms"] for p, plain, slow in _beside(without, with_model)),
            *([f"add p{p} ÷ without", 1.0, round(slow / plain, 2), None, None, "times"]
              for p, plain, slow in _beside(without, with_model)),
        ],
        notes=[
            f"{turns} turns, {fillers} of them filler, which is not sent; recall is that of categories 1 to 4.",
            "Tokens are those of the tokenizer that comes with LiteLLM: messages, schema and answer. Of the notes with "
            f"the model's fields, filler is left out. damaged: {DAMAGED:.0%} of the items of notes.",
            f"add: {ADDS} turns, one every {PACE:g} s, in two processes at once, of which one has a model that takes "
            f"{SLOW:g} s an answer.",
        ],
    )  # fmt: skip


async def _recorded(annotator: RecordedAnnotator, events: Sequence[Event]) -> dict[Spoken, Written]:
    """What was written of the turns, by how a question shows them."""
    turns = [Turn(str(one.id), str(one.id), Passage(one.content, None, one.role, one.occurred_at)) for one in events]
    wrote = await annotator.annotate(Reading(tuple(turns)), nobody(Scope(), ()))
    told = zip(events, wrote.turns, strict=True)
    written = {Spoken(event.role or "", event.content): one for event, one in told if isinstance(one, Written)}
    if not written:
        raise InvalidInput(f"{annotator.path} has no note of this conversation")
    return written


async def _measure(
    collection: Collection,
    written: Mapping[Spoken, Written],
    embedder: Embedder,
    progress: Progress,
    name: str,
    mode: Mode | None,
    damaged: float = 0.0,
) -> Run:
    """Remember a conversation in a new store, with a model unless ``mode`` is None, and ask its questions."""
    scope = Scope(user=collection.name)
    outcome = Outcome({}, {}, 0.0)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="zettel-bench-"))
        more: dict[str, Any] = {}
        if mode is not None:
            server = stack.enter_context(CompletionServer(Replay(written, damaged)))
            more = {"llm": LiteLLM(MODEL, api_base=server.url), "annotator": LiteLLMAnnotator(mode)}
        memory = await stack.enter_async_context(AsyncMemory(Path(folder) / "bench.db", embedder=embedder, **more))
        keys = await remember(memory, collection, progress)
        await ask(memory, name, None, collection, keys, K, outcome, progress)
        recall = locomo.mean(outcome.asked[name], K).recall
        if mode is None:
            return Run(recall)
        told, turns = await memory.stats(scope=scope), len(collection.events)
        share = await _written_share(memory, scope, told["notes"], written)
        return Run(recall, told["llm_calls"] / turns, told["llm_tokens"] / turns, share)


async def _written_share(memory: AsyncMemory, scope: Scope, notes: int, written: Mapping[Spoken, Written]) -> float:
    """The share of the notes of turns that are no filler with what was written of them; ``notes``: of all kinds."""
    page = await memory.list(kinds=[Kind.EPISODIC], limit=notes, scope=scope)
    sent = [note for note in page.notes if not is_filler(note.content, note.role)]
    said = [written.get(Spoken(note.role or "", note.content)) for note in sent]
    carry = sum(one is not None and note.context == one.context for note, one in zip(sent, said, strict=True))
    return carry / len(sent)


async def _add_times(
    events: Sequence[Event], written: Mapping[Spoken, Written], embedder: str | None, progress: Progress
) -> tuple[list[float], list[float]]:
    """Seconds of each ``add`` of the same chat in two processes at once: with a slow model, and without one."""
    progress("adding", 0, ADDS)
    turns = enumerate(islice(cycle(events), WARM_UPS + ADDS))
    chat = [event.model_copy(update={"id": str(number)}).model_dump(mode="json") for number, event in turns]
    with TemporaryDirectory(prefix="zettel-bench-") as folder, CompletionServer(Replay(written), SLOW) as server:
        (Path(folder) / "meeting").mkdir()
        both = {
            "what": "chat",
            "embedder": embedder,
            "events": chat,
            "before": WARM_UPS,
            "pace": PACE,
            "meeting": str(Path(folder) / "meeting"),
        }
        slow = {"store": str(Path(folder) / "slow.db"), "delay": PACE / 2, "model": [MODEL, server.url]}
        plain = {"store": str(Path(folder) / "plain.db"), "delay": 0.0, "model": None}
        with_model, without = await asyncio.gather(
            *(anyio.to_thread.run_sync(partial(in_fresh_process, **both, **one)) for one in (slow, plain))
        )
    return with_model["seconds"], without["seconds"]


def _beside(without: Sequence[float], with_model: Sequence[float]) -> list[tuple[int, float, float]]:
    """Each percentile with both times, in milliseconds."""
    return list(
        zip(PERCENTILES, percentiles(without, PERCENTILES), percentiles(with_model, PERCENTILES), strict=True)
    )


def _rounded(value: float | None, digits: int = 4) -> Cell:
    return None if value is None else round(value, digits)
