"""Routes for jobs, and for what looks after the memory."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from zettel.server import bodies, wire
from zettel.server.asking import Admin, Listing, Reading, Writing, told
from zettel.server.finding import scorer_of, scorers

routes = APIRouter(prefix="/v1", tags=["upkeep"])

LONGEST_WAIT = 600.0
"""Seconds that a request may wait for jobs: it takes one of the places that there are."""


@routes.post("/evolve", response_model=wire.EVOLVED.shape, responses={202: {"model": wire.QUEUED.shape}})
async def evolve(at: Writing, body: bodies.Evolve | None = None) -> Response:
    """Have the notes of a scope learn from each other; with ``wait: false`` it is queued for later (202)."""
    body = body or bodies.Evolve()
    if body.wait:
        return told(wire.EVOLVED, await at.memory.evolve(_wait(body.timeout), scope=at.scope))
    answer = told(wire.QUEUED, await at.memory.evolve_later(scope=at.scope))
    answer.status_code = 202
    return answer


@routes.post("/flush", status_code=204)
async def flush(at: Writing, body: bodies.Flush | None = None) -> Response:
    """Wait for all pending jobs of the scope, or of all scopes if the key opens all and none is named.

    It waits ten minutes at most, and tells then that they are not done (504).
    """
    await at.memory.flush(_wait(None if body is None else body.timeout), scope=at.scope)
    return Response(status_code=204)


@routes.get("/jobs", response_model=wire.JOBS.shape)
async def jobs(at: Reading) -> Response:
    """Jobs that are not done: queued, running, or failed with their error."""
    return told(wire.JOBS, await at.memory.jobs(scope=at.scope))


@routes.post("/jobs/retry", response_model=wire.RETRIED.shape)
async def retry_jobs(at: Writing, body: bodies.RetryJobs | None = None) -> Response:
    """Queue failed jobs again, or only one; how many."""
    return told(wire.RETRIED, await at.memory.retry_jobs(None if body is None else body.id, scope=at.scope))


@routes.post("/jobs/{id}/cancel", response_model=wire.JOB.shape)
async def cancel_job(id: str, at: Admin) -> Response:
    """Take a job that waits or failed off the queue, for good."""
    return told(wire.JOB, await at.memory.cancel_job(id, scope=at.scope))


@routes.get("/stats", response_model=wire.STATS.shape)
async def stats(at: Reading) -> Response:
    """Counts of the scope, or of all scopes if the key opens all and none is named."""
    found = await at.memory.stats(scope=at.scope)
    if not at.opens_all:
        found.pop("budget", None)  # it is what the whole memory has left
    return told(wire.STATS, found)


@routes.get("/scopes", response_model=wire.SCOPES.shape)
async def scopes(at: Listing) -> Response:
    """The scopes that hold something, of those that the key opens."""
    found = await at.memory.scopes()
    opened = None if at.key is None else at.key.scopes
    return told(wire.SCOPES, [scope for scope in found if opened is None or scope in opened])


@routes.delete("/scope", response_model=wire.DELETED.shape)
async def delete_scope(at: Admin) -> Response:
    """Destroy all of a scope; how many notes went."""
    return told(wire.DELETED, await at.memory.delete_scope(scope=at.scope))


@routes.post("/reembed", response_model=wire.EMBEDDED.shape)
async def reembed(at: Admin) -> Response:
    """Embed every note of the store with the server's embedder and change over to it; how many."""
    at.require_all("to embed the whole store anew")
    return told(wire.EMBEDDED, await at.memory.reembed())


@routes.post("/slots", response_model=wire.WRITTEN.shape)
async def write_slots(at: Writing, request: Request, body: bodies.WriteSlots | None = None) -> Response:
    """Write what is not there yet to the scope's slots; how many notes stand in them."""
    body = body or bodies.WriteSlots()
    scorer = None if body.scorer is None else await scorer_of(scorers(request, at), body.scorer)
    return told(wire.WRITTEN, await at.memory.write_slots(anew=body.anew, scorer=scorer, scope=at.scope))


@routes.post("/check", response_model=wire.PROBLEMS.shape)
async def check(at: Admin, body: bodies.Check | None = None) -> Response:
    """What is wrong in the store, one line each; with ``repair`` what is derived is made anew."""
    at.require_all("to look through the whole store")
    return told(wire.PROBLEMS, await at.memory.check(body is not None and body.repair))


def _wait(seconds: float | None) -> float:
    return LONGEST_WAIT if seconds is None else min(seconds, LONGEST_WAIT)
