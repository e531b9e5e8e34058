"""Evaluation of zettel and baselines on the same questions, each collection in its own scope."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias, cast, get_args

from zettel import AsyncMemory
from zettel.errors import InvalidInput
from zettel.model import Event, Note, Scope
from zettel.ports import Embedder, Scorer
from zettel.ports.language_model import ModelAnnotator
from zettel.scoring import Cascade, ScorerSpec, load_scorer

from .baselines import QUICK, Baseline, load_baselines
from .metrics import QuestionResult, ranking
from .results import Cell
from .timing import PERCENTILES, percentiles

BATCH = 500
"""Events in one transaction, as in an import."""

OURS = "zettel"
"""Row name of zettel with the selected scorer."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with (step, done, total)."""


class Question(NamedTuple):
    """A question, its category, and the external ids of the events that it needs."""

    text: str
    group: str
    needed: frozenset[str]


class Collection(NamedTuple):
    """Events of one scope, each with an external id, and questions; an unanswerable question needs no event."""

    name: str
    events: Sequence[Event]
    questions: Sequence[Question]


class Outcome(NamedTuple):
    """Results per system, seconds of each search per scorer, and seconds of the import."""

    results: dict[str, list[QuestionResult]]
    times: dict[str, list[float]]
    import_seconds: float

    def joined(self, other: Outcome) -> Outcome:
        """Return both outcomes as one, the questions of ``other`` last."""
        results = {name: [*self.results.get(name, []), *found] for name, found in other.results.items()}
        times = {name: [*self.times.get(name, []), *spent] for name, spent in other.times.items()}
        return Outcome(results, times, self.import_seconds + other.import_seconds)

    @property
    def search_seconds(self) -> float:
        """Seconds of all searches with the selected scorer."""
        return sum(self.times[OURS])


@asynccontextmanager
async def temporary_memory(**settings: Any) -> AsyncIterator[AsyncMemory]:
    """Open a memory in a new embedded store, which is deleted afterwards; ``settings`` are those of ``AsyncMemory``."""
    with TemporaryDirectory(prefix="zettel-bench-") as folder:
        async with AsyncMemory(str(Path(folder) / "bench.db"), **settings) as memory:
            yield memory


async def evaluate(
    collections: Sequence[Collection],
    k: int,
    scorer: Scorer | None,
    embedder: Embedder,
    progress: Progress,
    *,
    baselines: Mapping[str, Baseline] | None = None,
    scorers: Mapping[str, ScorerSpec] | None = None,
    annotator: ModelAnnotator | None = None,
) -> Outcome:
    """Search a temporary store with ``scorer`` and each of ``scorers``, and rank with ``baselines`` (default: QUICK).

    The ``annotator`` writes the notes on import.
    """
    baselines = load_baselines(QUICK, embedder).systems if baselines is None else baselines
    outcome = Outcome({}, {}, 0.0)
    specs: dict[str, ScorerSpec] = {OURS: scorer, **(scorers or {})}
    async with temporary_memory(embedder=embedder, scorer=scorer, annotator=annotator) as memory:
        for collection in collections:
            began = time.perf_counter()
            event_ids = await remember(memory, collection, progress)
            outcome = outcome._replace(import_seconds=outcome.import_seconds + time.perf_counter() - began)
            for name, spec in specs.items():
                await search(memory, name, spec, collection, event_ids, k, outcome, progress)
            for name, baseline in baselines.items():
                await rank(name, baseline, collection, k, outcome, progress)
    return outcome


async def evaluate_each(
    collections: Iterable[Collection],
    k: int,
    embedder: Embedder,
    progress: Progress,
    baselines: Mapping[str, Baseline],
    scorers: Mapping[str, ScorerSpec],
) -> tuple[Outcome, int]:
    """Evaluate each collection in a store of its own, one at a time in memory, and count their events."""
    outcome, events = Outcome({}, {}, 0.0), 0
    for collection in collections:
        events += len(collection.events)
        part = await evaluate([collection], k, None, embedder, progress, baselines=baselines, scorers=scorers)
        outcome = outcome.joined(part)
    return outcome, events


def by_session(outcome: Outcome, collections: Sequence[Collection]) -> Outcome:
    """Return the outcome in sessions instead of events: needed sessions, and sessions in the order of their first hit.

    The collections are those of the outcome, in their order.
    """
    results: dict[str, list[QuestionResult]] = {name: [] for name in outcome.results}
    start = 0
    for collection in collections:
        sessions = {str(event.external_id): str(event.session) for event in collection.events}
        for name, found in outcome.results.items():
            for result in found[start : start + len(collection.questions)]:
                needed = frozenset(sessions[event] for event in result.needed)
                hits = [[session] for session in dict.fromkeys(sessions[event] for event in ranking(result.hits))]
                results[name].append(result._replace(needed=needed, hits=hits))
        start += len(collection.questions)
    return outcome._replace(results=results)


def run_settings(
    scorer: Scorer | None, without: Sequence[str], embedder: Embedder, k: int | Sequence[int]
) -> dict[str, Cell]:
    """Return the settings of a run for its result."""
    name, dim, fingerprint = embedder.info
    return {
        "k": k if isinstance(k, int) else ", ".join(map(str, k)),
        "scorer": scorer.name if scorer else "default",
        "without": ", ".join(without) or None,
        "embedder": f"{name} ({dim}, {fingerprint[:12]})",
        "store": "embedded",
    }


def scorer_without(parts: Sequence[str]) -> Scorer | None:
    """Return the default scorer without these parts; None if ``parts`` is empty. Raises ``InvalidInput``."""
    if not parts:
        return None
    from zettel.scoring.features import AblationGroup
    from zettel.scoring.fusion import FusionScorer

    unknown = sorted(set(parts) - set(get_args(AblationGroup)))
    if unknown:
        raise InvalidInput(f"unknown part {unknown[0]!r}: leave out {', '.join(get_args(AblationGroup))}")
    return FusionScorer(without=frozenset(cast("list[AblationGroup]", parts)))


def load_scorers(names: Sequence[str]) -> dict[str, ScorerSpec]:
    """Load scorers by row name. Raises ``InvalidInput`` for ``llm``, and the errors of ``load_scorer``."""
    loaded: dict[str, ScorerSpec] = {}
    for name in names:
        if name == "llm":
            raise InvalidInput("this benchmark calls no language model: measure another scorer than llm")
        first, stages = load_scorer(name)
        loaded[f"{OURS}, {name}"] = Cascade(stages) if stages else first
    return loaded


def ablations() -> dict[str, ScorerSpec]:
    """Return the default scorer without each part in turn, by row name."""
    from zettel.scoring.features import AblationGroup
    from zettel.scoring.fusion import FusionScorer

    return {f"without {part}": FusionScorer(without=frozenset([part])) for part in get_args(AblationGroup)}


def curves(
    outcome: Outcome, systems: Sequence[str], measure: Callable[[Sequence[QuestionResult], int], float], k: int
) -> dict[str, list[float]]:
    """Return each system's ``measure`` in the first 1 to ``k`` places."""
    return {name: [round(measure(outcome.results[name], places), 4) for places in range(1, k + 1)] for name in systems}


def latency(outcome: Outcome, system: str) -> list[Cell]:
    """Return percentiles of a scorer's searches in milliseconds; None values for a baseline."""
    times = outcome.times.get(system)
    return list(percentiles(times)) if times else [None] * len(PERCENTILES)


LATENCY_COLUMNS = [f"p{percentile} ms" for percentile in PERCENTILES]


async def store(memory: AsyncMemory, collection: Collection, scope: Scope, progress: Progress) -> list[str]:
    """Store the events of a collection and flush; return the ids of their head notes."""
    heads: list[str] = []
    for start in range(0, len(collection.events), BATCH):
        progress(f"remembering {collection.name}", start, len(collection.events))
        heads += await memory.add_many(collection.events[start : start + BATCH], scope=scope)
    await memory.flush(scope=scope)
    return heads


async def remember(memory: AsyncMemory, collection: Collection, progress: Progress) -> dict[str, str]:
    """Store a collection; return the external id by event id."""
    scope = Scope(user=collection.name)
    heads = await store(memory, collection, scope, progress)
    external_ids = {}
    for head, event in zip(heads, collection.events, strict=True):
        note = await memory.get(head, scope=scope)
        assert isinstance(note, Note)
        external_ids[note.event_ids[0]] = str(event.external_id)
    return external_ids


async def external_ids_by_note(memory: AsyncMemory, scope: Scope) -> dict[str, str]:
    """Return the external id of the event behind each note of a scope."""
    return {note.id: str(event.external_id) async for event, notes in memory.dump(scope=scope) for note in notes}


async def search(
    memory: AsyncMemory,
    name: str,
    scorer: ScorerSpec,
    collection: Collection,
    event_ids: Mapping[str, str],
    k: int,
    outcome: Outcome,
    progress: Progress,
) -> None:
    """Search for all questions of a collection and append to ``outcome``; ``event_ids`` gives external ids."""
    scope = Scope(user=collection.name)
    results, times = outcome.results.setdefault(name, []), outcome.times.setdefault(name, [])
    for place, question in enumerate(collection.questions):
        progress(f"asking {collection.name}, {name}", place, len(collection.questions))
        began = time.perf_counter()
        hits = await memory.search(question.text, k=k, scorer=scorer, scope=scope)
        times.append(time.perf_counter() - began)
        ids = [[event_ids[event] for event in hit.note.event_ids] for hit in hits]
        results.append(QuestionResult(question.group, question.needed, ids, hits[0].score if hits else 0.0))


async def rank(
    name: str, baseline: Baseline, collection: Collection, k: int, outcome: Outcome, progress: Progress
) -> None:
    """Rank the events of a collection for all its questions and append to ``outcome``."""
    progress(f"asking {collection.name}, {name}", 0, len(collection.questions))
    ranks = await baseline(collection.events, [question.text for question in collection.questions], k)
    for question, places in zip(collection.questions, ranks, strict=True):
        hits = [[str(collection.events[place].external_id)] for place in places]
        outcome.results.setdefault(name, []).append(QuestionResult(question.group, question.needed, hits))
