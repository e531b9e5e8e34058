"""What the tests of the embedded store share: a scribe that plans batches as zettel does, without embedder and jobs."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from zettel.annotate.index import index_note
from zettel.batch import EraseEvents, EraseNotes, EraseRevisions, Op, PutEvent, PutJob, PutMention, PutNote, PutVector
from zettel.commit import Clock, Commits
from zettel.graph.embedded.store import EmbeddedStore
from zettel.model import Cause, EventRecord, Input, Job, JobKind, Link, LinkType, Note, Scope, Source
from zettel.ports import GraphStore, ScopeState
from zettel.query import Candidates, Query  # fmt: skip
from zettel.revise import revised

ANN = Scope(user="ann")
DIM = 8
Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run in an event loop of its own."""
    return asyncio.run(work)


@asynccontextmanager
async def opened(path: Path | str, *, hasty: bool = False, **options: Any) -> AsyncIterator[EmbeddedStore]:
    """An open store; a ``hasty`` one does not wait for the disk, for tests that write a thousand times."""
    store = EmbeddedStore(path, **options)
    await store.open()
    assert store._connections is not None
    if hasty:
        with store._connections.writer() as writer:
            writer.execute("PRAGMA synchronous = OFF")
    try:
        yield store
    finally:
        await store.close()


def vector(*numbers: float) -> Any:
    """A unit row of DIM numbers that begins like this."""
    row = np.zeros(DIM, np.float32)
    row[: len(numbers)] = numbers
    return row / max(float(np.linalg.norm(row)), 1e-9)


SAME = vector(1)


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc) if text else None


class Scribe:
    """Writes into one scope of a store. Ids count upwards, so that two stores can be given the same."""

    def __init__(self, store: GraphStore, scope: Scope = ANN, first: int = 1) -> None:
        self.store = store
        self.scope = scope
        self.numbers = itertools.count(first)
        self.space = 0

    async def begin(self) -> Scribe:
        self.space = (await self.store.add_space("test", DIM, "sha", "/1")).id
        return self

    async def write(self, plan: Callable[[ScopeState, Clock], Awaitable[list[Op]]]) -> None:
        await Commits(self.store).commit(self.scope, plan)

    async def do(self, *ops: Op) -> None:
        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            return list(ops)

        await self.write(plan)

    async def add(
        self,
        content: str,
        *,
        vector: Any = SAME,
        identity: str | None = None,
        source: str | None = None,
        job: bool = False,
        **fields: Any,
    ) -> str:
        """An event with its note; the note's id. The event's is the same with ``e_``."""
        number = next(self.numbers)
        shared = {name: fields.pop(name) for name in ("session", "role", "title", "occurred_at") if name in fields}
        if isinstance(shared.get("occurred_at"), str):
            shared["occurred_at"] = moment(shared["occurred_at"])

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            event = EventRecord(
                event_id=f"e_{number}",
                seq=clock.next(),
                recorded_at=clock.recorded_at,
                content=content,
                source=Source(file=source) if source else None,
                **shared,
            )
            note = Note(
                id=f"n_{number}",
                content=content,
                event_ids=(event.event_id,),
                seq=clock.next(),
                recorded_at=clock.recorded_at,
                **{"valid_from": shared.get("occurred_at")} | shared | fields,
            )
            ops: list[Op] = [PutEvent(event, identity or f"identity {number}"), PutNote(note, index_note(note))]
            if vector is not None:
                ops.append(PutVector(note.id, self.space, vector))
            if job:
                ops.append(PutJob(a_job(f"j_{number}", self.scope, clock.recorded_at, note=note.id)))
            return ops

        await self.write(plan)
        return f"n_{number}"

    async def change(
        self,
        id: str,
        *,
        links: Sequence[tuple[str, LinkType]] = (),
        undoes: tuple[int, ...] = (),
        inputs: Sequence[str] = (),
        erased: Sequence[int] = (),
        vector: Any = None,
        **change: Any,
    ) -> None:
        """One more revision of a note."""

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            history = (await self.store.histories(self.scope, [id]))[id]
            decided = tuple(
                Link(source=id, target=target, type=type, reason=f"reason {target}", recorded_at=clock.recorded_at)
                for target, type in links
            )
            read = tuple(Input(other, 1) for other in inputs)
            cause = Cause(by="test")
            put = revised(history, clock, cause, change, links=decided, undoes=undoes, inputs=read, erased=erased)
            ops: list[Op] = [EraseRevisions(id, tuple(erased))] if erased else []
            ops.append(put)
            if vector is not None:
                ops.append(PutVector(id, self.space, vector))
            return ops

        await self.write(plan)

    async def mention(self, source: str, target: str) -> None:
        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            told = {"type": LinkType.MENTIONS, "reason": "it", "recorded_at": clock.recorded_at}
            return [PutMention(Link(source=source, target=target, **told))]

        await self.write(plan)

    async def erase(self, *ids: str) -> None:
        """Notes with their events."""
        await self.do(EraseNotes(ids), EraseEvents(tuple(id.replace("n_", "e_") for id in ids)))

    async def ask(self, *tokens: str, **query: Any) -> Candidates:
        return await self.store.candidates(
            Query(
                **{
                    "scope": self.scope,
                    "space": self.space,
                    "vector": None,
                    "tokens": tokens,
                    "names": (),
                    "times": (),
                    **query,
                }
            )
        )


def a_job(id: str, scope: Scope = ANN, run_at: datetime | None = None, **fields: Any) -> Job:
    return Job(id=id, scope=scope, **{"kind": JobKind.LINK, "run_at": run_at or datetime.now(timezone.utc), **fields})
