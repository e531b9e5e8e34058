"""Routes that search, and that train scorers. They resolve the scorers that a client names."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from anyio import to_thread
from fastapi import APIRouter

from zettel.core.pacing import paced
from zettel.errors import InvalidInput
from zettel.model import Hit, Scope, Tuned
from zettel.scoring.cross_encoder import MODEL
from zettel.server.access import Access
from zettel.server.endpoints import handler

routes = APIRouter()

PIECE = 2
"""Questions that are answered at the same time; more would only delay other requests."""
CROSS_ENCODER = "cross-encoder"
SCORERS = ("fusion", "decoder", CROSS_ENCODER, "llm")
"""Scorers that a request may name, besides ``decoder:NAME``. Others could read any folder or download a model."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


def _searching(method: str) -> Callable[..., Awaitable[Any]]:
    """Return a handler that resolves the scorer, then calls a method of the memory."""

    async def search(access: Access, scorer: str | None = None, **arguments: Any) -> Any:
        resolved = await scorer_of(scorers(access), scorer)
        access.require_readable(arguments.get("scopes") or ())
        return await getattr(access.memory, method)(**arguments, scorer=resolved, scope=access.scope)

    return search


for _method in ("search", "context", "answer_context"):
    handler(routes, _method)(_searching(_method))


@handler(routes, "search_many")
async def search_many(
    access: Access, questions: list[str], scorer: str | None = None, **arguments: Any
) -> list[list[Hit]]:
    """At most 50 questions in one request."""
    resolved = await scorer_of(scorers(access), scorer)
    access.require_readable(arguments.get("scopes") or ())
    hits: list[list[Hit]] = []
    async for start in paced(range(0, len(questions), PIECE)):
        part = questions[start : start + PIECE]
        hits += await access.memory.search_many(part, **arguments, scorer=resolved, scope=access.scope)
    return hits


@handler(routes, "tune")
async def tune(access: Access, into: str, decoder: str | None = None, scopes: list[Scope] | None = None) -> Tuned:
    """``into`` and ``decoder`` are names in the server's folder of tuned scorers; search with ``decoder:NAME``."""
    folder = scorers(access)
    start = None if decoder is None else tuned_folder(folder, decoder)
    if scopes is not None:
        access.require_all("training on several scopes")
    return await access.memory.tune(tuned_folder(folder, into), decoder=start, scopes=scopes, scope=access.scope)


def scorers(access: Access) -> Path | None:
    """Return the folder of tuned scorers that a key may name. A key bound to a scope has its own folder."""
    folder = access.scorers
    return folder if folder is None or access.opens_all or access.scope is None else folder / access.scope.key


async def scorer_of(folder: Path | None, name: str | None) -> str | None:
    """Return the scorer with this name; None for None. Raises ``InvalidInput`` if it is unknown or lacks its model."""
    if name is None:
        return None
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
