"""Routes that change and delete notes."""

from __future__ import annotations

from fastapi import APIRouter, Response

from zettel.remote import wire
from zettel.remote.routes import QUARANTINE_PRINCIPAL, RELEASE_PRINCIPAL
from zettel.server import bodies
from zettel.server.access import RequestAccess, respond
from zettel.server.endpoints import endpoint
from zettel.server.path_ids import PathId

routes = APIRouter()


@endpoint(routes, "update")
async def update(id: PathId, body: bodies.Update, access: RequestAccess) -> Response:
    fields = {name: getattr(body, name) for name in body.model_fields_set}
    if fields.get("expires_at") is not None:
        access.require_admin("letting a stored note expire")
    return respond(wire.NOTE, await access.memory.update(id, **fields, scope=access.scope))


@endpoint(routes, "delete")
async def delete(id: PathId, access: RequestAccess) -> Response:
    return respond(wire.DELETED, await access.memory.delete(id, scope=access.scope))


@routes.post(QUARANTINE_PRINCIPAL.path, response_model=wire.NOTES.shape, tags=[QUARANTINE_PRINCIPAL.section])
async def quarantine_principal(body: bodies.QuarantinePrincipal, access: RequestAccess) -> Response:
    """Quarantine all events of a writer, and revert all its changes of other notes."""
    changed = await access.memory.quarantine(None, body.reason, principal=body.principal, scope=access.scope)
    return respond(wire.NOTES, changed)


@routes.post(RELEASE_PRINCIPAL.path, response_model=wire.NOTES.shape, tags=[RELEASE_PRINCIPAL.section])
async def release_principal(body: bodies.ReleasePrincipal, access: RequestAccess) -> Response:
    """End the quarantine of a writer."""
    return respond(wire.NOTES, await access.memory.release(principal=body.principal, scope=access.scope))
