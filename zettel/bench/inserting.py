"""What the Neo4j store's writes cost, beside bare statements that leave the same nodes and relationships.

The batches are made beforehand, so annotating, embedding and deciding links is in neither time. Both sides write
through the same driver, one transaction a batch, from an empty scope on, under the same constraints and indexes.
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
from zettel.batch import Batch, FinishJob, Op, PutJob, PutVector
from zettel.embed.vectors import Vectors
from zettel.errors import StoreError
from zettel.graph import open_store
from zettel.graph.neo4j.store import Neo4jStore
from zettel.model import Event, Scope

from .bare import Statement, Written
from .evaluation import Progress
from .overlap import TENANT, called
from .zipf import ZipfScope

if TYPE_CHECKING:
    from zettel.ports import Embedder, GraphStore

BATCH = 1_000
"""Notes in one transaction."""
BATCHES = 3
WARM_UPS, ROUNDS = 2, 3
"""Rounds of both sides that are not counted, for the server compiles what it runs often; and those that are."""
TITLED_EVERY = 10
"""Messages: one of so many has a title, a name that it holds, so that others mention it."""

SCOPE = Scope(tenant=TENANT, user="insert")


class Inserted(NamedTuple):
    """Seconds of every counted batch, of either side; what all batches left, by labels and types; on which server."""

    store: list[float]
    bare: list[float]
    left: Counter[str]
    server: str

    @property
    def rates(self) -> tuple[float, float]:
        """Notes a second at the median batch, of the store and bare."""
        return BATCH / median(self.store), BATCH / median(self.bare)


async def measure(url: str, embedder: Embedder, progress: Progress) -> Inserted:
    """Write the same batches in turns by either side, into a scope that is deleted again.

    Raises ``StoreError`` if the two sides did not leave the same, and what opening the store raises.
    """
    progress("making batches", 0, BATCHES)
    batches = await _recorded(embedder)
    store = Neo4jStore(url)
    await store.open()
    try:
        space = (await Vectors(store, embedder).space()).id
        return await _in_turns(store, [_in_space(batch, space) for batch in batches], progress)
    finally:
        await store.drop_scope(SCOPE)
        await store.close()


async def _in_turns(store: Neo4jStore, batches: Sequence[Batch], progress: Progress) -> Inserted:
    written = Written(store.driver, store.connection.database, SCOPE.key)
    progress("inserting", 0, WARM_UPS + ROUNDS)
    bare, left = await _read_back(store, written, batches)
    inserted = Inserted([], [], left, await called(store))
    for turn in range(WARM_UPS + ROUNDS):
        progress("inserting", turn, WARM_UPS + ROUNDS)
        ours = await _seconds(store, store.apply, batches)
        theirs = await _seconds(store, written.write, bare)
        if (found := await written.counted()) != left:
            raise StoreError(f"{store.url}: bare statements left {dict(found - left)}, and lack {dict(left - found)}")
        if turn >= WARM_UPS:
            inserted.store.extend(ours)
            inserted.bare.extend(theirs)
    return inserted


async def _read_back(
    store: Neo4jStore, written: Written, batches: Sequence[Batch]
) -> tuple[list[list[Statement]], Counter[str]]:
    """What the store writes for each of these batches as bare statements, and how much all of them leave."""
    await _emptied(store)
    made_by: dict[str, int] = {}
    for number, batch in enumerate(batches):
        await store.apply(batch)
        for one in await written.ids():
            made_by.setdefault(one, number)
    return await written.statements(made_by, len(batches)), await written.counted()


async def _seconds(store: Neo4jStore, write: Callable[[Any], Awaitable[None]], batches: Sequence[Any]) -> list[float]:
    """Seconds of each batch, written into the empty scope."""
    await _emptied(store)
    seconds = []
    for batch in batches:
        began = time.perf_counter()
        await write(batch)
        seconds.append(time.perf_counter() - began)
    return seconds


async def _emptied(store: Neo4jStore) -> None:
    """Leave the scope as one that was never written to, and known to the store, as it is to all who plan a batch."""
    await store.drop_scope(SCOPE)
    await store.state(SCOPE)


# batches --------------------------------------------------------------------------------------------------------


async def _recorded(embedder: Embedder) -> list[Batch]:
    """What remembering BATCH messages writes, and linking them, as one batch; without jobs, which are done by then."""
    recorder = _Recorder(open_store(":memory:"))
    waiting = _titled(iter(ZipfScope(BATCH * BATCHES)))
    batches = []
    async with AsyncMemory(cast("GraphStore", recorder), embedder=embedder, scope=SCOPE) as memory:
        for _ in range(BATCHES):
            recorder.applied.clear()
            await memory.remember(list(islice(waiting, BATCH)))
            await memory.flush()
            batches.append(_as_one(recorder.applied))
    return batches


def _as_one(batches: Sequence[Batch]) -> Batch:
    ops = (op for batch in batches for op in batch.ops if not isinstance(op, (PutJob, FinishJob)))
    return Batch(batches[0].scope, batches[0].expects, batches[-1].seq, tuple(ops))


def _in_space(batch: Batch, space: int) -> Batch:
    """The same with its vectors in this vector set."""
    ops: tuple[Op, ...] = tuple(replace(op, space=space) if isinstance(op, PutVector) else op for op in batch.ops)
    return replace(batch, ops=ops)


def _titled(events: Iterator[Event]) -> Iterator[Event]:
    for number, event in enumerate(events):
        names = [word for word in event.content[:-1].split()[1:] if word[0].isupper()]
        titled = bool(names) and number % TITLED_EVERY == 0
        yield event.model_copy(update={"title": names[0]}) if titled else event


class _Recorder:
    """A store that keeps the batches that it is given."""

    def __init__(self, inner: GraphStore) -> None:
        self._inner = inner
        self.applied: list[Batch] = []

    async def apply(self, batch: Batch) -> None:
        await self._inner.apply(batch)
        self.applied.append(batch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
