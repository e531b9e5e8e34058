"""The ASGI application: all routes of one memory behind the gate."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from zettel.async_memory import AsyncMemory
from zettel.errors import BadRequest, InvalidInput, NotFound, PermissionDenied, ScorerError, ServerError, ZettelError
from zettel.local.audit_log import AuditLog
from zettel.local.auditing import MISSING_ID
from zettel.remote.wire import ErrorBody, error_body, status_of
from zettel.server import proxy as chat_proxy
from zettel.server import routes_events, routes_files, routes_maintenance, routes_notes, routes_search
from zettel.server.access import PARAMETERS
from zettel.server.endpoints import other_routes
from zettel.server.gate import Gate, error_headers
from zettel.server.keys import Keys
from zettel.server.limits import UNPACKED, Limits
from zettel.server.logs import Metrics
from zettel.server.proxy import Proxy
from zettel.server.public_paths import INDEX, PAGE, is_guarded, page_files
from zettel.version import VERSION

PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types zettel",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""The page loads nothing from other sites and sends nothing to them: it shows untrusted text of notes."""
READY_SECONDS = 1.0
"""How long a successful readiness check is cached: anybody may call it."""
NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False}
"""FastAPI's own spans and logs contain paths and rejected bodies; the gate reports requests without content."""
_MAX_LOCATION = 4


def application(
    memory: AsyncMemory,
    keys: Keys | None = None,
    *,
    limits: Limits | None = None,
    scorers: Path | None = None,
    audit: AuditLog | None = None,
    proxy: Proxy | None = None,
) -> Gate:
    """Return the ASGI application of a memory, which must be open in the event loop that runs it.

    Without ``keys`` it answers only this machine. ``scorers`` is the folder of tuned scorers. Refused requests are
    recorded in ``audit``, the audit log of the memory. With ``proxy`` it answers chat completions too.
    """
    metrics = Metrics()
    api, schema = _routed(), openapi()
    api.state.memory, api.state.scorers, api.state.metrics = memory, scorers, metrics
    if proxy is not None:
        api.state.proxy = proxy
        api.include_router(chat_proxy.routes)
    for kind, handler in _HANDLERS.items():
        api.add_exception_handler(kind, handler)
    limits = limits or Limits()
    api.state.unpacked = UNPACKED * limits.upload
    api.state.parameters = {
        (method.upper(), path): {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
    }
    _add_page(api, json.dumps(schema).encode())
    return Gate(api, keys, limits, metrics, audit)


def _routed() -> FastAPI:
    """Return an application with all routes but without a memory."""
    api = FastAPI(
        title="zettel", version=VERSION, summary="A memory for agents that works like a Zettelkasten.",
        docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False,
        responses={"default": {"model": ErrorBody}},
        generate_unique_id_function=lambda route: route.name, telemetry=NO_TELEMETRY,
    )  # fmt: skip
    for routes in _routers():
        api.include_router(routes)
    _add_monitoring(api)
    return api


@cache
def _routers() -> list[APIRouter]:
    """Return the routes of the memory, which are the same for every memory."""
    modules = (routes_events, routes_search, routes_notes, routes_maintenance, routes_files)
    by_hand = [module.routes for module in modules]
    return [other_routes(by_hand), *by_hand]


def _add_monitoring(api: FastAPI) -> None:
    """Add the routes for operators of the server."""
    answered = -READY_SECONDS

    @api.get("/health", tags=["server"])
    async def health() -> dict[str, str]:
        """Report that the server runs."""
        return {"status": "ok"}

    @api.get("/ready", tags=["server"])
    async def ready() -> dict[str, str]:
        """Report that the server and its store answer."""
        nonlocal answered
        now = asyncio.get_running_loop().time()
        if now - answered >= READY_SECONDS:
            with suppress(NotFound):
                await api.state.memory.get(MISSING_ID)
            answered = now
        return {"status": "ok"}

    @api.get("/metrics", tags=["server"], response_class=Response)
    async def metrics(request: Request) -> Response:
        """Return counts and durations of requests, for Prometheus."""
        key = request.scope["zettel.key"]
        if key is not None and key.scopes is not None:
            raise PermissionDenied("metrics cover all scopes: use a key that opens all scopes")
        return Response(api.state.metrics.page(), media_type="text/plain; version=0.0.4")


def _add_page(api: FastAPI, description: bytes) -> None:
    """Add the OpenAPI description and the page's files. A mount at ``/`` would shadow the errors of other routes."""
    page = _Page(directory=PAGE, check_dir=False)

    async def described(_: Request) -> Response:
        return Response(description, media_type="application/json")

    async def file(request: Request) -> Response:
        return await page.get_response(request.url.path[1:] or INDEX, request.scope)

    api.add_route("/openapi.json", described, include_in_schema=False)
    for name in ("", *sorted(page_files())):
        api.add_route(f"/{name}", file, include_in_schema=False)


@cache
def openapi() -> dict[str, Any]:
    """Return the OpenAPI description with the key scheme. It takes a second and is the same for every memory."""
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


def _error_response(error: ZettelError, status: int | None = None) -> Response:
    headers = {name.decode(): value.decode() for name, value in error_headers(error)}
    return Response(error_body(error), status or status_of(error), headers)


async def _memory_error(_: Request, error: Any) -> Response:
    return _error_response(error)


async def _scorer_error(request: Request, error: Any) -> Response:
    """Answer without the path of the server's scorer folder."""
    folder: Path | None = request.app.state.scorers
    message = str(error) if folder is None else str(error).replace(f"{folder}{os.sep}", "")
    return _error_response(ScorerError(message))


async def _validation_error(request: Request, error: Any) -> Response:
    """Answer an invalid request with one line that names the field."""
    complaint = error.errors()[0]
    if complaint["type"] == "json_invalid":
        reason, position = complaint["ctx"]["error"], complaint["loc"][-1]
        return _error_response(BadRequest(f"the body is not valid JSON: {reason} at character {position}"))
    if complaint["loc"] == ("body",) and "json" not in request.headers.get("content-type", ""):
        return _error_response(InvalidInput("the body must be a JSON object: send it as application/json"))
    where = ".".join(str(part) for part in complaint["loc"][1 : 1 + _MAX_LOCATION]) or "body"
    reason = "unknown field" if complaint["type"] == "extra_forbidden" else complaint["msg"]
    return _error_response(InvalidInput(f"{where}: {reason.removeprefix('Value error, ')}"))


async def _http_error(request: Request, error: Any) -> Response:
    """Answer an unknown path or method."""
    reasons = {
        404: f"unknown path {request.url.path}: /openapi.json lists all paths",
        405: f"{request.url.path} does not accept {request.method}",
    }
    answer = _error_response(BadRequest(reasons.get(error.status_code, str(error.detail))), error.status_code)
    answer.headers.update(error.headers or {})
    if error.status_code == 405:  # the first route of that path knows its own method alone
        path = getattr(request.scope.get("route"), "path", None)
        if allowed := sorted(method for method, other in request.app.state.parameters if other == path):
            answer.headers["Allow"] = ", ".join(allowed)
    return answer


async def _internal_error(_: Request, error: Any) -> Response:
    return _error_response(ServerError("the server failed: see its log"))


_HANDLERS: dict[Any, Callable[[Request, Any], Awaitable[Response]]] = {
    ZettelError: _memory_error,
    ScorerError: _scorer_error,
    RequestValidationError: _validation_error,
    HTTPException: _http_error,
    Exception: _internal_error,
}
