"""The graph of a Graphiti on a Neo4j server, as a file that ``zettel import --format graphiti`` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import anyio

from zettel.errors import InvalidInput
from zettel.graph import NEO4J
from zettel.graph.neo4j.connection import DEFAULT_DATABASE, GIVEN, Connection, statement

ROWS = 500
"""Rows fetched at once."""


class Address(NamedTuple):
    """Where a Graphiti is: its server, who asks (None: the environment tells), and which of its databases."""

    url: str
    auth: tuple[str, str] | None
    database: str


def address_of(url: str) -> Address:
    """``neo4j://ann:secret@localhost:7687?database=graphs`` in its parts. Raises ``InvalidInput``."""
    told = urlsplit(url)
    if told.scheme not in NEO4J or not told.hostname:
        raise InvalidInput(f"{url} is no Neo4j server: Graphiti is read from one, as neo4j://localhost:7687")
    auth = (unquote(told.username), unquote(told.password or "")) if told.username else None
    server = told.netloc.rpartition("@")[2]
    (database,) = parse_qs(told.query).get("database", [DEFAULT_DATABASE])[:1]
    return Address(f"{told.scheme}://{server}", auth, database)


async def fetch(address: Address, to: Path) -> int:
    """Write all episodes, entities and facts to a file, a row of JSON each; how many there are.

    Raises ``StoreUnreachable`` and the like, and ``InvalidInput`` if there are none.
    """
    connection = Connection(*address)
    await connection.open()
    rows = 0
    try:
        text = statement("graphiti", release=connection.release)
        async with connection.translated(), connection.driver.session(
            database=address.database, default_access_mode="READ", fetch_size=ROWS
        ) as session, await anyio.open_file(to, "w", encoding="utf-8") as file:  # fmt: skip
            async for record in await session.run(text, {GIVEN: {}}):
                await file.write(json.dumps(record.data(), default=str) + "\n")
                rows += 1
    finally:
        await connection.close()
    if not rows:
        raise InvalidInput(f"{address.url} holds no graph of Graphiti in its database {address.database!r}")
    return rows
