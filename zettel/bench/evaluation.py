"""Asking a memory and the baselines the same questions, each collection in a scope of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeAlias, cast, get_args

from zettel import AsyncMemory
from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.model import Event, Note, Scope
from zettel.ports import Embedder, Scorer

from .baselines import BM25, FlatVectors
from .counting import Asked
from .machine import Cell

BATCH = 500
"""Events in one transaction, as in an import."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is, and how much there is."""


class Question(NamedTuple):
    """What is asked, its category, and the ``Event.id`` of each event that it needs."""

    text: str
    group: str
    needed: frozenset[str]


class Collection(NamedTuple):
    """Events of one scope, each with an id, and questions about them; one without an answer here needs nothing."""

    name: str
    events: Sequence[Event]
    questions: Sequence[Question]


class Outcome(NamedTuple):
    """Per system all questions with their hits, and seconds spent by the memory."""

    asked: dict[str, list[Asked]]
    remembering: float
    searching: float


async def evaluate(
    collections: Sequence[Collection], k: int, scorer: Scorer | None, embedder: Embedder, progress: Progress
) -> Outcome:
    """Store and ask everything in a new embedded store, thrown away after, and in memory by the baselines."""
    outcome = Outcome({}, 0.0, 0.0)
    with TemporaryDirectory(prefix="zettel-bench-") as folder:
        async with AsyncMemory(str(Path(folder) / "bench.db"), embedder=embedder, scorer=scorer) as memory:
            for collection in collections:
                began = time.perf_counter()
                keys = await _remember(memory, collection, progress)
                remembered = time.perf_counter()
                await _ask(memory, collection, keys, k, outcome, progress)
                outcome = outcome._replace(
                    remembering=outcome.remembering + remembered - began,
                    searching=outcome.searching + time.perf_counter() - remembered,
                )
                await _ask_baselines(collection, k, embedder, outcome)
    return outcome


def answering(
    scorer: Scorer | None, without: Sequence[str], embedder: Embedder, k: int | Sequence[int]
) -> dict[str, Cell]:
    """The settings of a run, as its result tells them."""
    name, dim, fingerprint = embedder.info
    return {
        "k": k if isinstance(k, int) else ", ".join(map(str, k)),
        "scorer": scorer.name if scorer else "default",
        "without": ", ".join(without) or None,
        "embedder": f"{name} ({dim}, {fingerprint[:12]})",
        "store": "embedded",
    }


def scorer_without(parts: Sequence[str]) -> Scorer | None:
    """The default scorer with parts of it switched off; None for the default itself.

    Raises ``InvalidInput`` for a part that it does not have.
    """
    if not parts:
        return None
    from zettel.scoring.fusion import FusionScorer, Group

    unknown = sorted(set(parts) - set(get_args(Group)))
    if unknown:
        raise InvalidInput(f"there is no part {unknown[0]!r} to leave out; there are {', '.join(get_args(Group))}")
    return FusionScorer(without=frozenset(cast("list[Group]", parts)))


def embedder_called(name: str | None) -> Embedder:
    """The shipped embedder, or the one that ``name`` names."""
    return load_embedder(name)


async def store(memory: AsyncMemory, collection: Collection, scope: Scope, progress: Progress) -> list[str]:
    """Store the events of a collection and flush; the ids of their head notes."""
    heads: list[str] = []
    for start in range(0, len(collection.events), BATCH):
        progress(f"remembering {collection.name}", start, len(collection.events))
        heads += await memory.add_many(collection.events[start : start + BATCH], scope=scope)
    await memory.flush(scope=scope)
    return heads


async def _remember(memory: AsyncMemory, collection: Collection, progress: Progress) -> dict[str, str]:
    """Store a collection; returns the ``Event.id`` of each of the store's event ids."""
    scope = Scope(user=collection.name)
    heads = await store(memory, collection, scope, progress)
    keys = {}
    for head, event in zip(heads, collection.events, strict=True):
        note = await memory.get(head, scope=scope)
        assert isinstance(note, Note)
        keys[note.event_ids[0]] = str(event.id)
    return keys


async def _ask(
    memory: AsyncMemory, collection: Collection, keys: dict[str, str], k: int, outcome: Outcome, progress: Progress
) -> None:
    scope = Scope(user=collection.name)
    asked = outcome.asked.setdefault("zettel", [])
    for place, question in enumerate(collection.questions):
        progress(f"asking {collection.name}", place, len(collection.questions))
        found = await memory.search(question.text, k=k, scope=scope)
        hits = [[keys[event] for event in hit.note.event_ids] for hit in found]
        asked.append(Asked(question.group, question.needed, hits, found[0].score if found else 0.0))


async def _ask_baselines(collection: Collection, k: int, embedder: Embedder, outcome: Outcome) -> None:
    texts = [_said(event) for event in collection.events]
    ids = [str(event.id) for event in collection.events]
    for baseline in (BM25(texts), await FlatVectors.over(texts, embedder)):
        asked = outcome.asked.setdefault(baseline.name, [])
        for question in collection.questions:
            hits = [[ids[place]] for place in await baseline.rank(question.text, k)]
            asked.append(Asked(question.group, question.needed, hits))


def _said(event: Event) -> str:
    """``speaker: text`` or ``title: text``, what a simple system would index."""
    who = event.role or event.title
    return f"{who}: {event.content}" if who else event.content
