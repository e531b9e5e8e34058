"""Restores whole scopes from a memory file.

The file is checked first, so a damaged or truncated file changes nothing. Each scope stays invisible until it is
complete. An interrupted restore leaves nothing, and the next run starts again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.to_thread

from zettel.core.changes import RESTORED
from zettel.core.commit import Clock, Commits
from zettel.core.fold import fold
from zettel.core.follow_ups import new_job
from zettel.core.memory_file import FileIndex, ScopePart, read, read_index, texts_of
from zettel.core.privacy import SecretGuard
from zettel.core.vectors import Vectors
from zettel.errors import InvalidInput, StoreBusy
from zettel.model import JobKind, Note, Scope
from zettel.ports import GraphStore, NoteRecord, ScopeState
from zettel.ports.operations import (
    Batch,
    Conflict,
    EndRestore,
    Op,
    PutEvent,
    PutJob,
    PutRetention,
    PutVector,
    Restore,
    RestoreNote,
)
from zettel.text.index import VECTOR_RECIPE, index_note

if TYPE_CHECKING:
    from zettel.ports.store import ScopeRecord

BATCH = 500
"""Records per transaction."""

Progress = Callable[[int, int], None]
"""Called after each batch with the records read so far, and all records."""


class RestoreCounts(NamedTuple):
    """Events that were imported, and events of scopes that the same export had restored before."""

    events: int
    existing: int


class ScopeRestorer:
    """Restores scopes into one store."""

    def __init__(self, store: GraphStore, commits: Commits, vectors: Vectors, guard: SecretGuard) -> None:
        self._store = store
        self._commits = commits
        self._vectors = vectors
        self._guard = guard

    async def restore(self, path: Path, scope: Scope | None, on_progress: Progress | None = None) -> RestoreCounts:
        """Restore all scopes of a file under their own names, or its only scope as ``scope``.

        Skips a scope that the same export restored before, unless it changed since. Raises ``BadRecord`` naming the
        line, ``SecretRefused``, ``InvalidInput`` for a scope with other contents (then nothing was imported),
        ``EmbedderMismatch``, and ``StoreBusy`` if another writer changed the scope meanwhile.
        """
        index = await anyio.to_thread.run_sync(read_index, path)
        if scope is not None and len(index.parts) > 1:
            named = "; ".join(str(part.scope) for part in index.parts[:3])
            raise InvalidInput(f"{path} contains {len(index.parts)} scopes ({named} …): import it without naming one")
        targets = {part: scope or part.scope for part in index.parts}
        if self._guard.keeps_out:
            await anyio.to_thread.run_sync(_require_clean, path, targets.values(), self._guard)
        restored = {part for part, target in targets.items() if await self._is_restored(path, part, target)}
        sets = await self._vector_sets(index)
        done, total, events, existing = 0, sum(part.lines for part in index.parts), 0, 0
        for part, target in targets.items():
            if part in restored:
                existing += (await self._store.counts(target))["events"]
            else:

                def report(count: int, done: int = done) -> None:
                    if on_progress is not None:
                        on_progress(done + count, total)

                records = read(path, part, target, index.sets)
                events += await self._restore(records, part.state, target, sets, report)
            done += part.lines
        return RestoreCounts(events, existing)

    async def _is_restored(self, path: Path, part: ScopePart, target: Scope) -> bool:
        """Return whether the scope equals the file's. Raises ``InvalidInput`` if it has other contents."""
        state = await self._store.state(target)
        if state.seq == 0:
            return False
        same = state.secret == part.state.secret
        if same and state.seq == part.state.seq:
            return True
        why = "holds this memory as it was at another time" if same else "is not empty"
        raise InvalidInput(
            f"{path} cannot be imported, for {target} {why}: name an empty scope (--user), or delete this one first "
            "(delete_scope)"
        )

    async def _vector_sets(self, index: FileIndex) -> Mapping[int, int]:
        """Map the file's vector set of this memory's embedder, if any, to the store's."""
        info = self._vectors.embedder.info
        own = (info.fingerprint, VECTOR_RECIPE, info.dim)
        made = [space for space in index.sets if (space.fingerprint, space.recipe, space.dim) == own]
        if not self._vectors.embedder.remote:
            return {space.id: (await self._vectors.space()).id for space in made}
        await self._vectors.embed_now([])  # raises EmbedderMismatch
        ids: dict[int, int] = {}
        for space in made:
            active = next((stored for stored in await self._store.spaces() if stored.active), None)
            own_set = active or await self._store.add_space(space.name, space.dim, space.fingerprint, space.recipe)
            ids[space.id] = own_set.id
        return ids

    async def _restore(
        self,
        records: Iterator[ScopeRecord],
        state: ScopeState,
        target: Scope,
        sets: Mapping[int, int],
        report: Callable[[int], None],
    ) -> int:
        """Write the records of one scope, then make it visible. Returns its number of events."""
        restore = Restore(state.secret, secrets.token_hex(8))
        jobs: list[PutJob] = []
        to_embed: list[str] = []
        events = written = 0
        complete = False
        await self._store.abandon_restore(target)  # of a killed process
        try:
            while batch := await anyio.to_thread.run_sync(_take, records):
                jobs += [record for record in batch if isinstance(record, PutJob)]
                ops, without_vector = await anyio.to_thread.run_sync(_planned, batch, sets)
                ops += await self._vectors.embed_now(without_vector)
                to_embed += [note.id for note in without_vector] if self._vectors.defers(len(without_vector)) else []
                await self._store.apply(Batch(target, written, written + len(batch), tuple(ops), restore))
                written += len(batch)
                events += sum(isinstance(record, PutEvent) for record in batch)
                report(written)
            end = PutRetention(state.retention), EndRestore(state.recorded_at)
            async with self._commits.announced(target, RESTORED):
                await self._store.apply(Batch(target, written, state.seq, (*jobs, *end), restore))
            complete = True
        except Conflict:
            raise StoreBusy(f"{target} was written to, or imported, by somebody else meanwhile; try again") from None
        finally:
            if not complete:
                with anyio.CancelScope(shield=True):
                    await self._store.abandon_restore(target)
        queued = {put.job.note for put in jobs if put.job.kind is JobKind.EMBED}
        await self._embed_later(target, [id for id in to_embed if id not in queued])
        return events

    async def _embed_later(self, scope: Scope, ids: list[str]) -> None:
        for start in range(0, len(ids), BATCH):

            async def plan(state: ScopeState, clock: Clock, start: int = start) -> list[Op]:
                notes = await self._store.notes(scope, ids[start : start + BATCH])
                return [new_job(scope, JobKind.EMBED, clock.now, note) for note in notes.values()]

            await self._commits.commit(scope, plan)


def _require_clean(path: Path, scopes: Iterable[Scope], guard: SecretGuard) -> None:
    """Raise ``SecretRefused`` if a record has a secret: redacted records would not be the memory that was exported."""
    for scope in scopes:
        guard.require_clean_scope(scope)
    for number, record in texts_of(path):
        guard.require_clean(f"{path}:{number}", record, "import it with privacy='report', or its events as jsonl")


def _take(records: Iterator[ScopeRecord]) -> list[ScopeRecord]:
    return list(islice(records, BATCH))


def _planned(batch: list[ScopeRecord], sets: Mapping[int, int]) -> tuple[list[Op], list[Note]]:
    """Return the operations for all records but jobs, and the searchable notes without a vector in ``sets``."""
    ops: list[Op] = []
    without_vector: list[Note] = []
    for record in batch:
        if isinstance(record, NoteRecord):
            note, _ = fold(record.base, record.revisions)
            ops.append(RestoreNote(record.base, record.revisions, note, index_note(note)))
            vectors = [PutVector(note.id, sets[number], vector) for number, vector in record.vectors if number in sets]
            ops += vectors
            without_vector += [] if vectors or note.archived else [note]
        elif not isinstance(record, (PutJob, ScopeState)):
            ops.append(record)
    return ops, without_vector
