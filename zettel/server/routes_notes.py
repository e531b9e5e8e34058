"""Routes that change and delete notes."""

from __future__ import annotations

from fastapi import APIRouter, Response

from zettel.remote import wire
from zettel.server import bodies
from zettel.server.access import RequestAccess, respond
from zettel.server.endpoints import endpoint
from zettel.server.path_ids import PathId

routes = APIRouter()


@endpoint(routes, "update")
async def update(id: PathId, body: bodies.Update, access: RequestAccess) -> Response:
    fields = {name: getattr(body, name) for name in body.model_fields_set}
    return respond(wire.NOTE, await access.memory.update(id, **fields, scope=access.scope))


@endpoint(routes, "delete")
async def delete(id: PathId, access: RequestAccess) -> Response:
    return respond(wire.DELETED, await access.memory.delete(id, scope=access.scope))
