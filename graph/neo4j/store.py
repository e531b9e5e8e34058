"""Neo4jStore: the GraphStore that keeps everything in one database of a Neo4j server.

Every method says which statement it runs and what its rows become; the statements are in ``zettel.cypher``.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.batch import Conflict, EndRestore
from zettel.errors import EmbedderMismatch
from zettel.graph.keys import Keys
from zettel.graph.neo4j import checking, feedback, jobs, moving, planning, reads, rows, schema, settling, spaces
from zettel.graph.neo4j.ask import ask
from zettel.graph.neo4j.candidates import FAR, REACH, asked, flags, nothing, shaped
from zettel.graph.neo4j.committing import add, apply
from zettel.graph.neo4j.completing import completed
from zettel.graph.neo4j.connection import Connection, Transaction, database_of
from zettel.graph.neo4j.held import HeldScopes
from zettel.graph.neo4j.known import candidates_known
from zettel.graph.neo4j.near import Nearby
from zettel.graph.scopes import ScopeRow, Secrets
from zettel.model import TIME_MIN, Scope
from zettel.ports import ScopeState
from zettel.query import Seed

if TYPE_CHECKING:
    from neo4j import AsyncDriver

    from zettel.batch import Batch, Restore
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
    from zettel.ports import Found, Kept, Lookup, Near, NoteHistory, Space, TermUse
    from zettel.query import Candidates, Filter, Floats, Query

DUMP_PAGE = 256
"""Events fetched at once while streaming."""


class Neo4jStore:
    """One database of a server. Used from one event loop."""

    name = "neo4j"

    def __init__(self, url: str, auth: Any = None, database: str | None = None) -> None:
        self.url = url
        self.connection = Connection(url, auth, database_of(database))
        self._secrets = Secrets()
        self._nearby = Nearby(self.connection)
        self._scopes = HeldScopes(self.connection)
        self._sizes: dict[str, int] = {}
        self._spaces: dict[int, int] = {}

    async def open(self) -> None:
        """Connect, make or migrate the schema, and go on with what others were cut off in the middle of.

        Raises ``StoreUnreachable``, ``StoreDenied``, ``StoreTooOld``, ``StoreTooNew``, ``NotAStore``.
        """
        await self.connection.open()
        try:
            await schema.migrate(self.connection)
            await settling.settle(self.connection, None)
            await spaces.sweep(self.connection)
        except BaseException:
            await self.connection.close()
            raise

    async def close(self) -> None:
        """Close the connection. Closing twice does nothing."""
        self._nearby.forget()
        self._scopes.forget()
        await self.connection.close()

    @property
    def driver(self) -> AsyncDriver:
        """The driver, for people's own queries. Raises ``MemoryClosed``."""
        return self.connection.driver

    # writes ---------------------------------------------------------------------------------------------------

    async def apply(self, batch: Batch) -> None:
        """Write all of a batch, durably, or nothing.

        Raises ``Conflict``, ``StaleLease``, ``StoreBusy``, ``StoreFull``, ``StoreReadOnly``, ``StoreUnreachable``.
        """
        if batch.restore is not None:
            await self._restore(batch, batch.restore)
            return
        keys = self._secrets.planned(batch.scope)
        if keys is None:  # planned elsewhere, or the scope was dropped meanwhile, and its secret with it
            row = await self._scope(batch.scope)
            if row is None:
                raise Conflict(f"{batch.scope} was dropped while the batch was planned")
            keys = self._secrets.of(batch.scope, row)
        token, now = secrets.token_hex(8), _now()
        plan = planning.plan(batch, batch.scope.key, keys, token, now)

        step = plan.as_one()

        async def work(transaction: Transaction) -> None:
            await apply(transaction, batch, plan, keys.secret, token, now)

        try:
            if step is not None:
                await add(self.connection, batch, plan, step, keys.secret, token, now)
            else:
                await self.connection.writing(work)
        except Conflict:
            self._secrets.forget(batch.scope)
            raise
        self._secrets.made_durable(batch.scope)
        if plan.added.erased:
            self._scopes.forget()

    async def _restore(self, batch: Batch, restore: Restore) -> None:
        token, now = secrets.token_hex(8), _now()
        place = moving.place_of(batch.scope, restore.token)
        plan = planning.plan(batch, place, Keys(restore.secret), token, now)

        async def work(transaction: Transaction) -> None:
            if await apply(transaction, batch, plan, restore.secret, token, now, restoring=True):
                await settling.end(transaction, batch, place)

        await self.connection.writing(work)
        if any(isinstance(op, EndRestore) for op in batch.ops):
            await settling.settle(self.connection, batch.scope.key)
            for space in await self.spaces():
                await spaces.index(self.connection, batch.scope, space.id, space.dim, 1)

    async def abandon_restore(self, scope: Scope) -> None:
        """Destroy what restores of this scope have written that did not come to their end."""
        for key in [*await self.connection.writing(partial(settling.abandon, scope)), scope.key]:
            await settling.settle(self.connection, key)

    async def whole(self, scope: Scope) -> AsyncIterator[Sequence[Kept]]:
        """All of a scope in the order in which it can be restored.

        Raises ``StoreBusy`` if it was written to meanwhile.
        """
        async for page in moving.pages(self.connection, scope):
            yield page

    async def _keys(self, scope: Scope) -> Keys:
        return self._secrets.of(scope, await self._scope(scope))

    async def _scope(self, scope: Scope) -> ScopeRow | None:
        told = await self.connection.read("state", scope=scope.key)
        return _scope_row(told[0]) if told else None

    async def drop_scope(self, scope: Scope) -> int:
        """Destroy all of a scope, tombstones and secret too; how many notes it had."""

        async def work(transaction: Transaction) -> int:
            await transaction.run("scope_touch", scope=scope.key, token=secrets.token_hex(8))
            return await settling.drop(scope.key, transaction)

        await self.abandon_restore(scope)
        dropped = await self.connection.writing(work)
        self._secrets.forget(scope)
        self._sizes.pop(scope.key, None)
        self._scopes.forget()
        await settling.settle(self.connection, scope.key)
        return dropped

    # reads ----------------------------------------------------------------------------------------------------

    async def state(self, scope: Scope) -> ScopeState:
        """Of a scope never written to: seq 0, and a fresh secret that the first batch makes durable."""
        told = await self.connection.read("state", scope=scope.key)
        if not told and await settling.settle(self.connection, scope.key):
            told = await self.connection.read("state", scope=scope.key)
        if not told:
            return ScopeState(0, self._secrets.of(scope, None).secret, TIME_MIN, TIME_MIN)
        (row,) = told
        self._secrets.of(scope, _scope_row(row))
        return _state(row)

    async def lookup(self, scope: Scope, ask: Lookup) -> Found:
        """What a write has to know before it can be planned."""
        keys = self._secrets.planned(scope) or await self._keys(scope)
        return await reads.look_up(self.connection, scope, keys, ask)

    async def survey(self, scope: Scope, ask: Callable[[bytes], Lookup]) -> tuple[ScopeState, Found]:
        """``state`` and ``lookup`` in one round trip, if the secret that is remembered is still the scope's."""
        keys = self._secrets.planned(scope)
        told = None if keys is None else await reads.survey(self.connection, scope, keys, ask(keys.secret))
        if told is None:
            state = await self.state(scope)
            return state, await self.lookup(scope, ask(state.secret))
        row, found = told
        self._secrets.of(scope, _scope_row(row))
        return _state(row), found

    async def notes(self, scope: Scope, ids: Sequence[str]) -> dict[str, Note]:
        """Those of the notes that the scope holds, by id."""
        return await reads.notes(self.connection, scope, ids)

    async def events(self, scope: Scope, ids: Sequence[str]) -> dict[str, EventRecord]:
        """Those of the events that the scope holds, by id."""
        return await reads.events(self.connection, scope, ids)

    async def events_like(self, scope: Scope, ids: Sequence[str]) -> tuple[str, ...]:
        """The ids of all events that share an identity with one of these, themselves included."""
        return tuple(row["id"] for row in await self.connection.read("events_like", scope=scope.key, ids=list(ids)))

    async def events_from(self, scope: Scope, source: str | None, session: str | None, limit: int) -> tuple[str, ...]:
        """The ids of the first ``limit`` events read from that file or said in that session, whichever is not None."""
        wanted = [name for name, value in (("file", source), ("session", session)) if value is not None]
        told = await self.connection.read(
            "events_from", *wanted, scope=scope.key, file=source, session=session, limit=limit
        )
        return tuple(row["id"] for row in told)

    async def notes_of(self, scope: Scope, events: Sequence[str]) -> tuple[str, ...]:
        """The ids of all notes that have one of these among their ``event_ids`` in any version."""
        return tuple(row["id"] for row in await self.connection.read("notes_of", scope=scope.key, ids=list(events)))

    async def page(self, scope: Scope, filter: Filter, after: int, limit: int) -> list[Note]:
        """Notes in ``seq`` order, those past ``after``; archived ones are left out."""
        return await reads.page(self.connection, scope, filter, after, limit)

    async def archived(self, scope: Scope, before: int, limit: int) -> list[Note]:
        """Archived notes from the newest on, those of lower ``seq`` than ``before``."""
        return await reads.archived(self.connection, scope, before, limit)

    async def histories(self, scope: Scope, ids: Sequence[str]) -> dict[str, NoteHistory]:
        """Base and revisions of those of the notes that the scope holds."""
        return await reads.histories(self.connection, scope, ids)

    async def citing(self, scope: Scope, notes: Sequence[str]) -> tuple[Revision, ...]:
        """All revisions that one of these notes stood before, as input, cause or end of a link."""
        return await reads.citing(self.connection, scope, notes)

    async def links(self, scope: Scope, notes: Sequence[str]) -> list[Link]:
        """Links that start or end at one of these, by (source, type, target)."""
        return await reads.links(self.connection, scope, notes)

    async def terms(self, scope: Scope, note: str) -> list[Term]:
        """A note's Terms by key."""
        return await reads.terms(self.connection, scope, note)

    async def uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, tuple[TermUse, ...]]:
        """What each note's index says of its Terms."""
        return await reads.uses(self.connection, scope, notes)

    async def scopes(self) -> list[Scope]:
        """All scopes, oldest first."""
        return [Scope.model_validate_json(row["name"]) for row in await self.connection.read("scopes")]

    async def dump(self, scope: Scope) -> AsyncIterator[tuple[EventRecord, tuple[Note, ...]]]:
        """Every event with the notes that rest on it, in ``seq`` order; page by page, each of one state."""
        after = -1
        while page := await reads.dump_page(self.connection, scope, after, DUMP_PAGE):
            for pair in page:
                yield pair
            after = page[-1][0].seq

    # answers --------------------------------------------------------------------------------------------------

    async def candidates(self, query: Query) -> Candidates:
        """What the store knows about a question: one statement, of a scope that is held what changed in it, and else
        what the question finds. That takes two more, and if the vector index found too little a fourth.

        Raises ``EmbedderMismatch`` if the question's vector set is gone.
        """
        dim = await self._dim(query)
        if query.known_at is not None:
            return await candidates_known(self.connection, query)
        keys = self._secrets.planned(query.scope) or await self._keys(query.scope)
        held = await self._scopes.candidates(query, keys, dim)
        if held is not None:
            return held
        large = self._sizes.get(query.scope.key, 0) > spaces.EXACT_NOTES
        indexed = large and query.vector is not None and dim <= schema.MAX_INDEXED_DIM
        for reach in (REACH, FAR) if indexed else ():
            found = await self._gathered(query, keys, dim, reach)
            if np.count_nonzero(found.seeds & int(Seed.VECTOR)) == query.pool:
                break
        else:  # others were in the way
            found = await self._gathered(query, keys, dim)
        self._sizes[query.scope.key] = found.stats.notes
        return found

    async def _gathered(self, query: Query, keys: Keys, dim: int, reach: int = 0) -> Candidates:
        """With a vector, ask the index for ``reach`` times as many notes as are wanted, or (0) look at every note."""
        order = sorted(range(len(query.tokens)), key=lambda place: query.tokens[place])
        told = await self.connection.read(
            "candidates",
            *flags(query, indexed=reach > 0, searching=self.connection.searches_in_scope),
            fill={"dim": dim} if reach else None,
            **asked(query, keys, order, reach),
        )
        if not told:
            return nothing(query, order)
        answer = dict(told[0])
        return shaped(answer, *await completed(self.connection, query, answer), query, order)

    async def _dim(self, query: Query) -> int:
        dim = await self._dim_of(query.space)
        if query.vector is not None and dim != len(query.vector):
            raise EmbedderMismatch(
                f"a vector of {len(query.vector)} numbers cannot be compared in vector set {query.space}: it "
                + ("is gone; open the memory anew" if dim is None else f"has {dim}")
            )
        return dim or 0

    async def _dim_of(self, space: int) -> int | None:
        if space not in self._spaces:
            self._spaces = {space.id: space.dim for space in await self.spaces()}
        return self._spaces.get(space)

    async def vectors(self, scope: Scope, notes: Sequence[str], space: int) -> dict[str, Floats]:
        """The vectors of those of the notes that have one in this set."""
        return await spaces.vectors(self.connection, scope, notes, space)

    async def near(self, scope: Scope, notes: Sequence[str], space: int, k: int) -> list[Near]:
        """The k nearest older notes (lower seq) of each that has a vector; exact."""
        return await self._nearby.near(scope, notes, space, k)

    async def cypher(self, query: str, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows of a person's own query, which can only read."""
        async with self.connection.translated():
            return await ask(self.driver, self.connection.database, query, params, self.connection.bookmarks)

    # vector sets ----------------------------------------------------------------------------------------------

    async def spaces(self) -> list[Space]:
        """All vector sets, oldest first."""
        return await spaces.spaces(self.connection)

    async def add_space(self, name: str, dim: int, fingerprint: str, recipe: str) -> Space:
        """A new vector set; the first one is active at once. An existing one of the same values is returned."""
        return await spaces.add(self.connection, name, dim, fingerprint, recipe)

    async def without_vector(self, space: int, limit: int) -> list[tuple[Scope, Note]]:
        """Notes that this set lacks, oldest first; archived ones are left out."""
        return await spaces.without_vector(self.connection, space, limit)

    async def activate(self, space: int) -> bool:
        """Switch searches to this set in one transaction, in which the others are gone for everybody; then destroy
        their vectors. False while a note lacks a vector."""
        switched = await spaces.activate(self.connection, space)
        self._nearby.forget()
        self._scopes.forget()
        self._spaces.clear()
        return switched

    async def optimize(self, scope: Scope, space: int) -> None:
        """Take new vectors into the vector index, when there are many."""
        await spaces.index(self.connection, scope, space, await self._dim_of(space) or 0, spaces.PENDING)

    # jobs -----------------------------------------------------------------------------------------------------

    async def claim(
        self, kinds: Sequence[JobKind], limit: int, lease: float, scope: Scope | None, busy: Sequence[Scope] = ()
    ) -> list[Job]:
        """Take up to ``limit`` due jobs for ``lease`` seconds, each with a fresh token; all of one scope and kind."""
        return await jobs.claim(self.connection, kinds, limit, lease, scope, busy, _now())

    async def renew(self, held: Sequence[Job], lease: float) -> None:
        """Leave jobs to their worker for ``lease`` seconds from now on."""
        await jobs.renew(self.connection, held, lease, _now())

    async def fail(
        self, failed: Sequence[Job], error: str, retry_at: datetime | None, counts: bool = True
    ) -> None:
        """Keep the error; queue again at ``retry_at``, or leave them failed when that is None."""
        await jobs.fail(self.connection, failed, error, retry_at, counts)

    async def jobs(self, scope: Scope | None, state: JobState | None = None) -> list[Job]:
        """Jobs in the order they were queued."""
        return await jobs.listed(self.connection, scope, state)

    async def pending(
        self, scope: Scope | None, kinds: Sequence[JobKind] | None = None, due_by: datetime | None = None
    ) -> int:
        """How many jobs (of these kinds) are running, or queued (to run by then)."""
        return await jobs.pending(self.connection, scope, kinds, due_by)

    async def retry(self, scope: Scope | None, job: str | None = None) -> int:
        """Queue failed jobs again (only one, if given); how many."""
        return await jobs.retry(self.connection, scope, job, _now())

    async def cancel(self, scope: Scope, job: str) -> bool:
        """Take a job off the queue unless somebody is at it."""
        return await jobs.cancel(self.connection, scope, job, _now())

    # what language models said and cost -----------------------------------------------------------------------

    async def answer(self, scope: Scope, key: str) -> str | None:
        """The kept answer of that key."""
        told = await self.connection.read("answer", scope=scope.key, key=key)
        return told[0]["text"] if told else None

    async def model_use(self, scope: Scope | None, since: date | None = None) -> list[ModelUse]:
        """What models have cost (from a day on), one for each day and model, in this order."""
        flags = () if scope is None else ("scoped",)
        told = await self.connection.read(
            "model_use", *flags, scope=scope.key if scope else None, since=(since or date.min).isoformat()
        )
        return [rows.read_use(row) for row in told]

    # what was searched, and what was of use -------------------------------------------------------------------

    async def log_searches(self, searches: Mapping[Scope, Sequence[LoggedSearch]]) -> None:
        """Add to the log of searches, as far as what they found is there; each scope's in one transaction."""
        for scope, some in searches.items():
            await feedback.log(self.connection, scope, some)

    async def search_logged(self, scope: Scope, id: str) -> LoggedSearch | None:
        """The search of that id, if it is in the log."""
        return await feedback.search(self.connection, scope, id)

    async def searches(self, scope: Scope) -> AsyncIterator[LoggedSearch]:
        """All of the log by (asked_at, id); page by page, each of one state."""
        async for search in feedback.searches(self.connection, scope):
            yield search

    async def questions_logged(self, scope: Scope) -> dict[str, str]:
        """What each search in the log asked, by its id."""
        told = await self.connection.read("questions_logged", scope=scope.key)
        return {row["id"]: row["question"] for row in told}

    async def note_uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, NoteUse]:
        """Of each of the notes that is there, what feedback says of it."""
        return await feedback.uses(self.connection, scope, notes)

    async def proved(self, scope: Scope, notes: Sequence[str]) -> dict[str, Proved]:
        """How notes proved by the log of searches."""
        return await feedback.proved(self.connection, scope, notes)

    # looking after --------------------------------------------------------------------------------------------

    async def purge(self) -> bool:
        """Nothing is left to do here: how a server reuses its files' space is its own affair."""
        return True

    async def purge_due(self) -> bool:
        """Never: see ``purge``."""
        return False

    async def counts(self, scope: Scope | None) -> dict[str, int]:
        """How much there is of everything, in one scope or in all."""
        flags = () if scope is None else ("scoped",)
        (row,) = await self.connection.read("counts", *flags, scope=scope.key if scope else None)
        return dict(row)

    async def check(self, repair: bool) -> list[str]:
        """What is wrong between notes, words, Terms, links and sums; one line each. Empty: all is well.

        ``repair`` makes what is derived anew, scope by scope; the lines then tell what was mended.
        """
        found = await checking.check(self.connection, repair)
        if repair:
            self._nearby.forget()
            self._scopes.forget()
        return found


def _state(row: Any) -> ScopeState:
    latest = TIME_MIN if row["latest"] is None else row["latest"]
    return ScopeState(row["seq"], row["secret"], row["recorded_at"], latest)


def _scope_row(row: Any) -> ScopeRow:
    return ScopeRow(0, row["secret"], row["seq"], row["recorded_at"], row["changes"], row["floor"])


def _now() -> int:
    return time.time_ns() // 1000
