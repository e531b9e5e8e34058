"""Feedback simulated: what tuning is worth to somebody with a preference that nobody told the memory of.

All conversations stand in one scope, as in the memory of one person. Of their questions some are asked and told of,
and the others are asked later. The simulated user sees the first ten hits of the memory decoder as it is shipped, looks
at the hit in place p with chance p^-FALL, and uses those that answer the question (by its label) and please. A later
question counts only what answers and pleases, too; one that has nothing of that is left out. Nobody else knows what
pleases: it is drawn, or stands here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel import AsyncMemory
from zettel.errors import InvalidInput
from zettel.model import Event, Scope
from zettel.scoring.tuning import propensity

from .evaluation import Collection, Progress, Question, answering, embedder_called, store
from .fitting import read
from .locomo import UNANSWERABLE
from .machine import Cell, Result, data_file, result

if TYPE_CHECKING:
    from zettel.model import Hit
    from zettel.ports import Embedder

SHOWN, K = 10, 5
"""Hits that the user sees, and places that recall is counted in later."""
NEWEST = 3
"""Of the turns of all conversations one in so many is among the newest."""
_NUMBER = re.compile(r"\d")
_SETTLED = re.compile(
    r"\b(?:decided?|agreed?|settled|booked|signed|paid|ordered|bought|moved|chose|chosen|confirmed|will|we'll|I'll"
    r"|from now on|instead|no longer)\b",
    re.IGNORECASE,
)
Pleases = Callable[[Event], bool]


class Asked(NamedTuple):
    """A question and the ids of the events that answer it."""

    text: str
    answers: frozenset[str]


def preferences(collections: Sequence[Collection], seed: int) -> dict[str, Pleases]:
    """What may please, by name; who does is drawn with ``seed``."""
    chance = np.random.default_rng((seed, len(collections)))
    liked = set()
    for collection in collections:
        spoken = sorted({event.role for event in collection.events if event.role})
        liked.add((collection.name, str(chance.choice(spoken))))
    times = sorted(event.occurred_at for collection in collections for event in collection.events if event.occurred_at)
    since = times[len(times) * (NEWEST - 1) // NEWEST]
    return {
        "one speaker": lambda event: (str(event.id).partition("/")[0], event.role) in liked,
        "the newest third": lambda event: event.occurred_at is not None and event.occurred_at >= since,
        "figures": lambda event: _NUMBER.search(event.content or "") is not None,
        "what is settled": lambda event: _SETTLED.search(event.content or "") is not None,
    }


async def run(
    paths: Sequence[Path], progress: Progress, uses: int = 500, seeds: int = 3, embedder: str | None = None
) -> Result:
    """Recall of later questions by the shipped decoder and as tuned on ``uses`` searches, for each preference.

    Raises ``InvalidInput`` if there are no questions left to ask later.
    """
    collections = [_apart(one) for path in paths for one in read(path)]
    events = {str(event.id): event for one in collections for event in one.events}
    asked = [
        Asked(one.text, one.needed)
        for collection in collections
        for one in collection.questions
        if one.needed and one.group != UNANSWERABLE
    ]
    if len(asked) <= uses:
        raise InvalidInput(f"there are {len(asked)} questions: {uses} to tell of leave none for later")
    model = embedder_called(embedder)
    rows: list[list[Cell]] = []
    names = list(preferences(collections, 0))
    for seed in range(seeds):
        for place, name in enumerate(names):
            progress("simulating", seed * len(names) + place, seeds * len(names))
            rows.append([f"{name}, seed {seed}", *await _one(collections, events, asked, name, uses, seed, model)])
    columns = ["preference", "uses", "later", "untuned", "tuned", "difference", "gain before", "gain after", "accepted"]
    for name in names:
        rows.append([f"{name}, mean", *_mean([row for row in rows if str(row[0]).startswith(f"{name}, seed")])])
    rows.append(["all, mean", *_mean([row for row in rows if ", seed" in str(row[0])])])
    return result(
        bench="feedback",
        ran_on={path.name: data_file(path)["sha256"] for path in paths},
        settings={**answering(None, (), model, K), "searches told of": uses, "seeds": seeds, "shown": SHOWN},
        columns=columns,
        rows=rows,
        notes=[
            f"Recall@{K} of questions asked after {uses} others were told of, none of which is among them; counted is "
            "what answers and pleases. Gains are those of the searches that were held back.",
            "What was not accepted is not used: there the difference is 0.",
        ],
    )


async def _one(
    collections: Sequence[Collection],
    events: Mapping[str, Event],
    asked: Sequence[Asked],
    name: str,
    uses: int,
    seed: int,
    embedder: Embedder,
) -> list[Cell]:
    """One simulated user: notes used, later questions, their recall before and after, and what tuning said."""
    pleases = preferences(collections, seed)[name]
    chance = np.random.default_rng((seed, len(asked)))
    order = chance.permutation(len(asked))
    first, later = [asked[n] for n in order[:uses]], [asked[n] for n in order[uses:]]
    wanted = [
        (one, answers)
        for one in later
        if (answers := frozenset(id for id in one.answers if pleases(events[id])))
    ]
    scope = Scope(user="one")
    with TemporaryDirectory(prefix="zettel-feedback-") as folder:
        tuned = str(Path(folder) / "tuned")
        async with AsyncMemory(str(Path(folder) / "one.db"), embedder=embedder, scope=scope) as memory:
            for collection in collections:
                await store(memory, collection, scope, lambda what, done, total: None)
            ids = {note.id: str(event.id) async for event, notes in memory.dump() for note in notes}
            used = 0
            for one in first:
                hits = await memory.search(one.text, k=SHOWN, scorer="decoder")
                seen = chance.random(len(hits)) < propensity(np.arange(1, len(hits) + 1, dtype=np.float32))
                of_use = [
                    hit.note.id
                    for hit, looked in zip(hits, seen, strict=True)
                    if looked and ids[hit.note.id] in one.answers and pleases(events[ids[hit.note.id]])
                ]
                used += len(of_use)
                await memory.feedback(str(hits[0].search_id), of_use)
            told = await memory.tune(tuned)
            untuned = await _recall(memory, wanted, ids, "decoder")
            after = await _recall(memory, wanted, ids, f"decoder:{tuned}") if told.accepted else untuned
    return [used, len(wanted), round(untuned, 4), round(after, 4), round(after - untuned, 4), told.before, told.after,
            int(told.accepted)]  # fmt: skip


async def _recall(
    memory: AsyncMemory, wanted: Sequence[tuple[Asked, frozenset[str]]], ids: Mapping[str, str], scorer: str
) -> float:
    shares = []
    for one, answers in wanted:
        hits: list[Hit] = await memory.search(one.text, k=K, scorer=scorer, log=False)
        shares.append(len(answers & {ids[hit.note.id] for hit in hits}) / len(answers))
    return float(np.mean(shares))


def _apart(one: Collection) -> Collection:
    """A conversation whose ids and sessions are no other's."""
    events = [
        event.model_copy(update={"id": f"{one.name}/{event.id}", "session": f"{one.name}/{event.session}"})
        for event in one.events
    ]
    questions = [
        Question(asked.text, asked.group, frozenset(f"{one.name}/{id}" for id in asked.needed))
        for asked in one.questions
    ]
    return Collection(one.name, events, questions)


def _mean(rows: Sequence[Sequence[Cell]]) -> list[Cell]:
    return [round(float(np.mean([float(row[place] or 0) for row in rows])), 4) for place in range(1, len(rows[0]))]
