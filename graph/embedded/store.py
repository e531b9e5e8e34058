"""EmbeddedStore: the GraphStore that keeps everything in one SQLite file.

Every method hands its work to a thread and says only which connection it needs; what is done there is in the files
beside this one.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, TypeAlias

import anyio
import anyio.to_thread

from zettel.batch import Conflict
from zettel.graph.columnar.candidates import gather
from zettel.graph.embedded import (
    answers,
    checking,
    feedback,
    jobs,
    keeping,
    lookups,
    moving,
    reads,
    vectors,
    writes,
)
from zettel.graph.embedded.connections import BUSY_SECONDS, Connections
from zettel.graph.embedded.held import UNEMBEDDED
from zettel.graph.embedded.optimizing import Optimizing
from zettel.graph.embedded.prepared import prepare
from zettel.graph.embedded.scopes import RESTORING, claim_scope, find_scope, moved_on
from zettel.graph.keys import Keys
from zettel.graph.scopes import ScopeRow
from zettel.model import TIME_MIN, Scope, to_micros
from zettel.ports import Lookup, ScopeState, TermUse
from zettel.query import Query

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from zettel.batch import Batch, Restore
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
    )
    from zettel.ports import Found, Kept, Near, NoteHistory, Space, TermUse
    from zettel.query import Candidates, Filter, Floats, Ints

    Dumped: TypeAlias = list[tuple[EventRecord, tuple[Note, ...]]]

MANY_WORDS, MANY_NOTES = 1_000, 20_000
"""To count so many words in the file, of a scope with so many notes, takes long. Whoever asks for it again is a batch
among many: the notes are read once, and their words kept account of for the writes to come."""


class EmbeddedStore(Optimizing):
    """One file, or with ``:memory:`` a folder that goes when the store is closed. Used from one event loop."""

    name = "embedded"

    def __init__(self, path: str | Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        super().__init__(path, busy_seconds)
        self._restoring: Keys | None = None
        self._counted_long: set[str] = set()

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
            if keys is None:  # planned elsewhere, or the scope was dropped meanwhile, and its secret with it
                with connections.read() as sql:
                    row = find_scope(sql, batch.scope)
                if row is None:
                    raise Conflict(f"{batch.scope} was dropped while the batch was planned")
                keys = self._secrets.of(batch.scope, row)
            ready = prepare(batch, keys)
            try:
                with connections.write() as sql:
                    row = claim_scope(sql, batch.scope, batch.expects, keys.secret)
                    applying = writes.Applying(sql, row.number, row.changed + 1, keys)
                    applying.apply(ready)
                    moved_on(sql, row, batch.seq, applying.recorded_at)
            except Conflict:
                self._secrets.forget(batch.scope)
                raise
            self._secrets.made_durable(batch.scope)

        await anyio.to_thread.run_sync(run, limiter=self._writing)

    async def _restore(self, connections: Connections, batch: Batch, restore: Restore) -> None:
        if self._restoring is None or self._restoring.secret != restore.secret:
            self._restoring = Keys(restore.secret)
        keys = self._restoring
        await anyio.to_thread.run_sync(lambda: moving.restore(connections, batch, keys), limiter=self._writing)

    async def abandon_restore(self, scope: Scope) -> None:
        """Destroy what restores of this scope have begun and not ended."""
        await self._write(lambda sql: moving.abandon(sql, scope))

    async def drop_scope(self, scope: Scope) -> int:
        """Destroy all of a scope, tombstones and secret too; how many notes it had."""

        def run(sql: sqlite3.Connection) -> int:
            moving.abandon(sql, scope)
            row = find_scope(sql, scope)
            return 0 if row is None else keeping.drop_scope(sql, row.number)

        dropped = await self._write(run)
        self._secrets.forget(scope)
        return dropped

    # reads ----------------------------------------------------------------------------------------------------

    async def state(self, scope: Scope) -> ScopeState:
        """Of a scope never written to: seq 0, and a fresh secret that the first batch makes durable."""

        def run(sql: sqlite3.Connection) -> ScopeState:
            row = find_scope(sql, scope)
            keys = self._secrets.of(scope, row)
            if row is None:
                return ScopeState(0, keys.secret, TIME_MIN, TIME_MIN)
            (latest,) = sql.execute("SELECT MAX(occurred_at) FROM events WHERE scope = ?", (row.number,)).fetchone()
            return ScopeState(row.seq, row.secret, row.recorded_at, TIME_MIN if latest is None else latest)

        return await self._read(run)

    async def lookup(self, scope: Scope, ask: Lookup) -> Found:
        """What a write has to know before it can be planned."""
        space = self._scopes.space_of(scope.key) if ask.tokens else None
        many = len(ask.tokens) >= MANY_WORDS
        if space is None and many and scope.key in self._counted_long:
            space = UNEMBEDDED
        if space is not None:
            return await self._in_outline(
                scope, space, lambda sql, held, keys: lookups.look_up(sql, held.scope, keys, ask, held)
            )
        found = await self._read_scope(
            scope, lambda sql, row, keys: lookups.look_up(sql, row.number, keys, ask), lookups.nothing(ask)
        )
        if many and found.notes >= MANY_NOTES:
            self._counted_long.add(scope.key)
        return found

    async def notes(self, scope: Scope, ids: Sequence[str]) -> dict[str, Note]:
        """Those of the notes that the scope holds."""
        return await self._read_scope(scope, lambda sql, row, _: reads.notes(sql, row.number, ids), {})

    async def events(self, scope: Scope, ids: Sequence[str]) -> dict[str, EventRecord]:
        """Those of the events that the scope holds."""
        return await self._read_scope(scope, lambda sql, row, _: reads.events(sql, row.number, ids), {})

    async def events_like(self, scope: Scope, ids: Sequence[str]) -> tuple[str, ...]:
        """The ids of all events that share an identity with one of these, themselves included."""
        return await self._read_scope(scope, lambda sql, row, _: reads.events_like(sql, row.number, ids), ())

    async def events_from(self, scope: Scope, source: str | None, session: str | None, limit: int) -> tuple[str, ...]:
        """The ids of the first ``limit`` events read from that file or said in that session, whichever is not None."""
        return await self._read_scope(
            scope, lambda sql, row, _: reads.events_from(sql, row.number, source, session, limit), ()
        )

    async def notes_of(self, scope: Scope, events: Sequence[str]) -> tuple[str, ...]:
        """The ids of all notes that rest on one of these events in any version."""
        return await self._read_scope(scope, lambda sql, row, _: reads.notes_of(sql, row.number, events), ())

    async def page(self, scope: Scope, filter: Filter, after: int, limit: int) -> list[Note]:
        """Notes in ``seq`` order, those past ``after``; archived ones are left out."""
        return await self._read_scope(
            scope, lambda sql, row, keys: reads.page(sql, row.number, keys, filter, after, limit), []
        )

    async def archived(self, scope: Scope, before: int, limit: int) -> list[Note]:
        """Archived notes from the newest on, those of lower ``seq`` than ``before``."""
        return await self._read_scope(scope, lambda sql, row, _: reads.archived(sql, row.number, before, limit), [])

    async def histories(self, scope: Scope, ids: Sequence[str]) -> dict[str, NoteHistory]:
        """Base and revisions of those of the notes that the scope holds."""
        return await self._read_scope(scope, lambda sql, row, _: reads.histories(sql, row.number, ids), {})

    async def citing(self, scope: Scope, notes: Sequence[str]) -> tuple[Revision, ...]:
        """All revisions that one of these notes stood before, as input, cause or end of a link."""
        return await self._read_scope(scope, lambda sql, row, _: reads.citing(sql, row.number, notes), ())

    async def links(self, scope: Scope, notes: Sequence[str]) -> list[Link]:
        """Links that start or end at one of these, by (source, type, target)."""
        return await self._read_scope(scope, lambda sql, row, _: reads.links(sql, row.number, notes), [])

    async def terms(self, scope: Scope, note: str) -> list[Term]:
        """A note's Terms by key."""
        return await self._read_scope(scope, lambda sql, row, keys: reads.terms(sql, row.number, keys, note), [])

    async def uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, tuple[TermUse, ...]]:
        """What each note's index says of its Terms."""
        return await self._read_scope(scope, lambda sql, row, _: reads.uses(sql, row.number, notes), {})

    async def scopes(self) -> list[Scope]:
        """All scopes, oldest first."""

        def run(sql: sqlite3.Connection) -> list[Scope]:
            rows = sql.execute(f"SELECT name FROM scopes WHERE key NOT GLOB '{RESTORING}*' ORDER BY number")
            return [Scope.model_validate_json(name) for (name,) in rows]

        return await self._read(run)

    async def dump(self, scope: Scope) -> AsyncIterator[tuple[EventRecord, tuple[Note, ...]]]:
        """Every event with the notes that rest on it, in ``seq`` order; page by page, each of one state."""
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

    async def whole(self, scope: Scope) -> AsyncIterator[list[Kept]]:
        """All of a scope in pages, in the order in which it can be restored; all of one state.

        One such stream at a time, so that readers are left for everybody else.
        """
        connections = self._open_connections()
        async with self._moving:
            pages = moving.pages(connections, scope)
            try:
                while (page := await anyio.to_thread.run_sync(next, pages, None)) is not None:
                    yield page
            finally:
                pages.close()

    # answers --------------------------------------------------------------------------------------------------

    async def candidates(self, query: Query) -> Candidates:
        """What the store knows about a question. Raises ``EmbedderMismatch`` if the question's vector set is gone."""

        def run(sql: sqlite3.Connection, held: Columns, keys: Keys) -> Candidates:
            used, archived = feedback.any_used(sql, held.scope), reads.any_archived(sql, held.scope)
            return gather(held, query, keys, self._term_names(query.scope), used=used, archived=archived)

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
        """The vectors of those of the notes that have one in this set."""
        return await self._read_scope(scope, lambda sql, row, _: vectors.of_notes(sql, row.number, notes, space), {})

    async def near(self, scope: Scope, notes: Sequence[str], space: int, k: int) -> list[Near]:
        """The k nearest older notes (lower seq) of each that has a vector; exact up to ``nearest.LARGE`` notes."""
        return await self._in_outline(scope, space, lambda sql, held, _: vectors.nearest_older(sql, held, notes, k))

    # vector sets ----------------------------------------------------------------------------------------------

    async def spaces(self) -> list[Space]:
        """All vector sets, oldest first."""
        return await self._read(vectors.spaces)

    async def add_space(self, name: str, dim: int, fingerprint: str, recipe: str) -> Space:
        """A new vector set; the first one is active at once. An existing one of the same values is returned."""
        return await self._write(lambda sql: vectors.add_space(sql, name, dim, fingerprint, recipe))

    async def without_vector(self, space: int, limit: int) -> list[tuple[Scope, Note]]:
        """Notes that this set lacks, oldest first; archived ones are left out."""
        return await self._read(lambda sql: vectors.without_vector(sql, space, limit))

    async def activate(self, space: int) -> bool:
        """Switch searches to this set and destroy all others in one transaction; False while a note lacks a vector."""
        switched = await self._write(lambda sql: vectors.activate(sql, space))
        self._scopes.forget()
        return switched

    # jobs -----------------------------------------------------------------------------------------------------

    async def claim(
        self, kinds: Sequence[JobKind], limit: int, lease: float, scope: Scope | None, busy: Sequence[Scope] = ()
    ) -> list[Job]:
        """Take up to ``limit`` due jobs for ``lease`` seconds, each with a fresh token; all of one scope and kind."""

        def run(sql: sqlite3.Connection) -> list[Job]:
            mine, others = _number(sql, scope), [_number(sql, one) for one in busy]
            return [] if mine == NOWHERE else jobs.claim(sql, kinds, limit, lease, mine, others, _now())

        # Asking first costs a read; a write would wait for other writers and for the disk, however idle the queue is.
        if not await self._read(lambda sql: jobs.any_due(sql, kinds, _number(sql, scope), _now())):
            return []
        return await self._write(run)

    async def renew(self, held: Sequence[Job], lease: float) -> None:
        """Leave jobs to their worker for ``lease`` seconds from now on."""
        await self._write(lambda sql: jobs.renew(sql, held, lease, _now()))

    async def fail(
        self, failed: Sequence[Job], error: str, retry_at: datetime | None, counts: bool = True
    ) -> None:
        """Keep the error; queue again at ``retry_at``, or leave them failed when that is None."""
        await self._write(lambda sql: jobs.fail(sql, failed, error, retry_at, counts))

    async def jobs(self, scope: Scope | None, state: JobState | None = None) -> list[Job]:
        """Jobs in the order they were queued."""
        return await self._read(lambda sql: jobs.listed(sql, _number(sql, scope), state))

    async def pending(
        self, scope: Scope | None, kinds: Sequence[JobKind] | None = None, due_by: datetime | None = None
    ) -> int:
        """How many jobs (of these kinds) are running, or queued (to run by then)."""
        return await self._read(lambda sql: jobs.pending(sql, _number(sql, scope), kinds, due_by))

    async def retry(self, scope: Scope | None, job: str | None = None) -> int:
        """Queue failed jobs again (only one, if given); how many."""
        return await self._write(lambda sql: jobs.retry(sql, _number(sql, scope), job, _now()))

    async def cancel(self, scope: Scope, job: str) -> bool:
        """Take a job off the queue unless somebody is at it."""
        return await self._write(lambda sql: jobs.cancel(sql, _number(sql, scope), job, _now()))

    # what language models said and cost -------------------------------------------------------------------------

    async def answer(self, scope: Scope, key: str) -> str | None:
        """The kept answer of that key."""
        return await self._read_scope(scope, lambda sql, row, _: answers.text_of(sql, row.number, key), None)

    async def model_use(self, scope: Scope | None, since: date | None = None) -> list[ModelUse]:
        """What models have cost (from a day on), one for each day and model, in this order."""
        return await self._read(lambda sql: answers.use_since(sql, _number(sql, scope), since))

    # what was searched, and what was of use -------------------------------------------------------------------

    async def log_searches(self, searches: Mapping[Scope, Sequence[LoggedSearch]]) -> None:
        """Add to the log of searches, as far as what they found is there; all in one transaction."""

        def run(sql: sqlite3.Connection) -> None:
            for scope, some in searches.items():
                row = find_scope(sql, scope)
                if row is not None:
                    feedback.log(sql, row.number, some)

        await self._write(run)

    async def search_logged(self, scope: Scope, id: str) -> LoggedSearch | None:
        """The search of that id, if it is in the log."""
        return await self._read_scope(scope, lambda sql, row, _: feedback.search(sql, row.number, id), None)

    async def searches(self, scope: Scope) -> AsyncIterator[LoggedSearch]:
        """All of the log by (asked_at, id); page by page, each of one state."""
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
        """What each search in the log asked, by its id."""
        return await self._read_scope(scope, lambda sql, row, _: feedback.questions(sql, row.number), {})

    async def note_uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, NoteUse]:
        """Of each of the notes that is there, what feedback says of it."""
        return await self._read_scope(scope, lambda sql, row, _: feedback.uses(sql, row.number, notes), {})

    async def proved(self, scope: Scope, notes: Sequence[str]) -> dict[str, Proved]:
        """How notes proved by the log of searches."""
        return await self._read_scope(scope, lambda sql, row, _: feedback.proved(sql, row.number, notes), {})

    # looking after --------------------------------------------------------------------------------------------

    async def purge_due(self) -> bool:
        """Whether a scope was dropped since the last ``purge``."""
        return await self._read(keeping.purge_due)

    async def purge(self) -> bool:
        """Remove what deletes left in the store's files; False while another reader holds the old pages."""
        connections = self._open_connections()

        def run() -> bool:
            with connections.write() as sql:
                keeping.forget_removals(sql)
            return keeping.purge(connections)

        return await anyio.to_thread.run_sync(run, limiter=self._writing)

    async def counts(self, scope: Scope | None) -> dict[str, int]:
        """How much there is of everything, in one scope or in all."""
        return await self._read(lambda sql: keeping.counts(sql, _number(sql, scope)))

    async def check(self, repair: bool) -> list[str]:
        """What is wrong between notes, words, facets, vectors and links; one line each. Empty: all is well.

        ``repair`` makes what is derived anew, in one transaction; the lines then tell what was mended.
        """

        def run(sql: sqlite3.Connection) -> list[str]:
            return checking.check(sql, repair, _now())

        if not repair:
            return await self._read(run)
        found = await self._write(run)
        self._scopes.forget()
        return found


NOWHERE = 0
"""Stands for a scope that was never written to; rows have numbers from 1."""


def _number(sql: sqlite3.Connection, scope: Scope | None) -> int | None:
    """A scope's number; None: all scopes."""
    if scope is None:
        return None
    row = find_scope(sql, scope)
    return NOWHERE if row is None else row.number


def _now() -> int:
    return time.time_ns() // 1000
