"""``StoreWriter``: writes test data to a store in the batches that the engine writes."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np

from zettel.core.commit import Clock, Commits
from zettel.core.principals import acting
from zettel.core.revise import revised
from zettel.model import CallKind, Cause, EventRecord, Input, Job, JobKind, Link, LinkType, Note, Scope, Source
from zettel.ports import GraphStore, ScopeState
from zettel.ports.operations import (
    EraseEvents,
    EraseNotes,
    EraseRevisions,
    Op,
    PutEvent,
    PutJob,
    PutMention,
    PutNote,
    PutVector,
)
from zettel.ports.query import Candidates, Query
from zettel.text.index import index_note

ANN = Scope(user="ann")
DIM = 8


def vector(*numbers: float) -> Any:
    """A unit vector of DIM numbers that starts with these."""
    row = np.zeros(DIM, np.float32)
    row[: len(numbers)] = numbers
    return row / max(float(np.linalg.norm(row)), 1e-9)


SAME = vector(1)


def moment(text: str | None) -> datetime | None:
    """Parse an ISO time as UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc) if text else None


class StoreWriter:
    """Writes to one scope of a store. Ids are numbered: equal calls give equal ids in two stores."""

    def __init__(self, store: GraphStore, scope: Scope = ANN, first: int = 1) -> None:
        self.store = store
        self.scope = scope
        self.numbers = itertools.count(first)
        self.space = 0

    async def begin(self) -> StoreWriter:
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
        """Add an event (``e_1``) with its note (``n_1``) and return the note's id."""
        number = next(self.numbers)
        of_event = ("session", "speaker", "role", "title", "occurred_at", "expires_at")
        shared = {name: fields.pop(name) for name in of_event if name in fields}
        if isinstance(shared.get("occurred_at"), str):
            shared["occurred_at"] = moment(shared["occurred_at"])

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            event = EventRecord(
                event_id=f"e_{number}",
                seq=clock.next(),
                recorded_at=clock.recorded_at,
                content=content,
                source=Source(file=source) if source else None,
                principal=acting().name,
                ceiling=acting().trust,
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
        """Add a revision to a note."""

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            history = (await self.store.histories(self.scope, [id]))[id]
            new_links = tuple(
                Link(source=id, target=target, type=type, reason=f"reason {target}", recorded_at=clock.recorded_at)
                for target, type in links
            )
            read = tuple(Input(other, 1) for other in inputs)
            ops: list[Op] = [EraseRevisions(id, tuple(erased))] if erased else []
            details: dict[str, Any] = {"links": new_links, "undoes": undoes, "inputs": read, "erased": erased}
            ops.append(revised(history, clock, Cause(by=CallKind.IMPORT), change, **details))
            if vector is not None:
                ops.append(PutVector(id, self.space, vector))
            return ops

        await self.write(plan)

    async def mention(self, source: str, target: str) -> None:
        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            link = Link(
                source=source, target=target, type=LinkType.MENTIONS, reason="it", recorded_at=clock.recorded_at
            )
            return [PutMention(link)]

        await self.write(plan)

    async def erase(self, *ids: str) -> None:
        """Erase notes with their events."""
        await self.do(EraseNotes(ids), EraseEvents(tuple(id.replace("n_", "e_") for id in ids)))

    async def ask(self, *tokens: str, **query: Any) -> Candidates:
        defaults: dict[str, Any] = {"vector": None, "names": (), "times": ()}
        return await self.store.candidates(
            Query(scope=self.scope, space=self.space, tokens=tokens, **defaults | query)
        )


def a_job(id: str, scope: Scope = ANN, run_at: datetime | None = None, **fields: Any) -> Job:
    return Job(id=id, scope=scope, **{"kind": JobKind.LINK, "run_at": run_at or datetime.now(timezone.utc), **fields})
