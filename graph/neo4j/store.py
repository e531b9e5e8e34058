"""Neo4jStore: the GraphStore in one database of a Neo4j server.

Each method runs statements of ``zettel.cypher`` and converts their rows.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from zettel.errors import EmbedderMismatch
from zettel.graph.keys import Keys
from zettel.graph.neo4j import integrity, rows, schema, spaces, transfer, unfinished
from zettel.graph.neo4j.candidates import FAR, REACH, gather
from zettel.graph.neo4j.committing import add, apply, plan
from zettel.graph.neo4j.connection import Neo4jConnection, Transaction, database_of
from zettel.graph.neo4j.feedback import Neo4jSearchLog
from zettel.graph.neo4j.jobs import Neo4jJobQueue
from zettel.graph.neo4j.nearest_notes import VectorCache
from zettel.graph.neo4j.point_in_time import candidates_known
from zettel.graph.neo4j.read_queries import ask
from zettel.graph.neo4j.reads import Neo4jNotes
from zettel.graph.neo4j.scope_cache import Neo4jScopeCache
from zettel.graph.scopes import Secrets
from zettel.model import Scope, from_micros
from zettel.ports.operations import Conflict, EndRestore
from zettel.ports.query import Seed

if TYPE_CHECKING:
    from neo4j import AsyncDriver

    from zettel.model import ModelUse, Note
    from zettel.ports import NearestNotes, VectorSet
    from zettel.ports.operations import Batch, Restore
    from zettel.ports.query import Candidates, Floats, Query
    from zettel.ports.store import ScopeRecord


class Neo4jStore(Neo4jNotes, Neo4jJobQueue, Neo4jSearchLog):
    """One database of a server, for one event loop. ``zettel.ports.GraphStore`` documents the methods."""

    name = "neo4j"

    def __init__(self, url: str, auth: Any = None, database: str | None = None) -> None:
        self.url = url
        self.connection = Neo4jConnection(url, auth, database_of(database))
        self._secrets = Secrets()
        self._vectors = VectorCache(self.connection)
        self._scopes = Neo4jScopeCache(self.connection)
        self._sizes: dict[str, int] = {}
        self._dims: dict[int, int] = {}

    async def open(self) -> None:
        """Connect, create or migrate the schema, and complete changes that were interrupted.

        Raises ``StoreUnreachable``, ``StoreDenied``, ``StoreTooOld``, ``StoreTooNew``, ``NotAStore``.
        """
        await self.connection.open()
        try:
            await schema.migrate(self.connection)
            await integrity.require_tokens(self.connection)
            await unfinished.settle(self.connection, None)
            await spaces.sweep(self.connection)
        except BaseException:
            await self.connection.close()
            raise

    async def close(self) -> None:
        """Close the connection. Closing twice does nothing."""
        self._vectors.clear()
        await self._scopes.close()
        await self.connection.close()

    def _clear_caches(self) -> None:
        self._vectors.clear()
        self._scopes.clear()

    @property
    def driver(self) -> AsyncDriver:
        """The driver, for the caller's own queries. Raises ``MemoryClosed``."""
        return self.connection.driver

    @property
    def is_loading(self) -> bool:
        """True while a scope that was searched is loaded in the background."""
        return self._scopes.is_loading

    # writes ---------------------------------------------------------------------------------------------------

    async def apply(self, batch: Batch) -> None:
        """Write all operations of a batch durably, or none.

        Raises ``Conflict``, ``StaleLease``, ``StoreBusy``, ``StoreFull``, ``StoreReadOnly``, ``StoreUnreachable``.
        """
        if batch.restore is not None:
            await self._restore(batch, batch.restore)
            return
        keys = self._secrets.planned(batch.scope)
        if keys is None:  # another process planned the batch, or the scope and its secret were dropped
            row = await self._scope_row(batch.scope)
            if row is None:
                raise Conflict(f"{batch.scope} was dropped while the batch was planned")
            keys = self._secrets.of(batch.scope, row)
        planned = plan(batch, batch.scope.key, keys)
        call = planned.plan.as_single_call()
        try:
            if call is not None:
                await add(self.connection, planned, call)
            else:
                await self.connection.writing(lambda transaction: apply(transaction, planned))
        except Conflict:
            self._secrets.forget(batch.scope)
            raise
        self._secrets.made_durable(batch.scope)
        if planned.plan.added.erased:
            self._scopes.clear()

    async def _restore(self, batch: Batch, restore: Restore) -> None:
        place = transfer.restore_key(batch.scope, restore.token)
        planned = plan(batch, place, Keys(restore.secret))
        ends = any(isinstance(op, EndRestore) for op in batch.ops)

        async def work(transaction: Transaction) -> None:
            if await apply(transaction, planned, restoring=True) and ends:
                await unfinished.end_restore(transaction, batch.scope, place)

        await self.connection.writing(work)
        if ends:
            await unfinished.settle(self.connection, batch.scope.key)
            for space in await self.spaces():
                await spaces.index(self.connection, batch.scope, space.id, space.dim, 1)

    async def abandon_restore(self, scope: Scope) -> None:
        for key in [*await self.connection.writing(partial(unfinished.abandon, scope)), scope.key]:
            await unfinished.settle(self.connection, key)

    async def whole(self, scope: Scope) -> AsyncIterator[Sequence[ScopeRecord]]:
        async for page in transfer.pages(self.connection, scope):
            yield page

    async def drop_scope(self, scope: Scope) -> int:
        async def work(transaction: Transaction) -> int:
            await transaction.run("scope_lock", scope=scope.key, token=secrets.token_hex(8))
            return await unfinished.drop(scope.key, transaction)

        await self.abandon_restore(scope)
        dropped = await self.connection.writing(work)
        self._secrets.forget(scope)
        self._sizes.pop(scope.key, None)
        self._scopes.clear()
        await unfinished.settle(self.connection, scope.key)
        return dropped

    # search ---------------------------------------------------------------------------------------------------

    async def candidates(self, query: Query) -> Candidates:
        """Return the candidates of a query. Raises ``EmbedderMismatch`` if its vector set was removed.

        A cached scope takes one statement, which reads the changes. So does another scope, or more if the vector index
        returns too few notes.
        """
        dim = await self._dim(query)
        if query.known_at is not None:
            return await candidates_known(self.connection, query)
        keys = await self._keys(query.scope)
        matching = await self.matching(query.scope, query.filter)
        expired = await self._expired(query)
        notes = self._sizes.get(query.scope.key, 0)
        cached = await self._scopes.candidates(query, keys, dim, notes, matching, expired)
        if cached is not None:
            return cached
        indexed = notes > spaces.EXACT_NOTES and query.vector is not None and dim <= schema.MAX_INDEXED_DIM
        for reach in (REACH, FAR) if indexed else ():
            gathered = await gather(self.connection, query, keys, dim, reach, matching)
            if np.count_nonzero(gathered.seeds & int(Seed.VECTOR)) == query.pool:
                break
        else:
            gathered = await gather(self.connection, query, keys, dim, 0, matching)
        self._sizes[query.scope.key] = gathered.stats.notes
        self._scopes.load_in_background(query, keys, dim, notes)
        return gathered

    async def _expired(self, query: Query) -> Sequence[str]:
        """Return the notes that a query leaves out because they expired. They are few: a job deletes them soon."""
        if query.filter.unexpired_at is None:
            return ()
        ((ids,),) = await self.connection.read(
            "expired_ids", scope=query.scope.key, until=from_micros(query.filter.unexpired_at)
        )
        return cast("list[str]", ids)

    async def _dim(self, query: Query) -> int:
        dim = await self._dim_of(query.space)
        if query.vector is not None and dim != len(query.vector):
            raise EmbedderMismatch(
                f"a vector of {len(query.vector)} numbers cannot be compared in vector set {query.space}: it "
                + ("was removed; open the memory again" if dim is None else f"has {dim}")
            )
        return dim or 0

    async def _dim_of(self, space: int) -> int | None:
        if space not in self._dims:
            await self.spaces()
        return self._dims.get(space)

    async def vectors(self, scope: Scope, notes: Sequence[str], space: int) -> dict[str, Floats]:
        return await spaces.vectors(self.connection, scope, notes, space)

    async def near(self, scope: Scope, notes: Sequence[str], space: int, k: int) -> list[NearestNotes]:
        """Return the exact k nearest older notes (lower seq) of each note with a vector."""
        return await self._vectors.near(scope, notes, space, k)

    async def cypher(self, query: str, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the rows of the caller's own read-only query."""
        async with self.connection.translated():
            return await ask(self.driver, self.connection.database, query, params, self.connection.bookmarks)

    # vector sets ----------------------------------------------------------------------------------------------

    async def spaces(self) -> list[VectorSet]:
        sets = await spaces.spaces(self.connection)
        self._dims = {space.id: space.dim for space in sets}
        return sets

    async def add_space(self, name: str, dim: int, fingerprint: str, recipe: str) -> VectorSet:
        return await spaces.add(self.connection, name, dim, fingerprint, recipe)

    async def without_vector(self, space: int, limit: int) -> list[tuple[Scope, Note]]:
        return await spaces.without_vector(self.connection, space, limit)

    async def activate(self, space: int) -> bool:
        switched = await spaces.activate(self.connection, space)
        self._clear_caches()
        self._dims.clear()
        return switched

    async def optimize(self, scope: Scope, space: int) -> None:
        """Add new vectors to the vector index if there are many."""
        await spaces.index(self.connection, scope, space, await self._dim_of(space) or 0, spaces.PENDING)

    # language models ------------------------------------------------------------------------------------------

    async def answer(self, scope: Scope, key: str) -> str | None:
        answers = await self.connection.read("answer", scope=scope.key, key=key)
        return answers[0]["text"] if answers else None

    async def model_use(self, scope: Scope | None, since: date | None = None) -> list[ModelUse]:
        uses = await self.connection.read_scoped("model_use", scope, since=(since or date.min).isoformat())
        return [rows.read_use(row) for row in uses]

    # maintenance ----------------------------------------------------------------------------------------------

    async def purge(self) -> bool:
        """Do nothing and return True: the server itself reuses the space of its files."""
        return True

    async def purge_due(self) -> bool:
        return False

    async def counts(self, scope: Scope | None) -> dict[str, int]:
        (row,) = await self.connection.read_scoped("counts", scope)
        return dict(row)

    async def check(self, repair: bool) -> list[str]:
        problems = await integrity.check(self.connection, repair)
        if repair:
            self._clear_caches()
        return problems
