"""What each kind of job does. A handler takes jobs of one scope and kind, and writes their effect and their end in one
commit."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple, TypeAlias

from zettel.annotate.index import vector_text
from zettel.batch import Op
from zettel.commit import Clock, Commits
from zettel.embed.vectors import Vectors
from zettel.jobs.evolution import ROUND
from zettel.jobs.queue import Left, ending, finish, new_job
from zettel.jobs.reembed import Reembedding
from zettel.model import Job, JobKind, Kind, Note, Scope
from zettel.ports import GraphStore, ScopeState

CLAIM = 1024
"""Jobs taken at once: enough to share reads among them, few enough to be done well inside the lease."""
LEASE_SECONDS = 30.0
"""How long a claimed batch is left to its worker before another may take it: what a killed worker delays. One that is
only slow loses nothing but its effort, for effects are written once."""
LINGER_SECONDS = 0.5
MODEL_LEASE_SECONDS = 300.0
"""The same where a model is asked: some requests of a minute each, one after the other."""
MODEL_LINGER_SECONDS = 10.0
"""A call costs the same for one turn as for twenty; until then a note has its extractive fields."""
PURGE_REST = 4.0
"""How many times as long as it took a purge is not run again: it rewrites the whole store, and deletes come in rows."""


class Lane(NamedTuple):
    """Jobs that are done one batch after the other, beside those of other lanes."""

    kinds: tuple[JobKind, ...]
    claim: int = CLAIM
    """Jobs taken at once."""
    lease: float = LEASE_SECONDS
    linger: float = LINGER_SECONDS
    """Seconds that a batch waits for more to join it while nobody waits for it: a job costs far less in company, and
    writers that add one event at a time get out of each other's way."""


Handler: TypeAlias = Callable[[Scope, Sequence[Job]], Awaitable["list[Left]"]]
"""Does jobs of one scope and kind; tells which could not be done, and why."""


class Work:
    """The handlers of this version's jobs. Kinds without one are left to whoever has it.

    ``model_claim``: jobs taken at once where a language model is asked; None: there is no model.
    """

    def __init__(
        self,
        store: GraphStore,
        commits: Commits,
        vectors: Vectors,
        handlers: Mapping[JobKind, Handler],
        model_claim: int | None,
    ) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._handlers: dict[JobKind, Handler] = {
            JobKind.EMBED: self._embed,
            JobKind.REEMBED: self._reembed,
            **handlers,
        }
        self._model_claim = model_claim
        self.reembedding = Reembedding(store, commits, vectors)
        self._purge_from = 0.0

    def lanes(self) -> list[Lane]:
        """What is worked at side by side. What waits for a model holds up nothing else."""
        kinds = [kind for kind in JobKind if kind in self._handlers or kind is JobKind.PURGE]
        if self._model_claim is None:
            return [Lane(tuple(kinds))]
        rounds = tuple(kind for kind in ROUND if kind in kinds)
        asking = (JobKind.LINK, JobKind.ANNOTATE, *rounds)
        return [
            Lane(tuple(kind for kind in kinds if kind not in asking)),
            Lane((JobKind.LINK,), self._model_claim, MODEL_LEASE_SECONDS),
            Lane((JobKind.ANNOTATE,), self._model_claim, MODEL_LEASE_SECONDS, MODEL_LINGER_SECONDS),
            Lane(rounds),
        ]

    async def kinds(self) -> list[JobKind]:
        """The jobs that can be done here and now.

        To reembed takes the very embedder that the store is to change over to; a purge rests after the one before.
        """
        kinds = {kind for lane in self.lanes() for kind in lane.kinds}
        if not await self.reembedding.is_wanted():
            kinds.discard(JobKind.REEMBED)
        if time.monotonic() < self._purge_from:
            kinds.discard(JobKind.PURGE)
        return [kind for kind in JobKind if kind in kinds]

    async def do(self, jobs: Sequence[Job]) -> list[Left] | timedelta:
        """Do jobs of one scope and kind; those that could not be done, or a pause after which to look at all again."""
        scope, kind = jobs[0].scope, jobs[0].kind
        if kind is not JobKind.PURGE:
            return await self._handlers[kind](scope, jobs)
        if not await self._purge():
            return timedelta(seconds=1)
        await self._commits.commit(scope, ending(jobs))
        return []

    async def _purge(self) -> bool:
        began = time.monotonic()
        done = await self._store.purge()
        ended = time.monotonic()
        if done:
            self._purge_from = ended + PURGE_REST * (ended - began)
        return done

    async def _reembed(self, scope: Scope, jobs: Sequence[Job]) -> list[Left]:
        await self.reembedding.go_on()
        await self._commits.commit(scope, ending(jobs))
        return []

    async def _embed(self, scope: Scope, jobs: Sequence[Job]) -> list[Left]:
        ids = [job.note for job in jobs if job.note]
        read = await self._store.notes(scope, ids)
        made = await self._vectors.embed(list(read.values()))

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            now = await self._store.notes(scope, ids)
            reflected = await self._reflected(scope, now.values())
            ops: list[Op] = []
            for (note_id, note), put in zip(read.items(), made, strict=True):
                if note_id in now and vector_text(now[note_id]) == vector_text(note):
                    ops.append(put)
                    if note_id not in reflected:
                        ops.append(new_job(scope, JobKind.LINK, clock.now, now[note_id]))
            return ops + finish(job for job in jobs if job.note in now)

        await self._commits.commit(scope, plan)
        return []

    async def _reflected(self, scope: Scope, notes: Iterable[Note]) -> set[str]:
        """The ids of those that reflecting wrote: they lead to their sources, and get no near links."""
        derived = [note.id for note in notes if note.kind is not Kind.EPISODIC]
        if not derived:
            return set()
        from zettel.jobs.deriving import former  # with all that reads a scope: for whoever has such notes

        histories = await self._store.histories(scope, derived)
        return {id for id, history in histories.items() if former(history) is not None}
