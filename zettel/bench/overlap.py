"""Several stores, the same events and questions: how many of the first ten hits any two have in common.

What a store leaves out to be quick shows here, best against one that looks at every note.
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
from zettel.errors import InvalidInput
from zettel.graph import open_store
from zettel.graph.neo4j.store import Neo4jStore
from zettel.model import EventRecord, Scope
from zettel.ports import GraphStore

from . import locomo
from .counting import overlap
from .evaluation import Collection, Progress, Question, answering, embedder_called, store
from .machine import Cell, Result, data_file, result
from .synthetic import large_scope
from .timing import MILLISECONDS

K = 10
NOTES = 20_000
"""Size of the made-up scope: well past what a store looks at for one question."""
ORACLE = "tests.contract.reference:ReferenceStore"
"""The store that looks at every note; it belongs to the tests, and so to a checkout."""
TENANT = "zettel bench"
"""Of the scopes that are made for this, and deleted after, in a store that somebody named."""

_MADE_UP = "made up"
_CLASS = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")

Found: TypeAlias = list[list[tuple[str, ...]]]
"""For each question its hits, best first, each as the ids of its events."""


class Answers(NamedTuple):
    """What a store found, and how long all of it took; None where that is not told."""

    found: Found
    seconds: float | None

    @property
    def milliseconds(self) -> float | None:
        """For one search, on average."""
        return None if self.seconds is None else round(self.seconds / max(len(self.found), 1) * MILLISECONDS, 1)


async def run(
    path: Path,
    progress: Progress,
    against: Sequence[str] = (ORACLE,),
    url: str | None = None,
    notes: int = NOTES,
    embedder: str | None = None,
) -> Result:
    """Overlap on each conversation of a LoCoMo file and on a made-up scope of ``notes`` (0: without).

    ``url`` and ``against`` are what ``store_of`` takes; without ``url`` it is a new embedded store. Every store is
    compared with every other one. Raises ``InvalidInput`` for a store that cannot be made, and what reading the file
    raises.
    """
    others = [store_of(spec) for spec in against]
    collections, _ = locomo.read(path)
    talks = len(collections)
    if notes:
        collections.append(_made_up(notes))
    model = embedder_called(embedder)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="zettel-bench-"))
        named = [store_of(url or str(Path(folder) / "overlap.db")), *others]
        stores = [open_store(store) if isinstance(store, str) else store for store in named]
        memories = [await stack.enter_async_context(AsyncMemory(store, embedder=model)) for store in stores]
        names = [await called(store) for store in stores]
        told = [[await _answers(memory, one, progress) for memory in memories] for one in collections]
    compared: list[tuple[Cell, Cell, Sequence[Answers]]] = [
        (one.name, len(one.events), answers) for one, answers in zip(collections, told, strict=True)
    ]
    together = [
        Answers([found for one in told[:talks] for found in one[place].found], None) for place in range(len(names))
    ]
    compared.insert(talks, ("all conversations", None, together))
    several = len(names) > 2
    return result(
        bench="overlap",
        ran_on={**data_file(path), "made-up notes": notes},
        settings=answering(None, (), model, K)
        | {
            "store": names[0],
            "against": ", ".join(f"{name} ({spec})" for name, spec in zip(names[1:], against, strict=True)),
        },
        columns=["scope", "notes", "questions"]
        + (["one", "other"] if several else [])
        + [f"overlap @{K}", "same first"]
        + (["one ms", "other ms"] if several else [f"{name} ms" for name in names]),
        rows=[row for one in compared for row in _rows(*one, names)],
        notes=[f"Mean share of the first {K} hits that both stores have; ms for a search, on average."],
    )


async def called(store: GraphStore) -> str:
    """The name of an open store, with the release of a server."""
    if not isinstance(store, Neo4jStore):
        return store.name
    return f"{store.name} {(await store.driver.get_server_info()).agent.rpartition('/')[2]}"


def store_of(spec: str) -> str | GraphStore:
    """A path or URL as it is; ``package.module:Class`` as an instance of that class.

    Modules are also looked for in the current folder. Raises ``InvalidInput`` for a class that is not there.
    """
    match = _CLASS.fullmatch(spec)
    if match is None:
        return spec
    module, name = match.groups()
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        made: GraphStore = getattr(import_module(module), name)()
    except ModuleNotFoundError as error:
        hint = "run this in a checkout of zettel, or name another store" if spec == ORACLE else "is it installed?"
        raise InvalidInput(f"{spec}: there is no module {error.name!r} here; {hint}") from None
    except AttributeError:
        raise InvalidInput(f"{spec}: {module} has no {name}") from None
    return made


def _made_up(notes: int) -> Collection:
    events, questions = large_scope(notes)
    return Collection(_MADE_UP, events, [Question(text, _MADE_UP, frozenset()) for text in questions])


async def _answers(memory: AsyncMemory, collection: Collection, progress: Progress) -> Answers:
    """Remember a collection in a scope of its own, ask its questions, and forget it."""
    scope = Scope(tenant=TENANT, user=collection.name)
    await memory.delete_scope(scope=scope)  # what an interrupted run left
    try:
        await store(memory, collection, scope, progress)
        keys: dict[str, str] = {}
        found: Found = []
        seconds = 0.0
        for place, question in enumerate(collection.questions):
            progress(f"asking {collection.name}", place, len(collection.questions))
            began = time.perf_counter()
            hits = await memory.search(question.text, k=K, scope=scope)
            seconds += time.perf_counter() - began
            for event in {event for hit in hits for event in hit.note.event_ids} - keys.keys():
                record = await memory.get(event, scope=scope)
                assert isinstance(record, EventRecord)
                keys[event] = str(record.id)
            found.append([tuple(sorted(keys[event] for event in hit.note.event_ids)) for hit in hits])
    finally:
        await memory.delete_scope(scope=scope)
    return Answers(found, seconds)


def _rows(scope: Cell, notes: Cell, answers: Sequence[Answers], names: Sequence[str]) -> list[list[Cell]]:
    """One for every two stores, which are named if there are more than two."""
    rows = []
    for (name, one), (other_name, other) in combinations(zip(names, answers, strict=True), 2):
        pair = [name, other_name] if len(names) > 2 else []
        same = _compared(one.found, other.found)
        rows.append([scope, notes, len(one.found), *pair, *same, one.milliseconds, other.milliseconds])
    return rows


def _compared(one: Found, other: Found) -> tuple[float, float]:
    """The overlap, and the share of questions with the same first hit."""
    same = sum(a[:1] == b[:1] for a, b in zip(one, other, strict=True))
    return round(overlap(one, other), 4), round(same / max(len(one), 1), 4)
