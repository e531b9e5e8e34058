"""The log of searches, and which notes were of use."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence

from zettel.evolve.feedback import LOGGED
from zettel.graph.bodies import read_body
from zettel.graph.neo4j import rows
from zettel.graph.neo4j.connection import Connection, Transaction
from zettel.model import LoggedSearch, NoteUse, Proved, Scope, from_micros

PAGE = 256
"""Searches read or written at once."""


async def log(connection: Connection, scope: Scope, searches: Sequence[LoggedSearch]) -> None:
    """Add searches whose hits are all there; of the scope the newest LOGGED stay."""
    told = [
        {"search": rows.search_row(one, scope.key), "notes": sorted({hit.note for hit in one.hits})} for one in searches
    ]
    for start in range(0, len(told), PAGE):

        async def work(transaction: Transaction, some: object = told[start : start + PAGE]) -> None:
            await transaction.run(
                "searches_log", scope=scope.key, searches=some, logged=LOGGED, token=secrets.token_hex(8)
            )

        await connection.writing(work)


async def search(connection: Connection, scope: Scope, id: str) -> LoggedSearch | None:
    """The search of that id."""
    told = await connection.read("search_logged", scope=scope.key, id=id)
    return read_body(LoggedSearch, told[0]["body"]) if told else None


async def searches(connection: Connection, scope: Scope) -> AsyncIterator[LoggedSearch]:
    """All searches by (asked_at, id)."""
    asked_at, id = from_micros(0), ""
    while told := await connection.read("searches", scope=scope.key, asked_at=asked_at, id=id, limit=PAGE):
        for row in told:
            found = read_body(LoggedSearch, row["body"])
            yield found
        asked_at, id = found.asked_at, found.id


async def uses(connection: Connection, scope: Scope, notes: Sequence[str]) -> dict[str, NoteUse]:
    """What is said of those of the notes that are there."""
    told = await connection.read("note_uses", scope=scope.key, ids=list(notes))
    return {row["id"]: rows.read_usage(row) for row in told}


async def proved(connection: Connection, scope: Scope, notes: Sequence[str]) -> dict[str, Proved]:
    """How notes proved by the searches of which something was told."""
    told = await connection.read("note_proved", scope=scope.key, ids=list(notes))
    return {row["id"]: Proved(row["shown"], row["good"]) for row in told}
