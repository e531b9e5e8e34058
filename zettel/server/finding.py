"""Routes for questions, and for what was of use."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from zettel.errors import InvalidInput
from zettel.scoring.cascade import EFFORTS
from zettel.scoring.cross_encoder import MODEL
from zettel.server import bodies, wire
from zettel.server.asking import Admin, At, Reading, Writing, told

routes = APIRouter(prefix="/v1", tags=["search"])

CROSS_ENCODER = "cross-encoder"
SCORERS = ("fusion", "decoder", CROSS_ENCODER, "llm")
"""That a request may name, beside ``decoder:NAME``: others would have the server read any folder, or fetch a model."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


@routes.post("/search", response_model=wire.HITS.shape)
async def search(body: bodies.Search, at: Reading, request: Request) -> Response:
    """The notes that answer a question, best first, each with its score and why it was found."""
    return told(wire.HITS, await at.memory.search(**await _asked(body, at, request), scope=at.scope))


@routes.post("/search/batch", response_model=wire.HITS_MANY.shape)
async def search_many(body: bodies.SearchMany, at: Reading, request: Request) -> Response:
    """The hits of each question, in order."""
    return told(wire.HITS_MANY, await at.memory.search_many(**await _asked(body, at, request), scope=at.scope))


@routes.post("/context", response_model=wire.CONTEXT.shape)
async def context(body: bodies.Context, at: Reading, request: Request) -> Response:
    """What a search finds, packed for a prompt."""
    asked = await _asked(body, at, request)
    return told(wire.CONTEXT, await at.memory.context(asked.pop("question"), **asked, scope=at.scope))


@routes.post("/answer-context", response_model=wire.GATHERED.shape)
async def answer_context(body: bodies.AnswerContext, at: Reading, request: Request) -> Response:
    """What answers a question that one search does not, searched for in rounds."""
    asked = await _asked(body, at, request)
    return told(wire.GATHERED, await at.memory.answer_context(asked.pop("question"), **asked, scope=at.scope))


@routes.post("/feedback", status_code=204)
async def feedback(body: bodies.Feedback, at: Writing) -> Response:
    """Tell which notes of a search were really of use, and how that for which it was asked ended."""
    await at.memory.feedback(body.search_id, body.used, body.outcome, scope=at.scope)
    return Response(status_code=204)


@routes.get("/searches", response_model=wire.SEARCHES.shape)
async def searches(at: Reading) -> Response:
    """The log of searches, oldest first."""
    return told(wire.SEARCHES, await at.memory.searches(scope=at.scope))


@routes.post("/tune", response_model=wire.TUNED.shape)
async def tune(body: bodies.Tune, at: Admin, request: Request) -> Response:
    """Learn from feedback what is of use, and keep the scorer under a name; search with ``decoder:NAME``."""
    folder = scorers(request, at)
    decoder = None if body.decoder is None else kept(folder, body.decoder)
    if body.scopes is not None:
        at.require_all("to learn of several scopes")
    into = kept(folder, body.into)
    return told(wire.TUNED, await at.memory.tune(into, decoder=decoder, scopes=body.scopes, scope=at.scope))


async def _asked(body: bodies.Body, at: At, request: Request) -> dict[str, Any]:
    asked = body.given()
    if "scorer" in asked:
        asked["scorer"] = await scorer_of(scorers(request, at), asked["scorer"])
    if CROSS_ENCODER in EFFORTS.get(asked.get("effort", ""), ()):
        await _require_model()
    return asked


def scorers(request: Request, at: At) -> Path | None:
    """The folder of the tuned scorers that a key may name: one that is bound has its scope's own."""
    folder: Path | None = request.app.state.scorers
    return folder if folder is None or at.opens_all or at.scope is None else folder / at.scope.key


async def scorer_of(folder: Path | None, name: str) -> str:
    """The scorer that a request may mean by a name. Raises ``InvalidInput`` for one that is not there."""
    kind, sign, rest = name.partition(":")
    if kind == "decoder" and sign:
        home = kept(folder, rest)
        if not home.is_dir():
            raise InvalidInput(f"nothing was tuned here under the name {rest!r}: /v1/tune does that")
        return f"decoder:{home}"
    if name not in SCORERS:
        raise InvalidInput(f"there is no scorer {name!r} here: take one of {', '.join(SCORERS)}, decoder:NAME")
    if name == CROSS_ENCODER:
        await _require_model()
    return name


async def _require_model() -> None:
    """Raise ``InvalidInput`` where the cross-encoder would be fetched, ``MissingExtra`` without its packages."""
    from zettel.embed.transformer import in_cache

    if await to_thread.run_sync(in_cache, MODEL) is None:
        raise InvalidInput(f"the server has no {CROSS_ENCODER}, and fetches none for a request: do without it")


def kept(folder: Path | None, name: str) -> Path:
    """Where a tuned scorer of that name is kept. Raises ``InvalidInput``."""
    if folder is None:
        raise InvalidInput("this server keeps no tuned scorers: start it with --scorers FOLDER")
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"{name!r} is no name of a scorer: up to 64 letters, digits and . _ -")
    return folder / name
