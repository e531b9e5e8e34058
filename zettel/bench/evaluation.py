"""Asking a memory and the baselines the same questions, each collection in a scope of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeAlias, cast, get_args

from zettel import AsyncMemory
from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.llm.ports import ModelAnnotator
from zettel.model import Event, Note, Scope
from zettel.ports import Embedder, Scorer
from zettel.scoring import ScorerSpec, load_scorer
from zettel.scoring.cascade import Cascade

from .baselines import Baseline
from .beside import QUICK, beside
from .counting import Asked
from .machine import Cell
from .timing import PERCENTILES, percentiles

BATCH = 500
"""Events in one transaction, as in an import."""

OURS = "zettel"
"""What a table calls the memory with the scorer that was asked for."""

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
    """Per system all questions with their hits; seconds of each search per scorer, and those of remembering all."""

    asked: dict[str, list[Asked]]
    times: dict[str, list[float]]
    remembering: float

    @property
    def searching(self) -> float:
        """Seconds that zettel's own setting spent on all questions."""
        return sum(self.times[OURS])


async def evaluate(
    collections: Sequence[Collection],
    k: int,
    scorer: Scorer | None,
    embedder: Embedder,
    progress: Progress,
    *,
    others: Mapping[str, Baseline] | None = None,
    scorers: Mapping[str, ScorerSpec] | None = None,
    annotator: ModelAnnotator | None = None,
) -> Outcome:
    """Store and ask everything in a new embedded store, thrown away after, and by the ``others``, by default the quick.

    Further ``scorers`` ask the same store the same questions, each under its name. With an ``annotator`` it writes the
    notes before they are asked.
    """
    others = beside(QUICK, embedder).systems if others is None else others
    outcome = Outcome({}, {}, 0.0)
    with TemporaryDirectory(prefix="zettel-bench-") as folder:
        file = str(Path(folder) / "bench.db")
        async with AsyncMemory(file, embedder=embedder, scorer=scorer, annotator=annotator) as memory:
            for collection in collections:
                began = time.perf_counter()
                keys = await remember(memory, collection, progress)
                outcome = outcome._replace(remembering=outcome.remembering + time.perf_counter() - began)
                rows: dict[str, ScorerSpec] = {OURS: scorer, **(scorers or {})}
                for name, one in rows.items():
                    await ask(memory, name, one, collection, keys, k, outcome, progress)
                for name, baseline in others.items():
                    await _ask_other(name, baseline, collection, k, outcome, progress)
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


def scorers_called(names: Sequence[str]) -> dict[str, ScorerSpec]:
    """Each of these scorers by the name of its row, loaded, so that no search waits for that.

    Raises what ``load_scorer`` raises, and ``InvalidInput`` for the one that needs a language model.
    """
    found: dict[str, ScorerSpec] = {}
    for name in names:
        if name == "llm":
            raise InvalidInput("no language model is asked here: measure another scorer than llm")
        first, stages = load_scorer(name)
        found[f"{OURS}, {name}"] = Cascade(stages) if stages else first
    return found


def ablations() -> dict[str, ScorerSpec]:
    """The default scorer with each of its parts switched off in turn, by the name of its row."""
    from zettel.scoring.fusion import FusionScorer, Group

    return {f"without {part}": FusionScorer(without=frozenset([part])) for part in get_args(Group)}


def embedder_called(name: str | None) -> Embedder:
    """The shipped embedder, or the one that ``name`` names."""
    return load_embedder(name)


def curves(
    outcome: Outcome, systems: Sequence[str], measure: Callable[[Sequence[Asked], int], float], k: int
) -> dict[str, list[float]]:
    """What ``measure`` says of each system's answers in the first 1 .. ``k`` places."""
    return {name: [round(measure(outcome.asked[name], places), 4) for places in range(1, k + 1)] for name in systems}


def latency(outcome: Outcome, system: str) -> list[Cell]:
    """Percentiles of a scorer's searches in milliseconds; None each for a system that was not timed."""
    times = outcome.times.get(system)
    return list(percentiles(times)) if times else [None] * len(PERCENTILES)


LATENCY_COLUMNS = [f"p{percentile} ms" for percentile in PERCENTILES]


async def store(memory: AsyncMemory, collection: Collection, scope: Scope, progress: Progress) -> list[str]:
    """Store the events of a collection and flush; the ids of their head notes."""
    heads: list[str] = []
    for start in range(0, len(collection.events), BATCH):
        progress(f"remembering {collection.name}", start, len(collection.events))
        heads += await memory.add_many(collection.events[start : start + BATCH], scope=scope)
    await memory.flush(scope=scope)
    return heads


async def remember(memory: AsyncMemory, collection: Collection, progress: Progress) -> dict[str, str]:
    """Store a collection; returns the ``Event.id`` of each of the store's event ids."""
    scope = Scope(user=collection.name)
    heads = await store(memory, collection, scope, progress)
    keys = {}
    for head, event in zip(heads, collection.events, strict=True):
        note = await memory.get(head, scope=scope)
        assert isinstance(note, Note)
        keys[note.event_ids[0]] = str(event.id)
    return keys


async def ask(
    memory: AsyncMemory,
    name: str,
    scorer: ScorerSpec,
    collection: Collection,
    keys: dict[str, str],
    k: int,
    outcome: Outcome,
    progress: Progress,
) -> None:
    scope = Scope(user=collection.name)
    asked, times = outcome.asked.setdefault(name, []), outcome.times.setdefault(name, [])
    for place, question in enumerate(collection.questions):
        progress(f"asking {collection.name}, {name}", place, len(collection.questions))
        began = time.perf_counter()
        found = await memory.search(question.text, k=k, scorer=scorer, scope=scope)
        times.append(time.perf_counter() - began)
        hits = [[keys[event] for event in hit.note.event_ids] for hit in found]
        asked.append(Asked(question.group, question.needed, hits, found[0].score if found else 0.0))


async def _ask_other(
    name: str, baseline: Baseline, collection: Collection, k: int, outcome: Outcome, progress: Progress
) -> None:
    progress(f"asking {collection.name}, {name}", 0, len(collection.questions))
    ranks = await baseline(collection.events, [question.text for question in collection.questions], k)
    for question, places in zip(collection.questions, ranks, strict=True):
        hits = [[str(collection.events[place].id)] for place in places]
        outcome.asked.setdefault(name, []).append(Asked(question.group, question.needed, hits))
