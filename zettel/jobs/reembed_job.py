"""The reembed job: fills a second vector set with another embedder, then switches to it.

Searches use the old set until the switch. The job may stop at any moment: the next process that opens the store with
the same embedder continues it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from zettel.core.commit import Clock, Commits
from zettel.core.follow_ups import UnfinishedJobs, finish_plan, new_job
from zettel.core.vectors import Vectors, embed_texts
from zettel.jobs.spec import JobHandler, JobSpec
from zettel.model import Job, JobKind, Note, Scope
from zettel.ports import GraphStore, ScopeState
from zettel.ports.operations import Op, PutVector
from zettel.text.index import vector_text

REEMBED_BATCH = 512
"""Notes embedded per commit; an interruption loses at most one batch."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called after each batch with the number of embedded notes and of all notes."""


class ReembedJob(JobHandler):
    """Switches a store to the embedder of ``vectors``."""

    def __init__(self, store: GraphStore, commits: Commits, vectors: Vectors) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self.on_progress: Progress | None = None
        self.done = 0

    async def is_ready(self) -> bool:
        """Return whether a switch to this embedder is unfinished."""
        fingerprint = self._vectors.embedder.info.fingerprint
        return any(not space.active and space.fingerprint == fingerprint for space in await self._store.spaces())

    async def queue(self, scope: Scope) -> None:
        """Create the new vector set and queue a job in ``scope``; do nothing if the set is active already."""
        self.done = 0
        if (await self._vectors.own_space()).active:
            return

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            return [new_job(scope, JobKind.REEMBED, clock.now)]

        await self._commits.commit(scope, plan)
        await self._store.retry(scope)

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs]:
        """Embed all notes that have no vector in the new set, then switch to it."""
        await self._fill_all()
        await self._commits.commit(scope, finish_plan(jobs))
        return []

    async def _fill_all(self) -> None:
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
                break  # else there is a new note with a vector in the old set only
        self._vectors.forget()

    async def _fill(self, scope: Scope, notes: Sequence[Note], space: int) -> None:
        rows = await embed_texts(self._vectors.embedder, [vector_text(note) for note in notes])

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            current = await self._store.notes(scope, [note.id for note in notes])
            return [
                PutVector(note.id, space, row)
                for note, row in zip(notes, rows, strict=True)
                if note.id in current and vector_text(current[note.id]) == vector_text(note)
            ]

        await self._commits.commit(scope, plan)


def _by_scope(pending: Sequence[tuple[Scope, Note]]) -> list[tuple[Scope, list[Note]]]:
    grouped: dict[str, tuple[Scope, list[Note]]] = {}
    for scope, note in pending:
        grouped.setdefault(scope.key, (scope, []))[1].append(note)
    return list(grouped.values())


JOB = JobSpec(
    JobKind.REEMBED,
    lambda context: ReembedJob(context.store, context.commits, context.vectors),
    store_wide=True,
)
