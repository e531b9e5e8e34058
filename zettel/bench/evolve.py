"""What evolution does to a memory: recall before and after it, how many notes it touches, whether it finds duplicates.

Conversations of LoCoMo, with copies of some of their turns planted in them, are asked the same questions before and
after ``evolve``. A copy stands right behind its turn, as if that had been sent twice, written a little otherwise: that
it is found is wanted, that anything else is taken for one is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from zettel import AsyncMemory
from zettel.model import Event, Evolved, Kind, Note, Scope

from . import locomo
from .counting import Asked, tally
from .evaluation import Collection, Outcome, Progress, answering, ask, embedder_called, store
from .machine import Cell, Result, data_file, result

PLANTED = 50
"""Copies in all."""
COPIED_WORDS = 8
"""Words of a turn, at least, for it to be copied: a shorter one is seldom a statement of its own."""
PER_NOTES = 50
"""Insights are told for so many notes."""
BEFORE, AFTER = "before", "after"
COPY = " (copy)"
"""What a copy's id ends in."""

STYLES: tuple[Callable[[str], str], ...] = (
    str,
    lambda text: text.upper(),
    lambda text: f"Well, {text}",
    lambda text: f"{text.rstrip('.! ')} ... Thanks!",
    lambda text: "  ".join(text.replace("'", "\u2019").split()),
)
"""How a copy differs: not at all, in case, by a word before or behind, in signs and spaces."""


class Grown(NamedTuple):
    """What became of one conversation: its notes, planted copies, those of them that were merged with their own turn,
    what evolving changed, how many insights there are, and the seconds that it took."""

    notes: int
    planted: int
    found: int
    evolved: Evolved
    insights: int
    seconds: float


async def run(
    path: Path, progress: Progress, conversations: Sequence[str] = (), k: int = 10, embedder: str | None = None
) -> Result:
    """Recall@k of categories 1 to 4 before and after, and what changed; raises what ``locomo.read`` raises."""
    collections, _ = locomo.read(path, conversations)
    model = embedder_called(embedder)
    each = ceil(PLANTED / len(collections))
    outcomes: list[Outcome] = []
    grown: list[Grown] = []
    with TemporaryDirectory(prefix="zettel-bench-") as folder:
        async with AsyncMemory(str(Path(folder) / "bench.db"), embedder=model) as memory:
            for collection in collections:
                outcomes.append(Outcome({}, {}, 0.0))
                grown.append(await _grow(memory, collection, each, k, outcomes[-1], progress))
    rows = [_row(one.name, told, outcome, k) for one, told, outcome in zip(collections, grown, outcomes, strict=True)]
    together = Outcome({name: [a for one in outcomes for a in one.asked[name]] for name in (BEFORE, AFTER)}, {}, 0.0)
    rows.append(_row("all", _sum(grown), together, k))
    return result(
        bench="evolve",
        ran_on={**data_file(path), "conversations": ", ".join(one.name for one in collections)},
        settings=answering(None, (), model, k),
        columns=["conversation", "notes", "asked", f"recall @{k} before", f"recall @{k} after", "after / before",
                 "revised share", "planted copies", "merged of them", "merged beside",
                 f"insights per {PER_NOTES} notes", "seconds"],
        rows=rows,
        notes=[f"Evidence recall of categories 1-4 in the first {k} places, with {PLANTED} planted copies, before and "
               "after one round of evolution; revised: by merging or by its neighbourhood."],
    )  # fmt: skip


async def _grow(
    memory: AsyncMemory, collection: Collection, each: int, k: int, outcome: Outcome, progress: Progress
) -> Grown:
    scope = Scope(user=collection.name)
    planted = copies(collection.events, each)
    events = [one for event in collection.events for one in (event, planted.get(str(event.id))) if one is not None]
    ids = await store(memory, collection._replace(events=events), scope, progress)
    heads = {str(event.id): id for event, id in zip(events, ids, strict=True)}
    keys = {(await _note(memory, id, scope)).event_ids[0]: name for name, id in heads.items()}
    await ask(memory, BEFORE, None, collection, keys, k, outcome, progress)
    began = time.perf_counter()
    evolved = await memory.evolve(scope=scope)
    seconds = time.perf_counter() - began
    await ask(memory, AFTER, None, collection, keys, k, outcome, progress)
    into = {own: (await _note(memory, heads[str(copy.id)], scope)).merged_into for own, copy in planted.items()}
    found = sum(id == heads[own] for own, id in into.items())
    insights = len((await memory.list(kinds=[Kind.INSIGHT], limit=len(heads), scope=scope)).notes)
    return Grown(len(heads), len(planted), found, evolved, insights, seconds)


def copies(events: Sequence[Event], wanted: int) -> dict[str, Event]:
    """Copies of so many events, by the ids of these: evenly spread over those that state something, in all STYLES."""
    stating = [one for one in events if len(one.content.split()) >= COPIED_WORDS and "?" not in one.content]
    count = min(wanted, len(stating))
    chosen = [stating[place * len(stating) // count] for place in range(count)]
    return {
        str(event.id): event.model_copy(
            update={"id": f"{event.id}{COPY}", "content": STYLES[nth % len(STYLES)](event.content)}
        )
        for nth, event in enumerate(chosen)
    }


async def _note(memory: AsyncMemory, id: str, scope: Scope) -> Note:
    note = await memory.get(id, scope=scope)
    assert isinstance(note, Note)
    return note


def _row(name: str, grown: Grown, outcome: Outcome, k: int) -> list[Cell]:
    before, after = (tally(_answerable(outcome.asked[one]), k) for one in (BEFORE, AFTER))
    changed = grown.evolved.revised + grown.evolved.merged
    return [
        name, grown.notes, before.questions, round(before.recall, 4), round(after.recall, 4),
        round(after.recall / before.recall, 4) if before.recall else None, round(changed / grown.notes, 4),
        grown.planted, grown.found, grown.evolved.merged - grown.found,
        round(PER_NOTES * grown.insights / grown.notes, 3), round(grown.seconds, 2),
    ]  # fmt: skip


def _answerable(asked: Sequence[Asked]) -> list[Asked]:
    return [one for one in asked if one.group in locomo.MEAN_OF]


def _sum(grown: Sequence[Grown]) -> Grown:
    evolved = Evolved(*(sum(counts) for counts in zip(*(one.evolved for one in grown), strict=True)))
    notes, planted, found, insights = (
        sum(getattr(one, name) for one in grown) for name in ("notes", "planted", "found", "insights")
    )
    return Grown(notes, planted, found, evolved, insights, sum(one.seconds for one in grown))
