"""Write rate of the Neo4j store, compared with bare Cypher that creates the same graph.

Batches are recorded beforehand, so neither time contains annotation, embedding or linking. Both sides write the same
batches into an empty scope, with the same driver, constraints and indexes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from zettel import AsyncMemory
from zettel.core.vectors import Vectors
from zettel.errors import StoreError
from zettel.graph import open_store
from zettel.graph.neo4j.store import Neo4jStore
from zettel.model import Event, Scope
from zettel.ports.operations import Batch, FinishJob, Op, PutJob, PutVector

from .bare_cypher import ScopeGraph, Statement
from .evaluation import Progress
from .overlap import TENANT, store_name
from .zipf import ZipfScope

if TYPE_CHECKING:
    from zettel.ports import Embedder, GraphStore

BATCH = 1_000
"""Notes in one transaction."""
BATCHES = 3
WARM_UPS, ROUNDS = 2, 3
"""Untimed rounds, because the server compiles queries, and timed rounds."""
TITLED_EVERY = 10
"""One message in ten has a title, a name in its text, so that others mention it."""

SCOPE = Scope(tenant=TENANT, user="insert")


class Inserted(NamedTuple):
    """Seconds of each timed batch, counts of the written graph by labels and types, and the server's name."""

    store: list[float]
    bare: list[float]
    written: Counter[str]
    server: str

    @property
    def rates(self) -> tuple[float, float]:
        """Notes per second of the median batch: store, bare."""
        return BATCH / median(self.store), BATCH / median(self.bare)


async def measure(url: str, embedder: Embedder, progress: Progress) -> Inserted:
    """Write the same batches alternately with both sides into a temporary scope.

    Raises ``StoreError`` if the sides wrote different graphs, and the errors of opening the store.
    """
    progress("making batches", 0, BATCHES)
    batches = await _record_batches(embedder)
    store = Neo4jStore(url)
    await store.open()
    try:
        space = (await Vectors(store, embedder).space()).id
        return await _alternate(store, [_in_space(batch, space) for batch in batches], progress)
    finally:
        await store.drop_scope(SCOPE)
        await store.close()


async def _alternate(store: Neo4jStore, batches: Sequence[Batch], progress: Progress) -> Inserted:
    graph = ScopeGraph(store.driver, store.connection.database, SCOPE.key)
    progress("inserting", 0, WARM_UPS + ROUNDS)
    bare, expected = await _read_back(store, graph, batches)
    inserted = Inserted([], [], expected, await store_name(store))
    for turn in range(WARM_UPS + ROUNDS):
        progress("inserting", turn, WARM_UPS + ROUNDS)
        ours = await _seconds(store, store.apply, batches)
        theirs = await _seconds(store, graph.write, bare)
        if (counts := await graph.counts()) != expected:
            extra, missing = dict(counts - expected), dict(expected - counts)
            raise StoreError(f"{store.url}: bare statements added {extra} and lack {missing}: run it again")
        if turn >= WARM_UPS:
            inserted.store.extend(ours)
            inserted.bare.extend(theirs)
    return inserted


async def _read_back(
    store: Neo4jStore, graph: ScopeGraph, batches: Sequence[Batch]
) -> tuple[list[list[Statement]], Counter[str]]:
    """Apply the batches; return the same writes as bare statements, and counts of the graph."""
    await _empty_scope(store)
    batch_of: dict[str, int] = {}
    for number, batch in enumerate(batches):
        await store.apply(batch)
        for id in await graph.ids():
            batch_of.setdefault(id, number)
    return await graph.statements(batch_of, len(batches)), await graph.counts()


async def _seconds(store: Neo4jStore, write: Callable[[Any], Awaitable[None]], batches: Sequence[Any]) -> list[float]:
    """Write the batches into the empty scope; return seconds of each."""
    await _empty_scope(store)
    seconds = []
    for batch in batches:
        began = time.perf_counter()
        await write(batch)
        seconds.append(time.perf_counter() - began)
    return seconds


async def _empty_scope(store: Neo4jStore) -> None:
    """Delete the scope's data and load its state into the store."""
    await store.drop_scope(SCOPE)
    await store.state(SCOPE)


# batches --------------------------------------------------------------------------------------------------------


async def _record_batches(embedder: Embedder) -> list[Batch]:
    """Record BATCHES batches, each with the writes of adding and linking BATCH messages, without jobs."""
    recorder = _Recorder(open_store(":memory:"))
    waiting = _titled(iter(ZipfScope(BATCH * BATCHES)))
    batches = []
    async with AsyncMemory(cast("GraphStore", recorder), embedder=embedder, scope=SCOPE) as memory:
        for _ in range(BATCHES):
            recorder.applied.clear()
            await memory.add_many_report(list(islice(waiting, BATCH)))
            await memory.flush()
            batches.append(_join(recorder.applied))
    return batches


def _join(batches: Sequence[Batch]) -> Batch:
    ops = (op for batch in batches for op in batch.ops if not isinstance(op, (PutJob, FinishJob)))
    return Batch(batches[0].scope, batches[0].expects, batches[-1].seq, tuple(ops))


def _in_space(batch: Batch, space: int) -> Batch:
    """Return the batch with its vectors in this vector set."""
    ops: tuple[Op, ...] = tuple(replace(op, space=space) if isinstance(op, PutVector) else op for op in batch.ops)
    return replace(batch, ops=ops)


def _titled(events: Iterator[Event]) -> Iterator[Event]:
    for number, event in enumerate(events):
        names = [word for word in event.content[:-1].split()[1:] if word[0].isupper()]
        titled = bool(names) and number % TITLED_EVERY == 0
        yield event.model_copy(update={"title": names[0]}) if titled else event


class _Recorder:
    """A store that records applied batches."""

    def __init__(self, inner: GraphStore) -> None:
        self._inner = inner
        self.applied: list[Batch] = []

    async def apply(self, batch: Batch) -> None:
        await self._inner.apply(batch)
        self.applied.append(batch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
