"""Recall before and after evolution, the share of revised notes, and detection of planted duplicates.

LoCoMo's conversations are searched before and after ``evolve``. Slightly changed copies of some turns follow their
turns, as if these had been sent twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from typing import NamedTuple

from zettel import AsyncMemory
from zettel.embed import load_embedder
from zettel.model import Event, Evolved, Kind, Note, Scope

from . import locomo
from .evaluation import Collection, Outcome, Progress, run_settings, search, store, temporary_memory
from .results import Cell, Result, data_files

PLANTED = 50
"""Copies in all."""
COPIED_WORDS = 8
"""Fewest words of a copied turn; a shorter turn is seldom a statement."""
PER_NOTES = 50
"""Insights are reported per this many notes."""
BEFORE, AFTER = "before", "after"
COPY = " (copy)"
"""Suffix of a copy's id."""

STYLES: tuple[Callable[[str], str], ...] = (
    str,
    lambda text: text.upper(),
    lambda text: f"Well, {text}",
    lambda text: f"{text.rstrip('.! ')} ... Thanks!",
    lambda text: "  ".join(text.replace("'", "\u2019").split()),
)
"""Variants of a copy: unchanged, in capitals, with a prefix, with a suffix, other quotes and spaces."""


class EvolutionCounts(NamedTuple):
    """Counts of one conversation; ``merged_copies`` are those merged into their own turn."""

    notes: int
    planted: int
    merged_copies: int
    evolved: Evolved
    insights: int
    seconds: float


async def run(
    path: Path, progress: Progress, conversations: Sequence[str] = (), k: int = 10, embedder: str | None = None
) -> Result:
    """Measure recall@k of categories 1 to 4 before and after, and count changes. Raises as ``locomo.read`` does."""
    collections, _ = locomo.read(path, conversations)
    model = load_embedder(embedder)
    copies_each = ceil(PLANTED / len(collections))
    total = Outcome({}, {}, 0.0)
    counts: list[EvolutionCounts] = []
    rows: list[list[Cell]] = []
    async with temporary_memory(embedder=model) as memory:
        for collection in collections:
            outcome = Outcome({}, {}, 0.0)
            counts.append(await _evolve(memory, collection, copies_each, k, outcome, progress))
            rows.append(_row(collection.name, counts[-1], outcome, k))
            for name, results in outcome.results.items():
                total.results.setdefault(name, []).extend(results)
    rows.append(_row("all", _sum(counts), total, k))
    return Result(
        bench="evolve",
        data=data_files([path]),
        ran_on={"conversations": ", ".join(collection.name for collection in collections)},
        settings=run_settings(None, (), model, k),
        columns=["conversation", "notes", "asked", f"recall @{k} before", f"recall @{k} after", "after / before",
                 "revised share", "planted copies", "merged of them", "merged beside",
                 f"insights per {PER_NOTES} notes", "seconds"],
        rows=rows,
        notes=[f"Evidence recall of categories 1-4 in the first {k} places, with {PLANTED} planted copies, before and "
               "after one round of evolution; revised: by merging or by its neighbourhood."],
    )  # fmt: skip


async def _evolve(
    memory: AsyncMemory, collection: Collection, planted_count: int, k: int, outcome: Outcome, progress: Progress
) -> EvolutionCounts:
    scope = Scope(user=collection.name)
    planted = copies(collection.events, planted_count)
    pairs = ((event, planted.get(str(event.external_id))) for event in collection.events)
    events = [event for pair in pairs for event in pair if event is not None]
    ids = await store(memory, collection._replace(events=events), scope, progress)
    heads = {str(event.external_id): id for event, id in zip(events, ids, strict=True)}
    event_ids = {(await _note(memory, id, scope)).event_ids[0]: name for name, id in heads.items()}
    await search(memory, BEFORE, None, collection, event_ids, k, outcome, progress)
    began = time.perf_counter()
    evolved = await memory.evolve(scope=scope)
    seconds = time.perf_counter() - began
    await search(memory, AFTER, None, collection, event_ids, k, outcome, progress)
    merged_copies = 0
    for turn, copy in planted.items():
        note = await _note(memory, heads[str(copy.external_id)], scope)
        merged_copies += note.merged_into == heads[turn]
    insights = len((await memory.list(kinds=[Kind.INSIGHT], limit=len(heads), scope=scope)).notes)
    return EvolutionCounts(len(heads), len(planted), merged_copies, evolved, insights, seconds)


def copies(events: Sequence[Event], most: int) -> dict[str, Event]:
    """Return copies of at most ``most`` statements, evenly spread and in all STYLES, by the id of the copied event."""
    stating = [event for event in events if len(event.content.split()) >= COPIED_WORDS and "?" not in event.content]
    count = min(most, len(stating))
    chosen = [stating[place * len(stating) // count] for place in range(count)]
    return {
        str(event.external_id): event.model_copy(
            update={"external_id": f"{event.external_id}{COPY}", "content": STYLES[nth % len(STYLES)](event.content)}
        )
        for nth, event in enumerate(chosen)
    }


async def _note(memory: AsyncMemory, id: str, scope: Scope) -> Note:
    note = await memory.get(id, scope=scope)
    assert isinstance(note, Note)
    return note


def _row(name: str, counts: EvolutionCounts, outcome: Outcome, k: int) -> list[Cell]:
    before, after = (locomo.mean(outcome.results[name], k) for name in (BEFORE, AFTER))
    changed = counts.evolved.revised + counts.evolved.merged
    return [
        name, counts.notes, before.questions, round(before.recall, 4), round(after.recall, 4),
        round(after.recall / before.recall, 4) if before.recall else None, round(changed / counts.notes, 4),
        counts.planted, counts.merged_copies, counts.evolved.merged - counts.merged_copies,
        round(PER_NOTES * counts.insights / counts.notes, 3), round(counts.seconds, 2),
    ]  # fmt: skip


def _sum(counts: Sequence[EvolutionCounts]) -> EvolutionCounts:
    notes, planted, merged_copies, evolved, insights, seconds = zip(*counts, strict=True)
    return EvolutionCounts(
        sum(notes), sum(planted), sum(merged_copies), Evolved(*map(sum, zip(*evolved, strict=True))), sum(insights),
        sum(seconds),
    )  # fmt: skip
