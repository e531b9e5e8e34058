"""Reembed: fill a second vector set with another embedder, then switch to it.

Searches use the old set until the switch. What is filled stays filled, so it can be stopped at any moment; the job in
the queue is taken up again by whoever opens the store with the same embedder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from zettel.annotate.index import vector_text
from zettel.batch import Op, PutVector
from zettel.commit import Clock, Commits
from zettel.embed.vectors import Vectors
from zettel.jobs.queue import new_job
from zettel.model import JobKind, Note, Scope
from zettel.ports import GraphStore, ScopeState

REEMBED_BATCH = 512
"""Notes embedded between two commits: what an interruption may cost."""

Progress: TypeAlias = Callable[[int, int], None]
"""Told after each batch how many notes were embedded, and how many there are."""


class Reembedding:
    """Changes a store over to the embedder of ``vectors``."""

    def __init__(self, store: GraphStore, commits: Commits, vectors: Vectors) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self.on_progress: Progress | None = None
        self.done = 0

    async def is_wanted(self) -> bool:
        """Whether somebody has begun to change over to this embedder and has not ended."""
        fingerprint = self._vectors.embedder.info.fingerprint
        return any(not space.active and space.fingerprint == fingerprint for space in await self._store.spaces())

    async def queue(self, scope: Scope) -> None:
        """Begin: make the new vector set, and a job that ``scope`` keeps; nothing if it is the active one."""
        self.done = 0
        if (await self._vectors.own_space()).active:
            return

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            return [new_job(scope, JobKind.REEMBED, clock.now)]

        await self._commits.commit(scope, plan)
        await self._store.retry(scope)

    async def go_on(self) -> None:
        """Embed what has no vector yet in the new set, then switch."""
        space = await self._vectors.own_space()
        total = (await self._store.counts(None))["notes"]
        self.done = 0
        while True:
            while pending := await self._store.without_vector(space.id, REEMBED_BATCH):
                for scope, notes in _by_scope(pending):
                    await self._fill(scope, notes, space.id)
                self.done += len(pending)
                if self.on_progress is not None:
                    self.on_progress(self.done, total)
            if await self._store.activate(space.id):
                break  # else a note came meanwhile, with a vector of the old set only
        self._vectors.forget()

    async def _fill(self, scope: Scope, notes: Sequence[Note], space: int) -> None:
        rows = await self._vectors.embedder.embed([vector_text(note) for note in notes])

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            now = await self._store.notes(scope, [note.id for note in notes])
            return [
                PutVector(note.id, space, row)
                for note, row in zip(notes, rows, strict=True)
                if note.id in now and vector_text(now[note.id]) == vector_text(note)
            ]

        await self._commits.commit(scope, plan)


def _by_scope(pending: Sequence[tuple[Scope, Note]]) -> list[tuple[Scope, list[Note]]]:
    grouped: dict[str, tuple[Scope, list[Note]]] = {}
    for scope, note in pending:
        grouped.setdefault(scope.key, (scope, []))[1].append(note)
    return list(grouped.values())
