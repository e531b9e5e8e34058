"""The embed job: vectors of notes that no write computed, because the embedder is remote or the notes were many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from zettel.core.commit import Clock, Commits
from zettel.core.follow_ups import UnfinishedJobs, finish, new_job
from zettel.core.vectors import Vectors
from zettel.jobs.derived_notes import derived_note
from zettel.jobs.spec import JobHandler, JobSpec
from zettel.model import Job, JobKind, Kind, Note, Scope
from zettel.ports import GraphStore, ScopeState
from zettel.ports.operations import Op
from zettel.text.index import vector_text

PART = 256
"""Notes embedded per commit: an interruption loses at most the work on one part."""


class EmbedJob(JobHandler):
    """Embeds the notes of a store, then queues their link jobs."""

    def __init__(self, store: GraphStore, commits: Commits, vectors: Vectors) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors

    async def do(self, scope: Scope, jobs: Sequence[Job]) -> list[UnfinishedJobs]:
        """Embed the notes of these jobs."""
        for start in range(0, len(jobs), PART):
            await self._embed(scope, jobs[start : start + PART])
        return []

    async def _embed(self, scope: Scope, jobs: Sequence[Job]) -> None:
        ids = [job.note for job in jobs if job.note]
        read = await self._store.notes(scope, ids)
        puts = await self._vectors.embed(list(read.values()))

        async def plan(state: ScopeState, clock: Clock) -> list[Op]:
            now = await self._store.notes(scope, ids)
            reflections = await self._reflections(scope, now.values())
            ops: list[Op] = []
            for (note_id, note), put in zip(read.items(), puts, strict=True):
                if note_id in now and vector_text(now[note_id]) == vector_text(note):
                    ops.append(put)
                    if note_id not in reflections:
                        ops.append(new_job(scope, JobKind.LINK, clock.now, now[note_id]))
            return ops + finish(job for job in jobs if job.note in now)

        await self._commits.commit(scope, plan)

    async def _reflections(self, scope: Scope, notes: Iterable[Note]) -> set[str]:
        """Return the ids of the notes that a reflect job wrote. They link to their sources and get no near links."""
        derived = [note.id for note in notes if note.kind is not Kind.EPISODIC]
        if not derived:
            return set()
        histories = await self._store.histories(scope, derived)
        return {id for id, history in histories.items() if derived_note(history) is not None}


JOB = JobSpec(JobKind.EMBED, lambda context: EmbedJob(context.store, context.commits, context.vectors))
