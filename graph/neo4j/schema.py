"""Ownership check and schema migrations of the database."""

from __future__ import annotations

import re

from zettel.cypher import migrations
from zettel.errors import NotAStore, StoreTooNew
from zettel.graph.neo4j.connection import Neo4jConnection, Transaction, statement

INDEX_SECONDS = 300
"""Timeout for a new index of a large database."""

MAX_INDEXED_DIM = 4096
"""Longest vector that the server can index; longer ones are compared one by one."""

_CREATED = re.compile(r"(?:CONSTRAINT|INDEX) (\w+) IF NOT EXISTS")


async def missing(connection: Neo4jConnection) -> list[str]:
    """Return the dropped constraints and indexes of this layout. Each constraint has an index of the same name."""
    existing = {row["name"] for row in await connection.read("indexes")}
    expected = [name for text in await _statements(connection) for name in _CREATED.findall(text)]
    return [name for name in expected if name not in existing]


async def remake(connection: Neo4jConnection) -> None:
    """Create the missing constraints and indexes."""
    for text in await _statements(connection):
        await connection.command(text)
    await wait_for_indexes(connection)


async def index_vectors(connection: Neo4jConnection, dim: int) -> None:
    """Create the vector index for vectors of ``dim`` numbers, unless it exists or they are too long."""
    if dim <= MAX_INDEXED_DIM:
        await connection.command(statement("space_index", release=connection.release, dim=dim))
        await wait_for_indexes(connection)


async def _statements(connection: Neo4jConnection) -> list[str]:
    """Return the statements that create this layout and the indexes of the existing vector sets."""
    dims = sorted({row["dim"] for row in await connection.read("spaces") if row["dim"] <= MAX_INDEXED_DIM})
    return [text for step in migrations() for text in step] + [
        statement("space_index", release=connection.release, dim=dim) for dim in dims
    ]


async def migrate(connection: Neo4jConnection) -> None:
    """Migrate the database to this version's layout, and wait for its indexes.

    Each step may run twice and in several processes at once: every statement is idempotent.
    Raises ``NotAStore``, ``StoreTooNew``.
    """
    steps = migrations()
    ((layout, others),) = await connection.read("layout")
    if layout is None and others:
        raise NotAStore(
            f"database {connection.database!r} at {connection.url} contains nodes of another program with labels that "
            "zettel uses; nothing was changed: name another one with database=… or NEO4J_DATABASE"
        )
    if (layout or 0) > len(steps):
        raise StoreTooNew(
            f"{connection.url} was written by a newer zettel (layout {layout}; this one knows {len(steps)}): "
            "upgrade zettel"
        )
    if layout == len(steps):
        await wait_for_indexes(connection)
        return
    for number, step in enumerate(steps[layout or 0 :], start=(layout or 0) + 1):
        for text in step:
            await connection.command(text)

        async def set_layout(transaction: Transaction, number: int = number) -> None:
            await transaction.run("layout_set", layout=number)

        await connection.writing(set_layout)
    await wait_for_indexes(connection)


async def wait_for_indexes(connection: Neo4jConnection) -> None:
    """Return when all indexes are online."""
    await connection.command(f"CALL db.awaitIndexes({INDEX_SECONDS})")
