"""EmbeddedStore: the GraphStore in one SQLite file.

Each method chooses a connection and runs its work on a thread; the other modules of this package do the work.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, TypeAlias

import anyio
import anyio.to_thread

from zettel.graph.columnar.candidates import gather
from zettel.graph.embedded import (
    feedback,
    integrity,
    jobs,
    llm_answers,
    lookups,
    maintenance,
    reads,
    selections,
    transfer,
    vectors,
)
from zettel.graph.embedded.connections import BUSY_SECONDS, Connections
from zettel.graph.embedded.matching import passing_rows
from zettel.graph.embedded.optimizing import IndexMaintenance
from zettel.graph.embedded.prepared import prepare
from zettel.graph.embedded.scope_cache import UNEMBEDDED
from zettel.graph.embedded.scopes import RESTORING, advance, claim_scope, find_scope, scope_state
from zettel.graph.embedded.writes import BatchWriter
from zettel.graph.keys import Keys
from zettel.graph.scopes import ScopeRow
from zettel.model import TIME_MAX, TIME_MIN, Scope, TermUse, to_micros
from zettel.ports import LookupQuery, ScopeState, Written
from zettel.ports.operations import Conflict
from zettel.ports.query import Query, Tally

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from zettel.graph.columnar.columns import Columns
    from zettel.model import (
        EventRecord,
        Job,
        JobKind,
        JobState,
        Link,
        LoggedSearch,
        ModelUse,
        Note,
        NoteUse,
        Proved,
        Revision,
        Term,
        TermUse,
    )
    from zettel.ports import LookupResult, NearestNotes, NoteHistory, VectorSet
    from zettel.ports.operations import Batch, Restore
    from zettel.ports.query import Candidates, Filter, Floats, Ints, Selection
    from zettel.ports.store import ScopeRecord

    Dumped: TypeAlias = list[tuple[EventRecord, tuple[Note, ...]]]

MANY_WORDS, MANY_NOTES = 1_000, 20_000
"""From these sizes on, counting a batch's words in the file is slow. A second such batch caches the scope's counts."""


class EmbeddedStore(IndexMaintenance):
    """One file, or with ``:memory:`` a temporary folder until ``close``. Use it from one event loop.

    With a ``key`` the file is encrypted.
    """

    name = "embedded"

    def __init__(self, path: str | Path, *, busy_seconds: float = BUSY_SECONDS, key: str | None = None) -> None:
        super().__init__(path, busy_seconds, key)
        self._restoring: Keys | None = None
        self._slow_counts: set[str] = set()

    # writes ---------------------------------------------------------------------------------------------------

    async def apply(self, batch: Batch) -> None:
        """Write all of a batch, durably, or nothing.

        Raises ``Conflict``, ``StaleLease``, ``StoreBusy``, ``StoreFull``, ``StoreReadOnly``.
        """
        connections = self._open_connections()
        if batch.restore is not None:
            return await self._restore(connections, batch, batch.restore)

        def run() -> None:
            keys = self._secrets.planned(batch.scope)
            if keys is None:  # another process planned the batch, or the scope was dropped, and its secret with it
                with connections.read() as sql:
                    row = find_scope(sql, batch.scope)
                if row is None:
                    raise Conflict(f"{batch.scope} was dropped while the batch was planned")
                keys = self._secrets.of(batch.scope, row)
            operations = prepare(batch, keys)
            try:
                with connections.write() as sql:
                    row = claim_scope(sql, batch.scope, batch.expects, keys.secret)
                    writer = BatchWriter(sql, row.number, row.changed + 1, keys)
                    writer.write(operations)
                    advance(sql, row, batch.seq, writer.recorded_at)
            except Conflict:
                self._secrets.forget(batch.scope)
                raise
            self._secrets.made_durable(batch.scope)

        await anyio.to_thread.run_sync(run, limiter=self._writing)

    async def _restore(self, connections: Connections, batch: Batch, restore: Restore) -> None:
        if self._restoring is None or self._restoring.secret != restore.secret:
            self._restoring = Keys(restore.secret)
        keys = self._restoring
        await anyio.to_thread.run_sync(lambda: transfer.restore(connections, batch, keys), limiter=self._writing)

    async def abandon_restore(self, scope: Scope) -> None:
        """Destroy the data of restores of this scope that did not complete."""
        await self._write(lambda sql: transfer.abandon(sql, scope))

    async def drop_scope(self, scope: Scope) -> int:
        """Destroy all of a scope, with tombstones and secret. Returns how many notes it had."""

        def run(sql: sqlite3.Connection) -> int:
            transfer.abandon(sql, scope)
            row = find_scope(sql, scope)
            return 0 if row is None else maintenance.drop_scope(sql, row.number)

        dropped = await self._write(run)
        self._secrets.forget(scope)
        return dropped

    # reads ----------------------------------------------------------------------------------------------------

    async def state(self, scope: Scope) -> ScopeState:
        """Return the scope's state. A new scope has seq 0 and a secret that its first batch stores."""

        def run(sql: sqlite3.Connection) -> ScopeState:
            row = find_scope(sql, scope)
            keys = self._secrets.of(scope, row)
            if row is None:
                return ScopeState(0, keys.secret, TIME_MIN, TIME_MIN, TIME_MAX)
            return scope_state(sql, row)

        return await self._read(run)

    async def lookup(self, scope: Scope, query: LookupQuery) -> LookupResult:
        """Return the data that a write is planned on."""
        space = self._scopes.space_of(scope.key) if query.tokens else None
        many = len(query.tokens) >= MANY_WORDS
        if space is None and many and scope.key in self._slow_counts:
            space = UNEMBEDDED
        if space is not None:
            return await self._in_write_index(
                scope, space, lambda sql, cached, keys: lookups.look_up(sql, cached.scope, keys, query, cached)
            )
        result = await self._read_scope(
            scope, lambda sql, row, keys: lookups.look_up(sql, row.number, keys, query), lookups.empty_result(query)
        )
        if many and result.notes >= MANY_NOTES:
            self._slow_counts.add(scope.key)
        return result

    async def notes(self, scope: Scope, ids: Sequence[str]) -> dict[str, Note]:
        """Return the notes that exist, by id."""
        return await self._read_scope(scope, lambda sql, row, _: reads.notes(sql, row.number, ids), {})

    async def events(self, scope: Scope, ids: Sequence[str]) -> dict[str, EventRecord]:
        """Return the events that exist, by id."""
        return await self._read_scope(scope, lambda sql, row, _: reads.events(sql, row.number, ids), {})

    async def events_like(self, scope: Scope, ids: Sequence[str]) -> tuple[str, ...]:
        """Return the ids of all events that share an identity with one of these, including these."""
        return await self._read_scope(scope, lambda sql, row, _: reads.events_like(sql, row.number, ids), ())

    async def events_from(self, scope: Scope, source: str | None, session: str | None, limit: int) -> tuple[str, ...]:
        """Return the ids of the first ``limit`` events of that file or session, whichever is not None."""
        return await self._read_scope(
            scope, lambda sql, row, _: reads.events_from(sql, row.number, source, session, limit), ()
        )

    async def written_by(self, scope: Scope, principal: str) -> Written:
        """Return the events and the changes of a principal."""
        return await self._read_scope(
            scope, lambda sql, row, _: reads.written_by(sql, row.number, principal), Written((), ())
        )

    async def notes_of(self, scope: Scope, events: Sequence[str]) -> tuple[str, ...]:
        """Return the ids of all notes with one of these events in any version."""
        return await self._read_scope(scope, lambda sql, row, _: reads.notes_of(sql, row.number, events), ())

    async def page(self, scope: Scope, filter: Filter, after: int, limit: int) -> list[Note]:
        """Return unarchived notes of higher ``seq`` than ``after``, in order."""
        return await self._read_scope(
            scope, lambda sql, row, keys: reads.page(sql, row.number, keys, filter, after, limit), []
        )

    async def expired(
        self, scope: Scope, until: int, after: tuple[int, int], limit: int, archived: bool = False
    ) -> list[Note]:
        """Return the unarchived (or the archived) notes that expire up to ``until``, after a position."""
        return await self._read_scope(
            scope, lambda sql, row, _: reads.expired(sql, row.number, until, after, limit, archived), []
        )

    async def tally(self, scope: Scope, selection: Selection, by: Sequence[str]) -> list[Tally]:
        """Count the selected notes or events by the values of these fields."""
        return await self._read_scope(
            scope,
            lambda sql, row, keys: selections.tally(sql, row.number, keys, selection, by),
            [] if by else [Tally((), 0, None, None)],
        )

    async def select(self, scope: Scope, selection: Selection, order: str, limit: int) -> list[str]:
        """Return the ids of the first selected notes or events."""
        return await self._read_scope(
            scope, lambda sql, row, keys: selections.select(sql, row.number, keys, selection, order, limit), []
        )

    async def archived(self, scope: Scope, before: int, limit: int) -> list[Note]:
        """Return archived notes of lower ``seq`` than ``before``, newest first."""
        return await self._read_scope(scope, lambda sql, row, _: reads.archived(sql, row.number, before, limit), [])

    async def histories(self, scope: Scope, ids: Sequence[str]) -> dict[str, NoteHistory]:
        """Return base and revisions of the notes that exist, by id."""
        return await self._read_scope(scope, lambda sql, row, _: reads.histories(sql, row.number, ids), {})

    async def recent(self, scope: Scope, ids: Sequence[str]) -> dict[str, NoteHistory]:
        """See ``GraphStore``."""
        return await self._read_scope(scope, lambda sql, row, _: reads.recent(sql, row.number, ids), {})

    async def citing(self, scope: Scope, notes: Sequence[str]) -> tuple[Revision, ...]:
        """Return all revisions with one of these notes as input, cause or end of a link."""
        return await self._read_scope(scope, lambda sql, row, _: reads.citing(sql, row.number, notes), ())

    async def links(self, scope: Scope, notes: Sequence[str]) -> list[Link]:
        """Return links that start or end at one of these notes, by (source, type, target)."""
        return await self._read_scope(scope, lambda sql, row, _: reads.links(sql, row.number, notes), [])

    async def terms(self, scope: Scope, note: str) -> list[Term]:
        """Return a note's terms by key."""
        return await self._read_scope(scope, lambda sql, row, keys: reads.terms(sql, row.number, keys, note), [])

    async def uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, tuple[TermUse, ...]]:
        """Return the term uses in each note's index."""
        return await self._read_scope(scope, lambda sql, row, _: reads.uses(sql, row.number, notes), {})

    async def scopes(self) -> list[Scope]:
        """Return all scopes, oldest first."""

        def run(sql: sqlite3.Connection) -> list[Scope]:
            rows = sql.execute(f"SELECT name FROM scopes WHERE key NOT GLOB '{RESTORING}*' ORDER BY number")
            return [Scope.model_validate_json(name) for (name,) in rows]

        return await self._read(run)

    async def dump(self, scope: Scope) -> AsyncIterator[tuple[EventRecord, tuple[Note, ...]]]:
        """Yield every event with its notes, in ``seq`` order. Each page is of one state."""
        after = -1
        while True:

            def run(sql: sqlite3.Connection, row: ScopeRow, _: Keys, after: int = after) -> Dumped:
                return list(reads.dump_page(sql, row.number, after))

            nothing: Dumped = []
            page = await self._read_scope(scope, run, nothing)
            for pair in page:
                yield pair
            if not page:
                return
            after = page[-1][0].seq

    async def whole(self, scope: Scope) -> AsyncIterator[list[ScopeRecord]]:
        """Yield all of a scope in pages of one state, in the order of a restore.

        One such stream runs at a time, so other readers stay free.
        """
        connections = self._open_connections()
        async with self._moving:
            pages = transfer.pages(connections, scope)
            try:
                while (page := await anyio.to_thread.run_sync(next, pages, None)) is not None:
                    yield page
            finally:
                pages.close()

    # answers --------------------------------------------------------------------------------------------------

    async def candidates(self, query: Query) -> Candidates:
        """Return the candidates of a query. Raises ``EmbedderMismatch`` if its vector set was deleted."""

        def run(sql: sqlite3.Connection, columns: Columns, keys: Keys) -> Candidates:
            used, archived = feedback.any_used(sql, columns.scope), reads.any_archived(sql, columns.scope)
            matching = passing_rows(sql, columns, keys, query.filter, query.known_at)
            names_of = self._term_names(query.scope)
            return gather(columns, query, keys, names_of, used=used, archived=archived, matching=matching)

        dim = None if query.vector is None else len(query.vector)
        return await self._in_columns(query.scope, query.space, query.known_at, run, dim=dim)

    def _term_names(self, scope: Scope) -> Callable[[Ints], Sequence[str]]:
        connections = self._open_connections()

        def names_of(keys: Ints) -> Sequence[str]:
            with connections.read() as sql:
                row = find_scope(sql, scope)
                return [""] * len(keys) if row is None else reads.term_names(sql, row.number, keys.tolist())

        return names_of

    async def vectors(self, scope: Scope, notes: Sequence[str], space: int) -> dict[str, Floats]:
        """Return the vectors of this set, by note; notes without one are missing."""
        return await self._read_scope(scope, lambda sql, row, _: vectors.of_notes(sql, row.number, notes, space), {})

    async def near(self, scope: Scope, notes: Sequence[str], space: int, k: int) -> list[NearestNotes]:
        """Return the k nearest older notes (lower seq) of each note with a vector; exact up to ``LARGE`` vectors."""
        return await self._in_write_index(
            scope, space, lambda sql, cached, _: vectors.nearest_older(sql, cached, notes, k)
        )

    # vector sets ----------------------------------------------------------------------------------------------

    async def spaces(self) -> list[VectorSet]:
        """Return all vector sets, oldest first."""
        return await self._read(vectors.spaces)

    async def add_space(self, name: str, dim: int, fingerprint: str, recipe: str) -> VectorSet:
        """Add a vector set, or return the existing set with the same values. The first set is active."""
        return await self._write(lambda sql: vectors.add_space(sql, name, dim, fingerprint, recipe))

    async def without_vector(self, space: int, limit: int) -> list[tuple[Scope, Note]]:
        """Return unarchived notes without a vector in this set, oldest first."""
        return await self._read(lambda sql: vectors.without_vector(sql, space, limit))

    async def activate(self, space: int) -> bool:
        """Switch to this set and destroy all others in one transaction. Returns False while a note lacks a vector."""
        switched = await self._write(lambda sql: vectors.activate(sql, space))
        self._scopes.clear()
        return switched

    # jobs -----------------------------------------------------------------------------------------------------

    async def claim(
        self, kinds: Sequence[JobKind], limit: int, lease: float, scope: Scope | None, busy: Sequence[Scope] = ()
    ) -> list[Job]:
        """Lease up to ``limit`` due jobs of one scope and kind for ``lease`` seconds, each with a new token."""

        def run(sql: sqlite3.Connection) -> list[Job]:
            number, busy_numbers = _number(sql, scope), [_number(sql, other) for other in busy]
            return [] if number == NO_SCOPE else jobs.claim(sql, kinds, limit, lease, number, busy_numbers, _now())

        # Reading first avoids a write, which waits for other writers and the disk even if the queue is empty.
        if not await self._read(lambda sql: jobs.any_due(sql, kinds, _number(sql, scope), _now())):
            return []
        return await self._write(run)

    async def renew(self, leased: Sequence[Job], lease: float) -> None:
        """Extend the lease of jobs to ``lease`` seconds from now."""
        await self._write(lambda sql: jobs.renew(sql, leased, lease, _now()))

    async def fail(
        self, failed: Sequence[Job], error: str, retry_at: datetime | None, counts: bool = True
    ) -> None:
        """Store the error. Queue the jobs again at ``retry_at``; None leaves them failed."""
        await self._write(lambda sql: jobs.fail(sql, failed, error, retry_at, counts))

    async def jobs(self, scope: Scope | None, state: JobState | None = None) -> list[Job]:
        """Return jobs in the order of the queue."""
        return await self._read(lambda sql: jobs.listed(sql, _number(sql, scope), state))

    async def pending(
        self, scope: Scope | None, kinds: Sequence[JobKind] | None = None, due_by: datetime | None = None
    ) -> int:
        """Count jobs (of these kinds) that are running, or queued (to run by ``due_by``)."""
        return await self._read(lambda sql: jobs.pending(sql, _number(sql, scope), kinds, due_by))

    async def retry(self, scope: Scope | None, job: str | None = None) -> int:
        """Queue failed jobs, or one of them, again. Returns how many."""
        return await self._write(lambda sql: jobs.retry(sql, _number(sql, scope), job, _now()))

    async def cancel(self, scope: Scope, job: str) -> bool:
        """Remove a job from the queue unless a worker has leased it."""
        return await self._write(lambda sql: jobs.cancel(sql, _number(sql, scope), job, _now()))

    # LLM answers and costs --------------------------------------------------------------------------------------

    async def answer(self, scope: Scope, key: str) -> str | None:
        """Return the cached answer with this key."""
        return await self._read_scope(scope, lambda sql, row, _: llm_answers.text_of(sql, row.number, key), None)

    async def model_use(self, scope: Scope | None, since: date | None = None) -> list[ModelUse]:
        """Return the costs of models (from a day on), by day and model."""
        return await self._read(lambda sql: llm_answers.use_since(sql, _number(sql, scope), since))

    # search log and usefulness --------------------------------------------------------------------------------

    async def log_searches(self, searches: Mapping[Scope, Sequence[LoggedSearch]]) -> None:
        """Log the searches whose hits all exist, in one transaction."""

        def run(sql: sqlite3.Connection) -> None:
            for scope, logged in searches.items():
                row = find_scope(sql, scope)
                if row is not None:
                    feedback.log(sql, row.number, logged)

        await self._write(run)

    async def search_logged(self, scope: Scope, id: str) -> LoggedSearch | None:
        """Return the logged search with this id."""
        return await self._read_scope(scope, lambda sql, row, _: feedback.search(sql, row.number, id), None)

    async def searches(self, scope: Scope) -> AsyncIterator[LoggedSearch]:
        """Yield the search log by (asked_at, id). Each page is of one state."""
        after = (TIME_MIN, "")
        while True:

            def run(
                sql: sqlite3.Connection, row: ScopeRow, _: Keys, after: tuple[int, str] = after
            ) -> list[LoggedSearch]:
                return feedback.page(sql, row.number, after)

            nothing: list[LoggedSearch] = []
            page = await self._read_scope(scope, run, nothing)
            for search in page:
                yield search
            if len(page) < feedback.PAGE:
                return
            after = (to_micros(page[-1].asked_at), page[-1].id)

    async def questions_logged(self, scope: Scope) -> dict[str, str]:
        """Return the question of each logged search, by id."""
        return await self._read_scope(scope, lambda sql, row, _: feedback.questions(sql, row.number), {})

    async def note_uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, NoteUse]:
        """Return the feedback on each existing note."""
        return await self._read_scope(scope, lambda sql, row, _: feedback.uses(sql, row.number, notes), {})

    async def proved(self, scope: Scope, notes: Sequence[str]) -> dict[str, Proved]:
        """Return the usefulness of notes by the search log."""
        return await self._read_scope(scope, lambda sql, row, _: feedback.proved(sql, row.number, notes), {})

    # maintenance ----------------------------------------------------------------------------------------------

    async def purge_due(self) -> bool:
        """Return if a scope was dropped since the last ``purge``."""
        return await self._read(maintenance.purge_due)

    async def purge(self) -> bool:
        """Remove deleted data from the store's files. Returns False while another reader uses the old pages."""
        connections = self._open_connections()

        def run() -> bool:
            with connections.write() as sql:
                maintenance.forget_removals(sql)
            return maintenance.purge(connections)

        return await anyio.to_thread.run_sync(run, limiter=self._writing)

    async def counts(self, scope: Scope | None) -> dict[str, int]:
        """Return counts of one scope or of all."""
        return await self._read(lambda sql: maintenance.counts(sql, _number(sql, scope)))

    async def check(self, repair: bool) -> list[str]:
        """Return the inconsistencies between notes, words, facets, vectors and links, one line each.

        ``repair`` derives the inconsistent rows again in one transaction; the lines then report the repairs.
        """

        def run(sql: sqlite3.Connection) -> list[str]:
            return integrity.check(sql, repair, _now())

        if not repair:
            return await self._read(run)
        lines = await self._write(run)
        self._scopes.clear()
        return lines


NO_SCOPE = 0
"""Number of a scope never written to; rows have numbers from 1."""


def _number(sql: sqlite3.Connection, scope: Scope | None) -> int | None:
    """Return a scope's number, None for all scopes."""
    if scope is None:
        return None
    row = find_scope(sql, scope)
    return NO_SCOPE if row is None else row.number


def _now() -> int:
    return time.time_ns() // 1000
