"""Routes for notes: to look at, to change, and to take back."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from zettel.server import bodies, wire
from zettel.server.asking import Admin, Reading, Writing, json_object, told
from zettel.server.bodies import Time

routes = APIRouter(prefix="/v1", tags=["notes"])


@routes.get("/notes", response_model=wire.PAGE.shape)
async def list_(
    at: Reading,
    kinds: Annotated[list[str] | None, Query()] = None,
    tags: Annotated[list[str] | None, Query()] = None,
    session: str | None = None,
    role: str | None = None,
    since: Time | None = None,
    until: Time | None = None,
    filter: Annotated[str | None, Query(description="Metadata values, as a JSON object.")] = None,
    archived: bool = False,
    limit: int = 100,
    cursor: str | None = None,
) -> Response:
    """Notes in the order of arrival, a page at a time."""
    page = await at.memory.list(
        kinds=kinds, tags=tags, session=session, role=role, since=since, until=until,
        filter=None if filter is None else json_object("filter", filter), archived=archived, limit=limit, cursor=cursor,
        scope=at.scope,
    )  # fmt: skip
    return told(wire.PAGE, page)


@routes.get("/notes/{id}", response_model=wire.NOTE_OR_EVENT.shape)
async def get(id: str, at: Reading) -> Response:
    """A note (n_…) or an event (e_…)."""
    return told(wire.NOTE_OR_EVENT, await at.memory.get(id, scope=at.scope))


@routes.patch("/notes/{id}", response_model=wire.NOTE.shape)
async def update(id: str, body: bodies.Update, at: Writing) -> Response:
    """Set fields of a note, as a revision that can be taken back."""
    fields = {name: getattr(body, name) for name in body.model_fields_set}
    return told(wire.NOTE, await at.memory.update(id, **fields, scope=at.scope))


@routes.delete("/notes/{id}", response_model=wire.DELETED.shape)
async def delete(id: str, at: Admin) -> Response:
    """Destroy a note or an event, with everything derived from it; how many notes went."""
    return told(wire.DELETED, await at.memory.delete(id, scope=at.scope))


@routes.get("/notes/{id}/history", response_model=wire.HISTORY.shape)
async def history(id: str, at: Reading) -> Response:
    """Every version of a note: what changed, why, and whether it still counts."""
    return told(wire.HISTORY, await at.memory.history(id, scope=at.scope))


@routes.get("/notes/{id}/links", response_model=wire.LINKS.shape)
async def links(id: str, at: Reading) -> Response:
    """The links that start or end at a note."""
    return told(wire.LINKS, await at.memory.links(id, scope=at.scope))


@routes.get("/notes/{id}/neighbors", response_model=wire.NEIGHBORS.shape)
async def neighbors(id: str, at: Reading, hops: int = 2) -> Response:
    """Notes within so many links of a note, the nearest first."""
    return told(wire.NEIGHBORS, await at.memory.neighbors(id, hops, scope=at.scope))


@routes.get("/notes/{id}/terms", response_model=wire.TERMS.shape)
async def terms(id: str, at: Reading) -> Response:
    """The Terms of a note, with how many notes hold each."""
    return told(wire.TERMS, await at.memory.terms(id, scope=at.scope))


@routes.post("/notes/{id}/revert", response_model=wire.NOTE.shape)
async def revert(id: str, body: bodies.Revert, at: Writing) -> Response:
    """Bring a note back to a version it had."""
    return told(wire.NOTE, await at.memory.revert(id, body.version, scope=at.scope))


@routes.post("/notes/{id}/take-back", response_model=wire.NOTES.shape)
async def take_back(id: str, at: Writing) -> Response:
    """Take back all that one note did to others; the notes that this changed."""
    return told(wire.NOTES, await at.memory.take_back(id, scope=at.scope))


@routes.post("/notes/{id}/archive", response_model=wire.NOTE.shape)
async def archive(id: str, at: Writing) -> Response:
    """Put a note away."""
    return told(wire.NOTE, await at.memory.archive(id, scope=at.scope))


@routes.post("/notes/{id}/unarchive", response_model=wire.NOTE.shape)
async def unarchive(id: str, at: Writing) -> Response:
    """Bring a note back that was put away or had faded."""
    return told(wire.NOTE, await at.memory.unarchive(id, scope=at.scope))


@routes.post("/notes/{id}/quarantine", response_model=wire.NOTES.shape)
async def quarantine(id: str, at: Writing, body: bodies.Quarantine | None = None) -> Response:
    """Take a note out of play, and take back all that rests on it; the notes that this changed."""
    reason = "" if body is None else body.reason
    return told(wire.NOTES, await at.memory.quarantine(id, reason, scope=at.scope))


@routes.post("/notes/{id}/release", response_model=wire.NOTES.shape)
async def release(id: str, at: Writing) -> Response:
    """Bring a note back from quarantine; the notes that this changed."""
    return told(wire.NOTES, await at.memory.release(id, scope=at.scope))


@routes.post("/links", response_model=wire.LINK.shape)
async def link(body: bodies.NewLink, at: Writing) -> Response:
    """Link two notes by hand."""
    made = await at.memory.link(body.source, body.target, body.type, reason=body.reason, scope=at.scope)
    return told(wire.LINK, made)


@routes.get("/graph", response_model=wire.GRAPH.shape)
async def graph(
    at: Reading, around: str | None = None, hops: int = 2, limit: int = 2000, cursor: str | None = None
) -> Response:
    """Notes with the links between them: those around a note, or all, a page at a time."""
    found = await at.memory.graph(around, hops, limit=limit, cursor=cursor, scope=at.scope)
    return told(wire.GRAPH, found)


@routes.get("/conflicts", response_model=wire.CONFLICTS.shape)
async def conflicts(at: Reading) -> Response:
    """Pairs of notes that say otherwise of the same."""
    return told(wire.CONFLICTS, await at.memory.conflicts(scope=at.scope))
