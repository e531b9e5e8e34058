"""The store's vector sets: which there are, which one searches use, and which notes one lacks."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from zettel.errors import InvalidInput
from zettel.graph.neo4j import rows
from zettel.graph.neo4j.connection import Connection, Transaction
from zettel.graph.neo4j.schema import MAX_INDEXED_DIM, index_vectors
from zettel.model import Note, Scope
from zettel.ports import Space

if TYPE_CHECKING:
    from zettel.query import Floats

EXACT_NOTES = 500
"""Notes up to which a scope's vectors are compared one by one: below, an index is hardly quicker, and it may miss."""
INDEXED_AT_ONCE = 2000
"""Vectors taken into the vector index in one transaction."""
PENDING = 500
"""Vectors that wait for it: until there are so many, a search compares them one by one."""
SWEPT_AT_ONCE = 5000
"""Vectors destroyed in one transaction: some 20 MB of the server's memory for transactions, at 256 numbers."""


async def spaces(connection: Connection) -> list[Space]:
    """All vector sets, oldest first."""
    return [Space(**dict(row)) for row in await connection.read("spaces")]


async def add(connection: Connection, name: str, dim: int, fingerprint: str, recipe: str) -> Space:
    """A new set, or the one of the same values; the first is active."""
    await index_vectors(connection, dim)

    async def work(transaction: Transaction) -> Space:
        await transaction.run("store_lock", token=secrets.token_hex(8))
        known = [Space(**dict(row)) for row in await transaction.run("spaces")]
        for space in known:
            if space[1:5] == (name, dim, fingerprint, recipe):
                return space
        await transaction.run(
            "space_add", name=name, dim=dim, fingerprint=fingerprint, recipe=recipe, active=not known
        )
        return Space(**dict((await transaction.run("spaces"))[-1]))

    return await connection.writing(work)


async def without_vector(connection: Connection, space: int, limit: int) -> list[tuple[Scope, Note]]:
    """Notes that this set lacks, scope by scope, oldest first; archived ones are embedded when they come back."""
    told = await connection.read("without_vector", space=space, limit=limit)
    return [(Scope.model_validate_json(row["scope"]), rows.read_note(row["note"])) for row in told]


async def vectors(connection: Connection, scope: Scope, notes: Sequence[str], space: int) -> dict[str, Floats]:
    """The vectors of those of the notes that have one."""
    told = await connection.read("vectors", scope=scope.key, ids=list(notes), space=space)
    return {row["note"]: np.frombuffer(row["bytes"], "<f4") for row in told}


async def index(connection: Connection, scope: Scope, space: int, dim: int, least: int) -> None:
    """Take the vectors of a scope into the vector index that are not in it, if it has more than ``EXACT_NOTES`` notes
    and ``least`` of them wait for it: in company it costs far less than one by one, as they are written."""
    told = await connection.read("vectors_pending", scope=scope.key, space=space)
    if not told or told[0]["notes"] <= EXACT_NOTES or told[0]["pending"] < least or not 0 < dim <= MAX_INDEXED_DIM:
        return

    async def some(transaction: Transaction) -> int:
        ((count,),) = await transaction.run(
            "vectors_index", fill={"dim": dim}, scope=scope.key, space=space, most=INDEXED_AT_ONCE
        )
        return int(count)

    async def whole(transaction: Transaction) -> None:
        await transaction.run("vectors_indexed", scope=scope.key, changes=told[0]["changes"])

    while await connection.writing(some) == INDEXED_AT_ONCE:
        pass
    await connection.writing(whole)


async def activate(connection: Connection, space: int) -> bool:
    """Make this the only set, unless a note still lacks a vector of it; then destroy the others' vectors. Raises
    ``InvalidInput`` if it is not there."""

    async def work(transaction: Transaction) -> bool:
        await transaction.run("store_lock", token=secrets.token_hex(8))
        await transaction.run("scopes_touch", token=secrets.token_hex(8))
        if all(row["id"] != space for row in await transaction.run("spaces")):
            raise InvalidInput(f"there is no vector set {space}")
        if await transaction.run("without_vector", space=space, limit=1):
            return False
        await transaction.run("space_activate", space=space)
        return True

    switched = await connection.writing(work)
    if switched:
        await sweep(connection)
    return switched


async def sweep(connection: Connection) -> None:
    """Destroy the vectors of sets that are gone: as many as there were notes, so in several transactions. If that was
    cut off, whoever opens the database next goes on."""
    gone = [row["id"] for row in await connection.read("spaces_leaving")]
    if gone:
        await connection.in_batches("spaces_sweep", fill={"page": SWEPT_AT_ONCE}, spaces=gone)
        await connection.writing(lambda transaction: transaction.run("spaces_drop", spaces=gone))
