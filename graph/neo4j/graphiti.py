"""Export of a Graphiti graph to a file for ``zettel import --format graphiti``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import anyio

from zettel.errors import InvalidInput
from zettel.graph import NEO4J
from zettel.graph.neo4j.connection import DEFAULT_DATABASE, PARAMETERS, Neo4jConnection, statement

ROWS = 500
"""Rows per fetch."""


class Address(NamedTuple):
    """The server and database of a Graphiti graph; ``auth`` None takes the environment's."""

    url: str
    auth: tuple[str, str] | None
    database: str


def address_of(url: str) -> Address:
    """Parse ``neo4j://ann:secret@localhost:7687?database=graphs``. Raises ``InvalidInput``."""
    parts = urlsplit(url)
    if parts.scheme not in NEO4J or not parts.hostname:
        raise InvalidInput(f"{url} is not a Neo4j server: write an address such as neo4j://localhost:7687")
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    server = parts.netloc.rpartition("@")[2]
    (database,) = parse_qs(parts.query).get("database", [DEFAULT_DATABASE])[:1]
    return Address(f"{parts.scheme}://{server}", auth, database)


async def fetch(address: Address, to: Path) -> int:
    """Write all episodes, entities and facts to a JSONL file, and return their count.

    Raises ``StoreUnreachable`` and the like, and ``InvalidInput`` if there are none.
    """
    connection = Neo4jConnection(*address)
    await connection.open()
    rows = 0
    try:
        text = statement("graphiti", release=connection.release)
        async with connection.translated(), connection.driver.session(
            database=address.database, default_access_mode="READ", fetch_size=ROWS
        ) as session, await anyio.open_file(to, "w", encoding="utf-8") as file:  # fmt: skip
            async for record in await session.run(text, {PARAMETERS: {}}):
                await file.write(json.dumps(record.data(), default=str) + "\n")
                rows += 1
    finally:
        await connection.close()
    if not rows:
        raise InvalidInput(f"database {address.database!r} at {address.url} contains no Graphiti graph")
    return rows
