"""Overlap of the first ten hits of several stores on the same events and questions.

A comparison with an exhaustive store shows the hits that an approximate store misses.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeAlias

from zettel import AsyncMemory
from zettel.embed import load_embedder
from zettel.errors import InvalidInput
from zettel.graph import open_store
from zettel.graph.neo4j.store import Neo4jStore
from zettel.model import EventRecord, Scope
from zettel.ports import GraphStore

from . import locomo
from .evaluation import Collection, Progress, Question, run_settings, store
from .metrics import overlap
from .results import Cell, Result, data_files
from .synthetic import large_scope
from .timing import MILLISECONDS

K = 10
NOTES = 20_000
"""Size of the synthetic scope, far more than the candidates of one question."""
ORACLE = "zettel.testing.reference_store:ReferenceStore"
"""An exhaustive store."""
TENANT = "zettel bench"
"""Tenant of temporary scopes in a store that the caller named."""

_MADE_UP = "made up"
_CLASS = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")

HitEvents: TypeAlias = list[list[tuple[str, ...]]]
"""Per question its hits, best first, each as the external ids of its events."""


class Answers(NamedTuple):
    """A store's hits, and seconds of all searches; None for a sum over conversations."""

    hits: HitEvents
    seconds: float | None

    @property
    def milliseconds(self) -> float | None:
        """Mean time of a search."""
        return None if self.seconds is None else round(self.seconds / max(len(self.hits), 1) * MILLISECONDS, 1)


async def run(
    path: Path,
    progress: Progress,
    against: Sequence[str] = (ORACLE,),
    url: str | None = None,
    notes: int = NOTES,
    embedder: str | None = None,
) -> Result:
    """Measure overlap on each conversation of a LoCoMo file and on a synthetic scope of ``notes`` (0: none).

    ``url``, by default a new embedded store, and ``against`` are arguments of ``store_of``. Every two stores are
    compared. Raises ``InvalidInput`` for an unknown store, and the errors of the reader.
    """
    others = [store_of(spec) for spec in against]
    collections, _ = locomo.read(path)
    talks = len(collections)
    if notes:
        collections.append(_synthetic(notes))
    model = load_embedder(embedder)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="zettel-bench-"))
        named = [store_of(url or str(Path(folder) / "overlap.db")), *others]
        stores = [open_store(store) if isinstance(store, str) else store for store in named]
        memories = [await stack.enter_async_context(AsyncMemory(store, embedder=model)) for store in stores]
        names = [await store_name(store) for store in stores]
        answers = [[await _answers(memory, collection, progress) for memory in memories] for collection in collections]
    compared: list[tuple[Cell, Cell, Sequence[Answers]]] = [
        (collection.name, len(collection.events), of_stores)
        for collection, of_stores in zip(collections, answers, strict=True)
    ]
    together = [
        Answers([hits for of_stores in answers[:talks] for hits in of_stores[place].hits], None)
        for place in range(len(names))
    ]
    compared.insert(talks, ("all conversations", None, together))
    several = len(names) > 2
    return Result(
        bench="overlap",
        data=data_files([path]),
        ran_on={"made-up notes": notes},
        settings=run_settings(None, (), model, K)
        | {
            "store": names[0],
            "against": ", ".join(f"{name} ({spec})" for name, spec in zip(names[1:], against, strict=True)),
        },
        columns=["scope", "notes", "questions"]
        + (["one", "other"] if several else [])
        + [f"overlap @{K}", "same first"]
        + (["one ms", "other ms"] if several else [f"{name} ms" for name in names]),
        rows=[row for entry in compared for row in _rows(*entry, names)],
        notes=[f"Mean share of the first {K} hits that both stores have; ms for a search, on average."],
    )


async def store_name(store: GraphStore) -> str:
    """Return the name of an open store, with the version of a server."""
    if not isinstance(store, Neo4jStore):
        return store.name
    return f"{store.name} {(await store.driver.get_server_info()).agent.rpartition('/')[2]}"


def store_of(spec: str) -> str | GraphStore:
    """Return a path or URL unchanged, ``package.module:Class`` as an instance of the class.

    The current folder is on the module search path. Raises ``InvalidInput`` for an unknown class.
    """
    match = _CLASS.fullmatch(spec)
    if match is None:
        return spec
    module, name = match.groups()
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        store: GraphStore = getattr(import_module(module), name)()
    except ModuleNotFoundError as error:
        hint = "install zettel again, or name another store" if spec == ORACLE else "check that it is installed"
        raise InvalidInput(f"{spec}: module {error.name!r} does not exist: {hint}") from None
    except AttributeError:
        raise InvalidInput(f"{spec}: module {module} has no class {name}; check the name") from None
    return store


def _synthetic(notes: int) -> Collection:
    events, questions = large_scope(notes)
    return Collection(_MADE_UP, events, [Question(text, _MADE_UP, frozenset()) for text in questions])


async def _answers(memory: AsyncMemory, collection: Collection, progress: Progress) -> Answers:
    """Store a collection in its own scope, search for its questions, and delete the scope."""
    scope = Scope(tenant=TENANT, user=collection.name)
    await memory.delete_scope(scope=scope)  # from an interrupted run
    try:
        await store(memory, collection, scope, progress)
        external_ids: dict[str, str] = {}
        answers: HitEvents = []
        seconds = 0.0
        for place, question in enumerate(collection.questions):
            progress(f"asking {collection.name}", place, len(collection.questions))
            began = time.perf_counter()
            hits = await memory.search(question.text, k=K, scope=scope)
            seconds += time.perf_counter() - began
            for event in {event for hit in hits for event in hit.note.event_ids} - external_ids.keys():
                record = await memory.get(event, scope=scope)
                assert isinstance(record, EventRecord)
                external_ids[event] = str(record.external_id)
            answers.append([tuple(sorted(external_ids[event] for event in hit.note.event_ids)) for hit in hits])
    finally:
        await memory.delete_scope(scope=scope)
    return Answers(answers, seconds)


def _rows(scope: Cell, notes: Cell, answers: Sequence[Answers], names: Sequence[str]) -> list[list[Cell]]:
    """Return a row per pair of stores, with their names if there are more than two."""
    rows = []
    for (left_name, left), (right_name, right) in combinations(zip(names, answers, strict=True), 2):
        pair = [left_name, right_name] if len(names) > 2 else []
        same = _compare(left.hits, right.hits)
        rows.append([scope, notes, len(left.hits), *pair, *same, left.milliseconds, right.milliseconds])
    return rows


def _compare(left: HitEvents, right: HitEvents) -> tuple[float, float]:
    """Return the overlap, and the share of questions with the same first hit."""
    same = sum(a[:1] == b[:1] for a, b in zip(left, right, strict=True))
    return round(overlap(left, right), 4), round(same / max(len(left), 1), 4)
