"""Routes that read and change notes and links."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from zettel.model import Role
from zettel.remote import wire
from zettel.server import bodies
from zettel.server.access import AdminAccess, ReadAccess, WriteAccess, json_object, respond
from zettel.server.bodies import Time
from zettel.server.path_ids import PathId

routes = APIRouter(prefix="/v1", tags=["notes"])


@routes.get("/notes", response_model=wire.PAGE.shape)
async def list_(
    access: ReadAccess,
    kinds: Annotated[list[str] | None, Query()] = None,
    tags: Annotated[list[str] | None, Query()] = None,
    session: str | None = None,
    speaker: str | None = None,
    role: Role | None = None,
    since: Time | None = None,
    until: Time | None = None,
    filter: Annotated[str | None, Query(description="Metadata values, as a JSON object.")] = None,
    archived: bool = False,
    limit: int = 100,
    cursor: str | None = None,
) -> Response:
    """Return a page of notes in the order of arrival."""
    page = await access.memory.list(
        kinds=kinds, tags=tags, session=session, speaker=speaker, role=role, since=since, until=until,
        filter=None if filter is None else json_object("filter", filter), archived=archived, limit=limit, cursor=cursor,
        scope=access.scope,
    )  # fmt: skip
    return respond(wire.PAGE, page)


@routes.get("/notes/{id}", response_model=wire.NOTE_OR_EVENT.shape)
async def get(id: PathId, access: ReadAccess) -> Response:
    """Return a note (n_…) or an event (e_…)."""
    return respond(wire.NOTE_OR_EVENT, await access.memory.get(id, scope=access.scope))


@routes.patch("/notes/{id}", response_model=wire.NOTE.shape)
async def update(id: PathId, body: bodies.Update, access: WriteAccess) -> Response:
    """Set fields of a note as a revision that can be reverted."""
    fields = {name: getattr(body, name) for name in body.model_fields_set}
    return respond(wire.NOTE, await access.memory.update(id, **fields, scope=access.scope))


@routes.delete("/notes/{id}", response_model=wire.DELETED.shape)
async def delete(id: PathId, access: AdminAccess) -> Response:
    """Destroy a note or an event, with everything derived from it."""
    return respond(wire.DELETED, await access.memory.delete(id, scope=access.scope))


@routes.get("/notes/{id}/history", response_model=wire.HISTORY.shape)
async def history(id: PathId, access: ReadAccess) -> Response:
    """Return every revision of a note: the change, its cause, and whether it is live."""
    return respond(wire.HISTORY, await access.memory.history(id, scope=access.scope))


@routes.get("/notes/{id}/links", response_model=wire.LINKS.shape)
async def links(id: PathId, access: ReadAccess) -> Response:
    """Return the links that start or end at a note."""
    return respond(wire.LINKS, await access.memory.links(id, scope=access.scope))


@routes.get("/notes/{id}/neighbors", response_model=wire.NEIGHBORS.shape)
async def neighbors(id: PathId, access: ReadAccess, hops: int = 2) -> Response:
    """Return the notes within ``hops`` links of a note, nearest first."""
    return respond(wire.NEIGHBORS, await access.memory.neighbors(id, hops, scope=access.scope))


@routes.get("/notes/{id}/terms", response_model=wire.TERMS.shape)
async def terms(id: PathId, access: ReadAccess) -> Response:
    """Return the terms of a note, each with the number of notes that contain it."""
    return respond(wire.TERMS, await access.memory.terms(id, scope=access.scope))


@routes.post("/notes/{id}/revert", response_model=wire.NOTE.shape)
async def revert(id: PathId, body: bodies.Revert, access: WriteAccess) -> Response:
    """Restore an earlier version of a note."""
    return respond(wire.NOTE, await access.memory.revert(id, body.version, scope=access.scope))


@routes.post("/notes/{id}/revert-effects", response_model=wire.NOTES.shape)
async def revert_effects(id: PathId, access: WriteAccess) -> Response:
    """Revert all changes that one note caused in others, and return the changed notes."""
    return respond(wire.NOTES, await access.memory.revert_effects(id, scope=access.scope))


@routes.post("/notes/{id}/archive", response_model=wire.NOTE.shape)
async def archive(id: PathId, access: WriteAccess) -> Response:
    """Archive a note."""
    return respond(wire.NOTE, await access.memory.archive(id, scope=access.scope))


@routes.post("/notes/{id}/unarchive", response_model=wire.NOTE.shape)
async def unarchive(id: PathId, access: WriteAccess) -> Response:
    """Restore a note that was archived or has decayed."""
    return respond(wire.NOTE, await access.memory.unarchive(id, scope=access.scope))


@routes.post("/notes/{id}/quarantine", response_model=wire.NOTES.shape)
async def quarantine(id: PathId, access: WriteAccess, body: bodies.Quarantine | None = None) -> Response:
    """Quarantine a note, revert everything derived from it, and return the changed notes."""
    reason = "" if body is None else body.reason
    return respond(wire.NOTES, await access.memory.quarantine(id, reason, scope=access.scope))


@routes.post("/notes/{id}/release", response_model=wire.NOTES.shape)
async def release(id: PathId, access: WriteAccess) -> Response:
    """Release a note from quarantine and return the changed notes."""
    return respond(wire.NOTES, await access.memory.release(id, scope=access.scope))


@routes.post("/links", response_model=wire.LINK.shape)
async def link(body: bodies.NewLink, access: WriteAccess) -> Response:
    """Link two notes."""
    made = await access.memory.link(body.source, body.target, body.type, reason=body.reason, scope=access.scope)
    return respond(wire.LINK, made)


@routes.get("/graph", response_model=wire.GRAPH.shape)
async def graph(
    access: ReadAccess, around: str | None = None, hops: int = 2, limit: int = 2000, cursor: str | None = None
) -> Response:
    """Return notes and the links between them: around a note, or all of them by pages."""
    part = await access.memory.graph(around, hops, limit=limit, cursor=cursor, scope=access.scope)
    return respond(wire.GRAPH, part)


@routes.get("/conflicts", response_model=wire.CONFLICTS.shape)
async def conflicts(access: ReadAccess) -> Response:
    """Return pairs of notes that contradict each other."""
    return respond(wire.CONFLICTS, await access.memory.conflicts(scope=access.scope))
