"""Routes that search, and that learn from feedback on searches."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from zettel.errors import InvalidInput
from zettel.remote import wire
from zettel.scoring import EFFORTS
from zettel.scoring.cross_encoder import MODEL
from zettel.server import bodies
from zettel.server.access import Access, AdminAccess, ReadAccess, WriteAccess, respond

routes = APIRouter(prefix="/v1", tags=["search"])

CROSS_ENCODER = "cross-encoder"
SCORERS = ("fusion", "decoder", CROSS_ENCODER, "llm")
"""Scorers that a request may name, besides ``decoder:NAME``. Others could read any folder or download a model."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


@routes.post("/search", response_model=wire.HITS.shape)
async def search(body: bodies.Search, access: ReadAccess, request: Request) -> Response:
    """Return the notes that answer a question, best first, each with its score and explanation."""
    arguments = await _arguments_of(body, access, request)
    return respond(wire.HITS, await access.memory.search(**arguments, scope=access.scope))


@routes.post("/search/batch", response_model=wire.HITS_MANY.shape)
async def search_many(body: bodies.SearchMany, access: ReadAccess, request: Request) -> Response:
    """Return the hits of each question, in order."""
    arguments = await _arguments_of(body, access, request)
    return respond(wire.HITS_MANY, await access.memory.search_many(**arguments, scope=access.scope))


@routes.post("/context", response_model=wire.CONTEXT.shape)
async def context(body: bodies.Context, access: ReadAccess, request: Request) -> Response:
    """Return the hits of a search, packed for a prompt."""
    arguments = await _arguments_of(body, access, request)
    return respond(wire.CONTEXT, await access.memory.context(**arguments, scope=access.scope))


@routes.post("/answer-context", response_model=wire.GATHERED.shape)
async def answer_context(body: bodies.AnswerContext, access: ReadAccess, request: Request) -> Response:
    """Collect evidence for a question over several searches."""
    arguments = await _arguments_of(body, access, request)
    return respond(wire.GATHERED, await access.memory.answer_context(**arguments, scope=access.scope))


@routes.post("/feedback", status_code=204)
async def feedback(body: bodies.Feedback, access: WriteAccess) -> Response:
    """Report which hits of a search were useful, and whether the task succeeded."""
    await access.memory.feedback(body.search_id, body.used, body.outcome, scope=access.scope)
    return Response(status_code=204)


@routes.get("/searches", response_model=wire.SEARCHES.shape)
async def searches(access: ReadAccess) -> Response:
    """Return the log of searches, oldest first."""
    return respond(wire.SEARCHES, await access.memory.searches(scope=access.scope))


@routes.post("/tune", response_model=wire.TUNED.shape)
async def tune(body: bodies.Tune, access: AdminAccess, request: Request) -> Response:
    """Train a scorer on the logged feedback and store it under a name; search with ``decoder:NAME``."""
    folder = scorers(request, access)
    decoder = None if body.decoder is None else tuned_folder(folder, body.decoder)
    if body.scopes is not None:
        access.require_all("training on several scopes")
    into = tuned_folder(folder, body.into)
    return respond(wire.TUNED, await access.memory.tune(into, decoder=decoder, scopes=body.scopes, scope=access.scope))


async def _arguments_of(body: bodies.Body, access: Access, request: Request) -> dict[str, Any]:
    arguments = body.given()
    if "scorer" in arguments:
        arguments["scorer"] = await scorer_of(scorers(request, access), arguments["scorer"])
    if CROSS_ENCODER in EFFORTS.get(arguments.get("effort", ""), ()):
        await _require_model()
    return arguments


def scorers(request: Request, access: Access) -> Path | None:
    """Return the folder of tuned scorers that a key may name. A key bound to a scope has its own folder."""
    folder: Path | None = request.app.state.scorers
    return folder if folder is None or access.opens_all or access.scope is None else folder / access.scope.key


async def scorer_of(folder: Path | None, name: str) -> str:
    """Return the scorer with this name. Raises ``InvalidInput`` for an unknown one."""
    kind, sign, rest = name.partition(":")
    if kind == "decoder" and sign:
        home = tuned_folder(folder, rest)
        if not home.is_dir():
            raise InvalidInput(f"unknown tuned scorer {rest!r}: create it with /v1/tune")
        return f"decoder:{home}"
    if name not in SCORERS:
        raise InvalidInput(f"unknown scorer {name!r}: use one of {', '.join(SCORERS)}, decoder:NAME")
    if name == CROSS_ENCODER:
        await _require_model()
    return name


async def _require_model() -> None:
    """Raise ``InvalidInput`` if the cross-encoder is not downloaded, ``MissingExtra`` without its packages."""
    from zettel.llm.model_hub import cached_folder

    if await to_thread.run_sync(cached_folder, MODEL) is None:
        raise InvalidInput(f"the server has no {CROSS_ENCODER} and does not download one: use another scorer")


def tuned_folder(folder: Path | None, name: str) -> Path:
    """Return the folder of a tuned scorer. Raises ``InvalidInput``."""
    if folder is None:
        raise InvalidInput("this server has no folder of tuned scorers: start it with --scorers FOLDER")
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"{name!r} is not a valid scorer name: use up to 64 letters, digits and . _ -")
    return folder / name
