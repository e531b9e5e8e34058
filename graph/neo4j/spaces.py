"""Vector sets: listing, activation, and notes without a vector."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from zettel.errors import InvalidInput
from zettel.graph.neo4j import rows
from zettel.graph.neo4j.connection import Neo4jConnection, Transaction
from zettel.graph.neo4j.schema import MAX_INDEXED_DIM, index_vectors
from zettel.model import Note, Scope
from zettel.ports import VectorSet

if TYPE_CHECKING:
    from zettel.ports.query import Floats

EXACT_NOTES = 500
"""Largest scope whose vectors are all compared: below this size an index is hardly faster, and it is approximate."""
INDEXED_AT_ONCE = 2000
"""Vectors added to the vector index per transaction."""
PENDING = 500
"""Number of vectors outside the vector index from which they are added; searches compare them one by one until then."""
SWEPT_AT_ONCE = 5000
"""Vectors deleted per transaction: some 20 MB of the server's transaction memory at 256 numbers each."""


async def spaces(connection: Neo4jConnection) -> list[VectorSet]:
    """Return all vector sets, oldest first."""
    return [VectorSet(**dict(row)) for row in await connection.read("spaces")]


async def add(connection: Neo4jConnection, name: str, dim: int, fingerprint: str, recipe: str) -> VectorSet:
    """Create a vector set, or return the existing one of the same values. The first set is active."""
    await index_vectors(connection, dim)

    async def work(transaction: Transaction) -> VectorSet:
        await transaction.run("store_lock", token=secrets.token_hex(8))
        existing = [VectorSet(**dict(row)) for row in await transaction.run("spaces")]
        for space in existing:
            if space[1:5] == (name, dim, fingerprint, recipe):
                return space
        await transaction.run(
            "space_add", name=name, dim=dim, fingerprint=fingerprint, recipe=recipe, active=not existing
        )
        return VectorSet(**dict((await transaction.run("spaces"))[-1]))

    return await connection.writing(work)


async def without_vector(connection: Neo4jConnection, space: int, limit: int) -> list[tuple[Scope, Note]]:
    """Return unarchived notes that lack a vector in this set, by scope, oldest first."""
    notes = await connection.read("without_vector", space=space, limit=limit)
    return [(Scope.model_validate_json(row["scope"]), rows.read_note(row["note"])) for row in notes]


async def vectors(connection: Neo4jConnection, scope: Scope, notes: Sequence[str], space: int) -> dict[str, Floats]:
    """Return the (d,) vectors of the notes that have one in this set."""
    read = await connection.read("vectors", scope=scope.key, ids=list(notes), space=space)
    return {row["note"]: np.frombuffer(row["bytes"], "<f4") for row in read}


async def index(connection: Neo4jConnection, scope: Scope, space: int, dim: int, least: int) -> None:
    """Add a scope's vectors to the vector index, if it has more than ``EXACT_NOTES`` notes and ``least`` new vectors.

    Many at once cost the server far less than each with its note.
    """
    counts = await connection.read("vectors_pending", scope=scope.key, space=space)
    if not counts or not 0 < dim <= MAX_INDEXED_DIM:
        return
    ((notes, changes, pending),) = counts
    if notes <= EXACT_NOTES or pending < least:
        return

    async def add_page(transaction: Transaction) -> int:
        ((count,),) = await transaction.run(
            "vectors_index", fill={"dim": dim}, scope=scope.key, space=space, most=INDEXED_AT_ONCE
        )
        return int(count)

    while await connection.writing(add_page) == INDEXED_AT_ONCE:
        pass
    await connection.writing(
        lambda transaction: transaction.run("vectors_index_done", scope=scope.key, changes=changes)
    )


async def activate(connection: Neo4jConnection, space: int) -> bool:
    """Make this the only set and delete the vectors of all others; False while a note lacks a vector.

    Raises ``InvalidInput`` if the set does not exist.
    """

    async def work(transaction: Transaction) -> bool:
        await transaction.run("store_lock", token=secrets.token_hex(8))
        await transaction.run("scopes_lock", token=secrets.token_hex(8))
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


async def sweep(connection: Neo4jConnection) -> None:
    """Delete the vectors of removed sets in several transactions. After an interruption the next ``open`` continues."""
    removed = [row["id"] for row in await connection.read("spaces_leaving")]
    if removed:
        await connection.in_batches("spaces_sweep", fill={"page": SWEPT_AT_ONCE}, spaces=removed)
        await connection.writing(lambda transaction: transaction.run("spaces_drop", spaces=removed))
