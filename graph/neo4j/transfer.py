"""Streaming a whole scope out of the database and restoring it.

A scope that is being restored has its own key, which no read uses. When it is complete, all its nodes get the scope's
key (see ``unfinished``).
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.errors import StoreBusy
from zettel.graph.neo4j import rows, spaces
from zettel.graph.neo4j.connection import Neo4jConnection
from zettel.graph.neo4j.jobs import list_jobs
from zettel.graph.neo4j.reads import revisions_of, scope_state
from zettel.model import Job, JobState, Scope
from zettel.ports import NoteRecord
from zettel.ports.operations import PutEvent, PutJob, PutMention, PutNoteUse, PutTombstones, RestoreLinks

if TYPE_CHECKING:
    from neo4j import Record

    from zettel.ports.store import ScopeRecord

PAGE = 256
"""Records per read: some 500 KB with their vectors."""


def restore_key(scope: Scope, token: str) -> str:
    """Return the key of a scope during this restore, of the length of any other key."""
    return hashlib.blake2b(f"{scope.key} {token}".encode(), digest_size=16).hexdigest()


async def pages(connection: Neo4jConnection, scope: Scope) -> AsyncIterator[list[ScopeRecord]]:
    """Stream a scope's records in the order to restore them. Raises ``StoreBusy`` if the scope changes meanwhile."""
    states = await connection.read("state", scope=scope.key)
    if not states:
        return
    (state,) = states
    yield [scope_state(state)]
    async for page in _record_pages(connection, scope):
        now = await connection.read("state", scope=scope.key)
        if not now or (now[0]["changes"], now[0]["secret"]) != (state["changes"], state["secret"]):
            raise StoreBusy(f"{scope} was written to while it was read: try again when nobody writes")
        yield page


async def _record_pages(connection: Neo4jConnection, scope: Scope) -> AsyncIterator[list[ScopeRecord]]:
    existing = {space.id for space in await spaces.spaces(connection)}  # vectors of removed sets may remain
    async for page in _pages(connection, scope, "whole_events", "seq", -1):
        yield [PutEvent(rows.read_event(row["event"]), row["event"]["identity"]) for row in page]
    async for page in _pages(connection, scope, "whole_notes", "seq", -1):
        yield [
            NoteRecord(
                rows.read_note(row["base"]),
                revisions_of(row["revisions"]),
                tuple((space, np.frombuffer(vector, "<f4")) for space, vector in row["vectors"] if space in existing),
            )
            for row in page
        ]
    for decided in (True, False):
        async for page in _pages(connection, scope, "whole_links", "seq", -1, decided=decided):
            links_of = [(row["id"], tuple(map(rows.read_link, row["links"]))) for row in page if row["links"]]
            if decided:
                yield [RestoreLinks(owner, links) for owner, links in links_of]
            else:
                yield [PutMention(link) for _, links in links_of for link in links]
    async for page in _pages(connection, scope, "whole_tombstones", "identity", ""):
        yield [PutTombstones(tuple(row["identity"] for row in page))]
    async for page in _pages(connection, scope, "whole_usages", "seq", -1):
        yield [PutNoteUse(row["id"], rows.read_usage(row)) for row in page]
    yield [PutJob(_unleased(job)) for job in await list_jobs(connection, scope)]


async def _pages(
    connection: Neo4jConnection, scope: Scope, name: str, column: str, after: int | str, **values: Any
) -> AsyncIterator[list[Record]]:
    """Stream the pages of a statement whose rows are sorted by ``column``."""
    while page := await connection.read(name, scope=scope.key, after=after, limit=PAGE, **values):
        yield page
        after = page[-1][column]


def _unleased(job: Job) -> Job:
    """Return a running job as a queued one."""
    if job.state is not JobState.RUNNING:
        return job
    return job.model_copy(update={"state": JobState.QUEUED, "token": None})
