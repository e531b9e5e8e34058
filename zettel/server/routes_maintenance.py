"""Routes whose answer depends on the key, and routes that wait for jobs."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from zettel.core.scope_patterns import is_in
from zettel.remote import wire
from zettel.remote.routes import KEY_RIGHT
from zettel.server import bodies
from zettel.server.access import Access, ListAccess, RequestAccess, respond
from zettel.server.endpoints import endpoint, handler

routes = APIRouter()

LONGEST_WAIT = 600.0
"""Seconds that a request may wait for jobs, because it uses one of the limited slots."""


@endpoint(routes, "evolve", responses={202: {"model": wire.QUEUED.shape}})
async def evolve(access: RequestAccess, body: bodies.Evolve | None = None) -> Response:
    """With ``wait: false`` it is queued (202)."""
    body = body or bodies.Evolve()
    if body.wait:
        return respond(wire.EVOLVED, await access.memory.evolve(_wait(body.timeout), scope=access.scope))
    answer = respond(wire.QUEUED, await access.memory.evolve_later(scope=access.scope))
    answer.status_code = 202
    return answer


@handler(routes, "flush")
async def flush(access: Access, timeout: float | None = None) -> None:
    """It concerns all scopes if the key opens all and none is named. After ten minutes the answer is 504."""
    await access.memory.flush(_wait(timeout), scope=access.scope)


@handler(routes, "stats")
async def stats(access: Access) -> dict[str, Any]:
    """It concerns all scopes if the key opens all and none is named."""
    counts = await access.memory.stats(scope=access.scope)
    if not access.opens_all:
        counts.pop("budget", None)  # the budget belongs to the whole memory
    return counts


@endpoint(routes, "scopes")
async def scopes(access: ListAccess) -> Response:
    """A key that is bound to scopes lists only these."""
    existing = await access.memory.scopes()
    key = access.key
    opened = None if key is None or key.scopes is None else (*key.scopes, *key.reads)
    return respond(wire.SCOPES, [each for each in existing if opened is None or is_in(each, opened)])


@routes.get(KEY_RIGHT.path, response_model=wire.RIGHT.shape, tags=[KEY_RIGHT.section])
async def key_right(access: RequestAccess) -> Response:
    """Return the right of the key in this scope: ``read``, ``write`` or ``admin``."""
    return respond(wire.RIGHT, access.right)


@handler(routes, "reembed")
async def reembed(access: Access) -> int:
    access.require_all("embedding the whole store again")
    return await access.memory.reembed()


@handler(routes, "check")
async def check(access: Access, repair: bool = False) -> list[str]:
    access.require_all("checking the whole store")
    return await access.memory.check(repair)


def _wait(seconds: float | None) -> float:
    return LONGEST_WAIT if seconds is None else min(seconds, LONGEST_WAIT)
