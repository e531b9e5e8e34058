"""Routes that add, list and delete events."""

from __future__ import annotations

from fastapi import APIRouter, Response

from zettel.core.arguments import require_one
from zettel.remote import wire
from zettel.server import bodies
from zettel.server.access import AdminAccess, ReadAccess, WriteAccess, respond

routes = APIRouter(prefix="/v1", tags=["events"])


@routes.post("/events", response_model=wire.ADDED.shape)
async def add(event: bodies.Add, access: WriteAccess) -> Response:
    """Add one event; it is durable and searchable when the answer arrives."""
    fields = event.model_dump(exclude_unset=True)
    if "external_id" in fields:
        fields["id"] = fields.pop("external_id")
    return respond(wire.ADDED, await access.memory.add(**fields, scope=access.scope))


@routes.post("/events/batch", response_model=wire.ADDED_MANY.shape)
async def add_many(body: bodies.AddMany, access: WriteAccess) -> Response:
    """Add events in one transaction and return the ids of their head notes, in order."""
    ids = await access.memory.add_many(body.events, on_conflict=body.on_conflict, wait=body.wait, scope=access.scope)
    return respond(wire.ADDED_MANY, ids)


@routes.post("/events/report", response_model=wire.REMEMBERED.shape)
async def add_many_report(body: bodies.AddManyReport, access: WriteAccess) -> Response:
    """Add events in one transaction and report the note id and status of each."""
    outcomes = await access.memory.add_many_report(body.events, on_conflict=body.on_conflict, scope=access.scope)
    return respond(wire.REMEMBERED, outcomes)


@routes.get("/events", response_model=wire.EVENTS.shape)
async def events(access: ReadAccess, session: str, source: str | None = None, limit: int | None = None) -> Response:
    """Return the events of a session, verbatim and in the order of arrival; with ``limit`` only the last ones."""
    records = await access.memory.events(session, source=source, limit=limit, scope=access.scope)
    return respond(wire.EVENTS, records)


@routes.delete("/events", response_model=wire.DELETED.shape)
async def delete_events(access: AdminAccess, source: str | None = None, session: str | None = None) -> Response:
    """Destroy all events of a source file or a session, with everything derived from them."""
    require_one("what to delete: a source or a session", source, session)
    return respond(wire.DELETED, await access.memory.delete(source=source, session=session, scope=access.scope))
