"""The application: all routes of one memory behind the gate."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from zettel import __version__
from zettel.async_memory import AsyncMemory
from zettel.errors import BadRequest, InvalidInput, NotAllowed, NotFound, ScorerError, ServerError, ZettelError
from zettel.server import events, files, finding, notes, upkeep
from zettel.server.asking import PARAMETERS
from zettel.server.gate import Gate, error_headers
from zettel.server.keys import Keys
from zettel.server.limits import UNPACKED, Limits
from zettel.server.logs import Metrics
from zettel.server.open_paths import INDEX, PAGE, is_guarded, page_files
from zettel.server.wire import ErrorBody, error_body, status_of

PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types zettel",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""Nothing from elsewhere, nothing to elsewhere: what notes say is shown there, and anybody may have written them."""
NOBODY = "n_0"
"""No note has this id: to look for it asks the store, and nothing else."""
READY_SECONDS = 1.0
"""That it is not asked again whether the store answers: whoever likes may ask the server."""
_PLACES_TOLD = 4


def application(
    memory: AsyncMemory, keys: Keys | None = None, *, limits: Limits | None = None, scorers: Path | None = None
) -> Gate:
    """The ASGI application that serves a memory, which must live in the loop that runs it.

    Without ``keys`` it answers this machine alone. ``scorers`` is the folder that tuned scorers are kept in.
    """
    metrics = Metrics()
    api, schema = _routed(), _schema()
    api.state.memory, api.state.scorers, api.state.metrics = memory, scorers, metrics
    for kind, handler in _HANDLERS.items():
        api.add_exception_handler(kind, handler)
    limits = limits or Limits()
    api.state.unpacked = UNPACKED * limits.upload
    api.state.parameters = {
        (method.upper(), path): {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
    }
    _show(api, json.dumps(schema).encode())
    return Gate(api, keys, limits, metrics)


def _routed() -> FastAPI:
    """All routes, of no memory yet."""
    api = FastAPI(
        title="zettel", version=__version__, summary="A memory for agents that works like a Zettelkasten.",
        docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False,
        responses={"default": {"model": ErrorBody}},
        generate_unique_id_function=lambda route: route.name,
    )  # fmt: skip
    for room in (events, finding, notes, upkeep, files):
        api.include_router(room.routes)
    _look(api)
    return api


def _look(api: FastAPI) -> None:
    """Routes for whoever runs the server."""
    answered = -READY_SECONDS

    @api.get("/health", tags=["server"])
    async def health() -> dict[str, str]:
        """Whether the server answers."""
        return {"status": "ok"}

    @api.get("/ready", tags=["server"])
    async def ready() -> dict[str, str]:
        """Whether its store answers too."""
        nonlocal answered
        now = asyncio.get_running_loop().time()
        if now - answered >= READY_SECONDS:
            with suppress(NotFound):
                await api.state.memory.get(NOBODY)
            answered = now
        return {"status": "ok"}

    @api.get("/metrics", tags=["server"], response_class=Response)
    async def metrics(request: Request) -> Response:
        """Counts and times of requests, for Prometheus."""
        key = request.scope["zettel.key"]
        if key is not None and key.scopes is not None:
            raise NotAllowed("metrics tell of all scopes, and this key is bound to its own")
        return Response(api.state.metrics.page(), media_type="text/plain; version=0.0.4")


def _show(api: FastAPI, description: bytes) -> None:
    """The description, and the files of the page. No mount at ``/``: it would take what other routes refuse."""
    page = _Page(directory=PAGE, check_dir=False)

    async def described(_: Request) -> Response:
        return Response(description, media_type="application/json")

    async def file(request: Request) -> Response:
        return await page.get_response(request.url.path[1:] or INDEX, request.scope)

    api.add_route("/openapi.json", described, include_in_schema=False)
    for name in ("", *sorted(page_files())):
        api.add_route(f"/{name}", file, include_in_schema=False)


@cache
def _schema() -> dict[str, Any]:
    """The OpenAPI description, with how a key is sent. Takes a second, and is the same for every memory."""
    schema: dict[str, Any] = _routed().openapi()
    schema["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    for path, operations in schema["paths"].items():
        if is_guarded(path):
            for operation in operations.values():
                operation["security"] = [{"key": []}]
                if path != "/metrics":
                    operation["parameters"] = [*operation.get("parameters", ()), *PARAMETERS]
    return schema


class _Page(StaticFiles):
    async def get_response(self, path: str, scope: Any) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(PAGE_HEADERS)
        return response


# --------------------------------------------------------------------------------------------------------------- errors


def _refused(error: ZettelError, status: int | None = None) -> Response:
    headers = {name.decode(): value.decode() for name, value in error_headers(error)}
    return Response(error_body(error), status or status_of(error), headers)


async def _of_memory(_: Request, error: Any) -> Response:
    return _refused(error)


async def _of_scorer(request: Request, error: Any) -> Response:
    """Where the server keeps tuned scorers is nobody's business."""
    folder: Path | None = request.app.state.scorers
    told = str(error) if folder is None else str(error).replace(f"{folder}{os.sep}", "")
    return _refused(ScorerError(told))


async def _of_shape(request: Request, error: Any) -> Response:
    """What does not look as it should, in one line that names the field."""
    complaint = error.errors()[0]
    if complaint["type"] == "json_invalid":
        what, at = complaint["ctx"]["error"], complaint["loc"][-1]
        return _refused(BadRequest(f"the body is no JSON: {what} (character {at})"))
    if complaint["loc"] == ("body",) and "json" not in request.headers.get("content-type", ""):
        return _refused(InvalidInput("the body is to be a JSON object: send it as application/json"))
    where = ".".join(str(part) for part in complaint["loc"][1 : 1 + _PLACES_TOLD]) or "body"
    reason = "there is no such field" if complaint["type"] == "extra_forbidden" else complaint["msg"]
    return _refused(InvalidInput(f"{where}: {reason.removeprefix('Value error, ')}"))


async def _of_http(request: Request, error: Any) -> Response:
    """What no route is for."""
    reasons = {
        404: f"there is no {request.url.path} here: /openapi.json tells what there is",
        405: f"{request.url.path} takes no {request.method}",
    }
    answer = _refused(BadRequest(reasons.get(error.status_code, str(error.detail))), error.status_code)
    answer.headers.update(error.headers or {})
    if error.status_code == 405:  # the first route of that path knows its own method alone
        path = getattr(request.scope.get("route"), "path", None)
        if allowed := sorted(method for method, other in request.app.state.parameters if other == path):
            answer.headers["Allow"] = ", ".join(allowed)
    return answer


async def _unforeseen(_: Request, error: Any) -> Response:
    return _refused(ServerError("something went wrong in the server: its log has the place"))


_HANDLERS: dict[Any, Callable[[Request, Any], Awaitable[Response]]] = {
    ZettelError: _of_memory,
    ScorerError: _of_scorer,
    RequestValidationError: _of_shape,
    HTTPException: _of_http,
    Exception: _unforeseen,
}
