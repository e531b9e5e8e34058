"""The search log and the usefulness of notes."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence

from zettel.core.feedback import LOGGED
from zettel.graph.bodies import read_body
from zettel.graph.neo4j import rows
from zettel.graph.neo4j.connection import Neo4jConnection, Transaction
from zettel.model import LoggedSearch, NoteUse, Proved, Scope, from_micros

PAGE = 256
"""Searches per read or write."""


class Neo4jSearchLog:
    """The log of ``zettel.ports.store.SearchLog``."""

    connection: Neo4jConnection

    async def log_searches(self, searches: Mapping[Scope, Sequence[LoggedSearch]]) -> None:
        """Log searches whose hits all exist, and drop all but each scope's newest LOGGED."""
        for scope, logged in searches.items():
            for start in range(0, len(logged), PAGE):
                await self._log_page(scope, logged[start : start + PAGE])

    async def _log_page(self, scope: Scope, searches: Sequence[LoggedSearch]) -> None:
        page = [
            {"search": rows.search_row(search, scope.key), "notes": sorted({hit.note for hit in search.hits})}
            for search in searches
        ]

        async def work(transaction: Transaction) -> None:
            await transaction.run(
                "searches_log", scope=scope.key, searches=page, limit=LOGGED, token=secrets.token_hex(8)
            )

        await self.connection.writing(work)

    async def search_logged(self, scope: Scope, id: str) -> LoggedSearch | None:
        bodies = await self.connection.read("search_logged", scope=scope.key, id=id)
        return read_body(LoggedSearch, bodies[0]["body"]) if bodies else None

    async def searches(self, scope: Scope) -> AsyncIterator[LoggedSearch]:
        asked_at, id = from_micros(0), ""
        while page := await self.connection.read("searches", scope=scope.key, asked_at=asked_at, id=id, limit=PAGE):
            for row in page:
                search = read_body(LoggedSearch, row["body"])
                yield search
            asked_at, id = search.asked_at, search.id

    async def questions_logged(self, scope: Scope) -> dict[str, str]:
        questions = await self.connection.read("questions_logged", scope=scope.key)
        return {row["id"]: row["question"] for row in questions}

    async def note_uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, NoteUse]:
        uses = await self.connection.read("note_uses", scope=scope.key, ids=list(notes))
        return {row["id"]: rows.read_usage(row) for row in uses}

    async def proved(self, scope: Scope, notes: Sequence[str]) -> dict[str, Proved]:
        counts = await self.connection.read("note_usefulness", scope=scope.key, ids=list(notes))
        return {row["id"]: Proved(row["shown"], row["good"], row["found"]) for row in counts}
