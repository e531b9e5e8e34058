"""Routes for what happened: remembered, and forgotten again."""

from __future__ import annotations

from fastapi import APIRouter, Response

from zettel.arguments import require_one
from zettel.server import bodies, wire
from zettel.server.asking import Admin, Reading, Writing, told

routes = APIRouter(prefix="/v1", tags=["events"])


@routes.post("/events", response_model=wire.ADDED.shape)
async def add(event: bodies.Add, at: Writing) -> Response:
    """Remember one event; it is durable and searchable when the answer comes."""
    fields = event.model_dump(exclude_unset=True)
    return told(wire.ADDED, await at.memory.add(**fields, scope=at.scope))


@routes.post("/events/batch", response_model=wire.ADDED_MANY.shape)
async def add_many(body: bodies.AddMany, at: Writing) -> Response:
    """Remember events in one transaction; the ids of their head notes, in order."""
    ids = await at.memory.add_many(body.events, on_conflict=body.on_conflict, wait=body.wait, scope=at.scope)
    return told(wire.ADDED_MANY, ids)


@routes.post("/remember", response_model=wire.REMEMBERED.shape)
async def remember(body: bodies.Remember, at: Writing) -> Response:
    """Remember events in one transaction, and tell of each what became of it."""
    done = await at.memory.remember(body.events, on_conflict=body.on_conflict, scope=at.scope)
    return told(wire.REMEMBERED, done)


@routes.get("/events", response_model=wire.EVENTS.shape)
async def events(at: Reading, session: str, source: str | None = None, limit: int | None = None) -> Response:
    """What happened in a session, verbatim, in the order of arrival; of much the last ``limit``."""
    found = await at.memory.events(session, source=source, limit=limit, scope=at.scope)
    return told(wire.EVENTS, found)


@routes.delete("/events", response_model=wire.DELETED.shape)
async def delete_all_of(at: Admin, source: str | None = None, session: str | None = None) -> Response:
    """Destroy all of a source file or of a session, with everything derived from it; how many notes went."""
    require_one("what to delete: a source or a session", source, session)
    return told(wire.DELETED, await at.memory.delete(source=source, session=session, scope=at.scope))
