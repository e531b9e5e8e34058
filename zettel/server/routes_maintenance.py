"""Routes for jobs, statistics, checks and scopes."""

from __future__ import annotations

from fastapi import APIRouter, Response

from zettel.remote import wire
from zettel.server import bodies
from zettel.server.access import AdminAccess, ListAccess, ReadAccess, WriteAccess, respond
from zettel.server.path_ids import PathId

routes = APIRouter(prefix="/v1", tags=["upkeep"])

LONGEST_WAIT = 600.0
"""Seconds that a request may wait for jobs, because it uses one of the limited slots."""


@routes.post("/evolve", response_model=wire.EVOLVED.shape, responses={202: {"model": wire.QUEUED.shape}})
async def evolve(access: WriteAccess, body: bodies.Evolve | None = None) -> Response:
    """Let the notes of a scope improve each other; with ``wait: false`` it is queued (202)."""
    body = body or bodies.Evolve()
    if body.wait:
        return respond(wire.EVOLVED, await access.memory.evolve(_wait(body.timeout), scope=access.scope))
    answer = respond(wire.QUEUED, await access.memory.evolve_later(scope=access.scope))
    answer.status_code = 202
    return answer


@routes.post("/flush", status_code=204)
async def flush(access: WriteAccess, body: bodies.Flush | None = None) -> Response:
    """Wait for all pending jobs of the scope, or of all scopes if the key opens all and none is named.

    After ten minutes the answer is 504.
    """
    await access.memory.flush(_wait(None if body is None else body.timeout), scope=access.scope)
    return Response(status_code=204)


@routes.get("/jobs", response_model=wire.JOBS.shape)
async def jobs(access: ReadAccess) -> Response:
    """Return unfinished jobs: queued, running, or failed with their error."""
    return respond(wire.JOBS, await access.memory.jobs(scope=access.scope))


@routes.post("/jobs/retry", response_model=wire.RETRIED.shape)
async def retry_jobs(access: WriteAccess, body: bodies.RetryJobs | None = None) -> Response:
    """Queue all failed jobs again, or one, and return their number."""
    return respond(wire.RETRIED, await access.memory.retry_jobs(None if body is None else body.id, scope=access.scope))


@routes.post("/jobs/{id}/cancel", response_model=wire.JOB.shape)
async def cancel_job(id: PathId, access: AdminAccess) -> Response:
    """Remove a queued or failed job from the queue."""
    return respond(wire.JOB, await access.memory.cancel_job(id, scope=access.scope))


@routes.get("/stats", response_model=wire.STATS.shape)
async def stats(access: ReadAccess) -> Response:
    """Return the counts of the scope, or of all scopes if the key opens all and none is named."""
    counts = await access.memory.stats(scope=access.scope)
    if not access.opens_all:
        counts.pop("budget", None)  # the budget belongs to the whole memory
    return respond(wire.STATS, counts)


@routes.get("/scopes", response_model=wire.SCOPES.shape)
async def scopes(access: ListAccess) -> Response:
    """Return the scopes that contain something and that the key opens."""
    existing = await access.memory.scopes()
    opened = None if access.key is None else access.key.scopes
    return respond(wire.SCOPES, [scope for scope in existing if opened is None or scope in opened])


@routes.delete("/scope", response_model=wire.DELETED.shape)
async def delete_scope(access: AdminAccess) -> Response:
    """Destroy a whole scope and return the number of deleted notes."""
    return respond(wire.DELETED, await access.memory.delete_scope(scope=access.scope))


@routes.post("/reembed", response_model=wire.EMBEDDED.shape)
async def reembed(access: AdminAccess) -> Response:
    """Embed every note of the store with the server's embedder and switch to it."""
    access.require_all("embedding the whole store again")
    return respond(wire.EMBEDDED, await access.memory.reembed())


@routes.post("/check", response_model=wire.PROBLEMS.shape)
async def check(access: AdminAccess, body: bodies.Check | None = None) -> Response:
    """Return the problems of the store, one line each; ``repair`` rebuilds derived data."""
    access.require_all("checking the whole store")
    return respond(wire.PROBLEMS, await access.memory.check(body is not None and body.repair))


def _wait(seconds: float | None) -> float:
    return LONGEST_WAIT if seconds is None else min(seconds, LONGEST_WAIT)
