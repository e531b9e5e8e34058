"""Whose database it is, in which layout, and how an older layout becomes this one."""

from __future__ import annotations

import re

from zettel.cypher import migrations
from zettel.errors import NotAStore, StoreTooNew
from zettel.graph.neo4j.connection import Connection, Transaction, statement

INDEX_SECONDS = 300
"""How long an index that is new to a full database may take before it can be asked."""

MAX_INDEXED_DIM = 4096
"""Longest vector that an index of the server takes; longer ones are compared one by one."""

_MADE = re.compile(r"(?:CONSTRAINT|INDEX) (\w+) IF NOT EXISTS")


async def missing(connection: Connection) -> list[str]:
    """The constraints and indexes of this layout that somebody has dropped. A constraint has an index of its name."""
    there = {row["name"] for row in await connection.read("indexes")}
    wanted = [name for text in await _statements(connection) for name in _MADE.findall(text)]
    return [name for name in wanted if name not in there]


async def remake(connection: Connection) -> None:
    """Make what is missing of this layout."""
    for text in await _statements(connection):
        await connection.command(text)
    await wait_for_indexes(connection)


async def index_vectors(connection: Connection, dim: int) -> None:
    """Make the vector index for vectors of ``dim`` numbers, if it is not there and the server takes so long ones."""
    if dim <= MAX_INDEXED_DIM:
        await connection.command(statement("space_index", release=connection.release, dim=dim))
        await wait_for_indexes(connection)


async def _statements(connection: Connection) -> list[str]:
    """All that make this layout, and the vector indexes of the sets that are there."""
    dims = sorted({row["dim"] for row in await connection.read("spaces") if row["dim"] <= MAX_INDEXED_DIM})
    return [text for step in migrations() for text in step] + [
        statement("space_index", release=connection.release, dim=dim) for dim in dims
    ]


async def migrate(connection: Connection) -> None:
    """Bring the database to this version's layout, and wait until its indexes can be asked.

    Every step may be run twice and by several processes at once: each statement does nothing where its work is done.
    Raises ``NotAStore``, ``StoreTooNew``.
    """
    steps = migrations()
    ((layout, others),) = await connection.read("layout")
    if layout is None and others:
        raise NotAStore(
            f"database {connection.database!r} at {connection.url} holds nodes of another program under names that "
            "zettel uses; it was left as it is: name another one with database=… or NEO4J_DATABASE"
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

        async def note(transaction: Transaction, number: int = number) -> None:
            await transaction.run("layout_set", layout=number)

        await connection.writing(note)
    await wait_for_indexes(connection)


async def wait_for_indexes(connection: Connection) -> None:
    """Return once no index is populating any more."""
    await connection.command(f"CALL db.awaitIndexes({INDEX_SECONDS})")
