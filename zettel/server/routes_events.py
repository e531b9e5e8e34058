"""Routes that add and delete events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import APIRouter, Response

from zettel.core.arguments import require_one
from zettel.model import Event, OnConflict, Remembered
from zettel.remote import wire
from zettel.remote.routes import DELETE_EVENTS
from zettel.server import bodies
from zettel.server.access import Access, RequestAccess, respond
from zettel.server.endpoints import endpoint, handler

routes = APIRouter()


@endpoint(routes, "add")
async def add(event: bodies.Add, access: RequestAccess) -> Response:
    fields = event.model_dump(exclude_unset=True)
    if "external_id" in fields:
        fields["id"] = fields.pop("external_id")
    _require_revisable(access, [event], event.on_conflict, event.ttl)
    return respond(wire.ADDED, await access.memory.add(**fields, scope=access.scope))


@handler(routes, "add_many")
async def add_many(
    access: Access, events: Sequence[Event], on_conflict: OnConflict = "error", **options: Any
) -> list[str]:
    _require_revisable(access, events, on_conflict)
    return await access.memory.add_many(events, on_conflict=on_conflict, **options, scope=access.scope)


@handler(routes, "add_many_report")
async def add_many_report(
    access: Access, events: Sequence[Event], on_conflict: OnConflict = "error"
) -> list[Remembered]:
    _require_revisable(access, events, on_conflict)
    return await access.memory.add_many_report(events, on_conflict=on_conflict, scope=access.scope)


def _require_revisable(
    access: Access, events: Iterable[Event], on_conflict: OnConflict, ttl: float | None = None
) -> None:
    """Raise ``PermissionDenied`` if the key may not let stored events expire, which would delete them."""
    if on_conflict == "revise" and (ttl is not None or any(event.expires_at is not None for event in events)):
        access.require_admin("revising events that expire")


@routes.delete(DELETE_EVENTS.path, response_model=wire.DELETED.shape, tags=[DELETE_EVENTS.section])
async def delete_events(access: RequestAccess, source: str | None = None, session: str | None = None) -> Response:
    """Destroy all events of a source file or a session, with everything derived from them."""
    require_one("what to delete: a source or a session", source, session)
    return respond(wire.DELETED, await access.memory.delete(source=source, session=session, scope=access.scope))
