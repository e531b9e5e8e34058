"""A whole scope out of the database, and into it.

A scope that is being restored has a key of its own, so that nobody finds it; when it is whole, all its nodes get the
scope's key (see ``settling``).
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import numpy as np

from zettel.batch import PutEvent, PutJob, PutMention, PutNoteUse, PutTombstones, RestoreLinks
from zettel.errors import StoreBusy
from zettel.graph.neo4j import rows, spaces
from zettel.graph.neo4j.connection import Connection
from zettel.graph.neo4j.reads import told_by
from zettel.model import TIME_MIN, Job, JobState, Scope
from zettel.ports import KeptNote, ScopeState

if TYPE_CHECKING:
    from zettel.ports import Kept

PAGE = 256
"""Records read at once: with their vectors some 500 KB."""


def place_of(scope: Scope, token: str) -> str:
    """The key of a scope while this restore of it is under way: as long as any other."""
    return hashlib.blake2b(f"{scope.key} {token}".encode(), digest_size=16).hexdigest()


async def pages(connection: Connection, scope: Scope) -> AsyncIterator[list[Kept]]:
    """All of a scope, in pages. Raises ``StoreBusy`` if it was written to meanwhile."""
    found = await connection.read("state", scope=scope.key)
    if not found:
        return
    (state,) = found
    latest = TIME_MIN if state["latest"] is None else state["latest"]
    yield [ScopeState(state["seq"], state["secret"], state["recorded_at"], latest)]
    async for page in _rest(connection, scope):
        again = await connection.read("state", scope=scope.key)
        if not again or (again[0]["changes"], again[0]["secret"]) != (state["changes"], state["secret"]):
            raise StoreBusy(f"{scope} was written to while it was read: try again when nobody writes")
        yield page


async def _rest(connection: Connection, scope: Scope) -> AsyncIterator[list[Kept]]:
    there = {space.id for space in await spaces.spaces(connection)}  # vectors of others are on their way out
    after = -1
    while told := await connection.read("whole_events", scope=scope.key, after=after, limit=PAGE):
        yield [PutEvent(rows.read_event(row["event"]), row["event"]["identity"]) for row in told]
        after = told[-1]["event"]["seq"]
    after = -1
    while told := await connection.read("whole_notes", scope=scope.key, after=after, limit=PAGE):
        yield [
            KeptNote(
                rows.read_note(row["base"]),
                told_by(row["revisions"]),
                tuple((space, np.frombuffer(vector, "<f4")) for space, vector in row["vectors"] if space in there),
            )
            for row in told
        ]
        after = told[-1]["seq"]
    for decided in (True, False):
        after = -1
        while told := await connection.read("whole_links", scope=scope.key, after=after, limit=PAGE, decided=decided):
            of = [(row["id"], tuple(map(rows.read_link, row["links"]))) for row in told if row["links"]]
            if decided:
                yield [RestoreLinks(owner, links) for owner, links in of]
            else:
                yield [PutMention(link) for _, links in of for link in links]
            after = told[-1]["seq"]
    last = ""
    while told := await connection.read("whole_tombstones", scope=scope.key, after=last, limit=PAGE):
        yield [PutTombstones(tuple(row["identity"] for row in told))]
        last = told[-1]["identity"]
    after = -1
    while told := await connection.read("whole_usages", scope=scope.key, after=after, limit=PAGE):
        yield [PutNoteUse(row["id"], rows.read_usage(row)) for row in told]
        after = told[-1]["seq"]
    states = [state.value for state in JobState]
    jobs = await connection.read("jobs", "scoped", states=states, scope=scope.key)
    yield [PutJob(_at_rest(rows.read_job(row["job"]))) for row in jobs]


def _at_rest(job: Job) -> Job:
    """A job as nobody is at it."""
    if job.state is not JobState.RUNNING:
        return job
    return job.model_copy(update={"state": JobState.QUEUED, "token": None})
