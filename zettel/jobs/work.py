"""What each kind of job does. A handler takes jobs of one scope and kind, and writes their effect and their end in one
commit."""

from __future__ import annotations

import time
from collections.abc import Container, Sequence
from datetime import timedelta

from zettel.annotate.index import vector_text
from zettel.batch import FinishJob, Op
from zettel.commit import Clock, Commits
from zettel.embed.vectors import Vectors
from zettel.fold import live_versions
from zettel.jobs.queue import new_job
from zettel.jobs.reembed import Reembedding
from zettel.link.near import NEIGHBOURS_ASKED, binding, close, near_links
from zettel.model import Cause, Input, Job, JobKind, Scope
from zettel.ports import GraphStore, ScopeState
from zettel.revise import revised

_LINKER = JobKind.LINK.value
PURGE_REST = 4.0
"""How many times as long as it took a purge is not run again: it rewrites the whole store, and deletes come in rows."""


class Work:
    """The handlers of this version's jobs."""

    def __init__(self, store: GraphStore, commits: Commits, vectors: Vectors) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self.reembedding = Reembedding(store, commits, vectors)
        self._purge_from = 0.0

    async def kinds(self) -> list[JobKind]:
        """The jobs that can be done here and now.

        To reembed takes the very embedder that the store is to change over to; a purge rests after the one before.
        """
        kinds = set(JobKind)
        if not await self.reembedding.is_wanted():
            kinds.discard(JobKind.REEMBED)
        if time.monotonic() < self._purge_from:
            kinds.discard(JobKind.PURGE)
        return [kind for kind in JobKind if kind in kinds]

    async def do(self, jobs: Sequence[Job]) -> timedelta | None:
        """Do jobs of one scope and kind. A pause is returned when they must be looked at again after it."""
        scope, kind = jobs[0].scope, jobs[0].kind
        if kind is JobKind.LINK:
            await self._link(scope, jobs)
        elif kind is JobKind.EMBED:
            await self._embed(scope, jobs)
        elif kind is JobKind.REEMBED:
            await self.reembedding.go_on()
            await self._finish(scope, jobs)
        elif not await self._purge():
            return timedelta(seconds=1)
        else:
            await self._finish(scope, jobs)
        return None

    async def _purge(self) -> bool:
        began = time.monotonic()
        done = await self._store.purge()
        ended = time.monotonic()
        if done:
            self._purge_from = ended + PURGE_REST * (ended - began)
        return done

    async def _link(self, scope: Scope, jobs: Sequence[Job]) -> None:
        space = await self._vectors.space()

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            # Planned on the state it is committed on, so that every version it read is still the newest.
            ids = [job.note for job in jobs if job.note]
            nears = [close(near) for near in await self._store.near(scope, ids, space.id, NEIGHBOURS_ASKED)]
            around = {near.note for near in nears}.union(*(dict(near.others) for near in nears))
            read = await self._store.notes(scope, sorted(around.union(ids)))
            bindings = {id: binding(terms) for id, terms in (await self._store.uses(scope, sorted(around))).items()}
            speakers = {id: (read[id].role or "").casefold() for id in around}
            decided = {near.note: near_links(near, bindings, speakers, clock.recorded_at) for near in nears}
            changing = [id for id, links in decided.items() if links or read[id].version > 1]
            histories = await self._store.histories(scope, changing)
            ops: list[Op] = []
            for id in changing:
                history, links = histories[id], decided[id]
                live = live_versions(history.revisions)
                former = [r.version for r in history.revisions if r.version in live and r.cause.by == _LINKER]
                if not links and not former:
                    continue
                inputs = [Input(note, read[note].version) for note in (id, *(link.target for link in links))]
                cause = Cause(by=_LINKER, note=id)
                ops.append(revised(history, clock, cause, {}, links=links, undoes=tuple(former), inputs=tuple(inputs)))
            return ops + _finishes(jobs, read)

        await self._commits.commit(scope, plan)
        await self._store.optimize(scope, space.id)

    async def _embed(self, scope: Scope, jobs: Sequence[Job]) -> None:
        ids = [job.note for job in jobs if job.note]
        read = await self._store.notes(scope, ids)
        made = await self._vectors.embed(list(read.values()))

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            now = await self._store.notes(scope, ids)
            ops: list[Op] = []
            for (note_id, note), put in zip(read.items(), made, strict=True):
                if note_id in now and vector_text(now[note_id]) == vector_text(note):
                    ops += [put, new_job(scope, JobKind.LINK, clock.recorded_at, now[note_id])]
            return ops + _finishes(jobs, now)

        await self._commits.commit(scope, plan)

    async def _finish(self, scope: Scope, jobs: Sequence[Job]) -> None:
        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            return [FinishJob(job.id, job.token or "") for job in jobs]

        await self._commits.commit(scope, plan)


def _finishes(jobs: Sequence[Job], there: Container[str]) -> list[Op]:
    """The ends of jobs whose notes are still there: those of a deleted note went with it, and hold nobody up."""
    return [FinishJob(job.id, job.token or "") for job in jobs if job.note in there]
