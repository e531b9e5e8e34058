"""Restore: whole memories from a file that another store wrote, as they were there.

The file is read through first, so that a damaged or cut one changes nothing. Then each scope is written out of sight
and appears at once when it is whole; whatever stops that leaves nothing of it, and the next run begins it again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.to_thread

from zettel.annotate.index import VECTOR_RECIPE, index_note
from zettel.batch import Batch, Conflict, EndRestore, Op, PutEvent, PutJob, PutVector, Restore, RestoreNote
from zettel.commit import Clock, Commits
from zettel.embed.vectors import Vectors
from zettel.errors import InvalidInput, StoreBusy
from zettel.fold import fold
from zettel.jobs.queue import new_job
from zettel.model import JobKind, Note, Scope
from zettel.ports import GraphStore, KeptNote, ScopeState, Space
from zettel.transcripts.whole import Outline, Part, outline, read

if TYPE_CHECKING:
    from zettel.ports import Kept

BATCH = 500
"""Records in one transaction."""

Progress = Callable[[int, int], None]
"""Told after each batch how many records were read, and how many there are."""


class Restored(NamedTuple):
    """How many events came, and how many were in scopes that had come from this very export before."""

    events: int
    existing: int


class Restoring:
    """Brings whole scopes into one store."""

    def __init__(self, store: GraphStore, commits: Commits, vectors: Vectors) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors

    async def restore(self, path: Path, scope: Scope | None, on_progress: Progress | None = None) -> Restored:
        """Bring in all scopes of a file under their own names, or its only one as ``scope``.

        A scope that came from this very export before, and was not written to since, is left as it is. Raises
        ``BadRecord`` naming the line, ``InvalidInput`` for a scope that holds something else (then nothing was
        imported), ``EmbedderMismatch``, and ``StoreBusy`` if somebody else wrote to the scope meanwhile.
        """
        held = await anyio.to_thread.run_sync(outline, path)
        if scope is not None and len(held.parts) > 1:
            named = "; ".join(str(part.scope) for part in held.parts[:3])
            raise InvalidInput(f"{path} holds {len(held.parts)} scopes ({named} …): import it without naming one")
        into = {part: scope or part.scope for part in held.parts}
        there = {part for part in held.parts if await self._is_there(path, part, into[part])}
        sets = await self._sets(held)
        done, total, came, existing = 0, sum(part.lines for part in held.parts), 0, 0
        for part in held.parts:
            if part in there:
                existing += (await self._store.counts(into[part]))["events"]
            else:

                def told(read: int, done: int = done) -> None:
                    if on_progress is not None:
                        on_progress(done + read, total)

                came += await self._move(path, held, part, into[part], sets, told)
            done += part.lines
        return Restored(came, existing)

    async def _is_there(self, path: Path, part: Part, into: Scope) -> bool:
        """Whether the scope is what the file says. Raises ``InvalidInput`` if it is something else."""
        state = await self._store.state(into)
        if state.seq == 0:
            return False
        same = state.secret == part.state.secret
        if same and state.seq == part.state.seq:
            return True
        why = "holds this memory as it was at another time" if same else "is not empty"
        raise InvalidInput(
            f"{path} cannot be imported, for {into} {why}: name an empty scope (--user), or delete this one first "
            "(delete_scope)"
        )

    async def _sets(self, held: Outline) -> Mapping[int, int]:
        """For the vector set of the file that this memory's embedder made, if there is one, that of the store."""
        info = self._vectors.embedder.info
        own = (info.fingerprint, VECTOR_RECIPE, info.dim)
        made = [space for space in held.sets if (space.fingerprint, space.recipe, space.dim) == own]
        if not self._vectors.embedder.remote:
            return {one.id: (await self._vectors.space()).id for one in made}
        await self._vectors.embed_now([])  # nothing, but it tells of another embedder
        return {one.id: (await self._active() or await self._add(one)).id for one in made}

    async def _active(self) -> Space | None:
        return next((space for space in await self._store.spaces() if space.active), None)

    async def _add(self, space: Space) -> Space:
        return await self._store.add_space(space.name, space.dim, space.fingerprint, space.recipe)

    async def _move(
        self, path: Path, held: Outline, part: Part, into: Scope, sets: Mapping[int, int], told: Callable[[int], None]
    ) -> int:
        """Write one scope out of sight and let it appear; how many events it has."""
        restore = Restore(part.state.secret, secrets.token_hex(8))
        records = read(path, part, into, held.sets)
        jobs: list[PutJob] = []
        bare: list[str] = []
        events = written = 0
        whole = False
        await self._store.abandon_restore(into)  # what a run that was killed has left
        try:
            while taken := await anyio.to_thread.run_sync(_take, records):
                jobs += [one for one in taken if isinstance(one, PutJob)]
                ops, without = await anyio.to_thread.run_sync(_planned, taken, sets)
                ops += await self._vectors.embed_now(without)
                bare += [note.id for note in without] if self._vectors.later else []
                await self._store.apply(Batch(into, written, written + len(taken), tuple(ops), restore))
                written += len(taken)
                events += sum(isinstance(one, PutEvent) for one in taken)
                told(written)
            end = EndRestore(part.state.recorded_at)
            await self._store.apply(Batch(into, written, part.state.seq, (*jobs, end), restore))
            whole = True
        except Conflict:
            raise StoreBusy(f"{into} was written to, or imported, by somebody else meanwhile; try again") from None
        finally:
            if not whole:
                with anyio.CancelScope(shield=True):
                    await self._store.abandon_restore(into)
        waiting = {one.job.note for one in jobs if one.job.kind is JobKind.EMBED}
        await self._embed_later(into, [id for id in bare if id not in waiting])
        return events

    async def _embed_later(self, scope: Scope, ids: list[str]) -> None:
        for start in range(0, len(ids), BATCH):
            some = ids[start : start + BATCH]

            async def plan(state: ScopeState, clock: Clock, some: list[str] = some) -> list[Op]:
                notes = await self._store.notes(scope, some)
                return [new_job(scope, JobKind.EMBED, clock.now, note) for note in notes.values()]

            await self._commits.commit(scope, plan)


def _take(records: Iterator[Kept]) -> list[Kept]:
    return list(islice(records, BATCH))


def _planned(taken: list[Kept], sets: Mapping[int, int]) -> tuple[list[Op], list[Note]]:
    """Operations for records that are no jobs, and the notes among them that searches can find and that have no
    vector: another embedder made these, or the store was being changed over to this one."""
    ops: list[Op] = []
    bare: list[Note] = []
    for one in taken:
        if isinstance(one, KeptNote):
            note, _ = fold(one.base, one.revisions)
            ops.append(RestoreNote(one.base, one.revisions, note, index_note(note)))
            vectors = [PutVector(note.id, sets[number], vector) for number, vector in one.vectors if number in sets]
            ops += vectors
            bare += [] if vectors or note.archived else [note]
        elif not isinstance(one, (PutJob, ScopeState)):
            ops.append(one)
    return ops, bare
