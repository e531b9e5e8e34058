"""Routes that add and delete events."""

from __future__ import annotations

from fastapi import APIRouter, Response

from zettel.core.arguments import require_one
from zettel.remote import wire
from zettel.remote.routes import DELETE_EVENTS
from zettel.server import bodies
from zettel.server.access import RequestAccess, respond
from zettel.server.endpoints import endpoint

routes = APIRouter()


@endpoint(routes, "add")
async def add(event: bodies.Add, access: RequestAccess) -> Response:
    fields = event.model_dump(exclude_unset=True)
    if "external_id" in fields:
        fields["id"] = fields.pop("external_id")
    return respond(wire.ADDED, await access.memory.add(**fields, scope=access.scope))


@routes.delete(DELETE_EVENTS.path, response_model=wire.DELETED.shape, tags=[DELETE_EVENTS.section])
async def delete_events(access: RequestAccess, source: str | None = None, session: str | None = None) -> Response:
    """Destroy all events of a source file or a session, with everything derived from them."""
    require_one("what to delete: a source or a session", source, session)
    return respond(wire.DELETED, await access.memory.delete(source=source, session=session, scope=access.scope))
