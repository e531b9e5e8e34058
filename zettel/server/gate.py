"""ASGI middleware that checks keys and limits, and logs each request.

It is plain ASGI: it reads nothing of a request without a key, and little of one that is too large.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import ExitStack, nullcontext
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import anyio

from zettel.core.pacing import PAUSE
from zettel.core.principals import acting_as
from zettel.core.telemetry import ERROR, REQUESTS, observed
from zettel.errors import BadRequest, InvalidKey, PermissionDenied, ServerBusy, StoreBusy, TooManyRequests, ZettelError
from zettel.local.audit_log import AuditLog
from zettel.remote.routes import COMPOSED, ROUTES
from zettel.remote.sockets import is_loopback
from zettel.remote.wire import error_body, status_of
from zettel.server.keys import Key, Keys
from zettel.server.limits import (
    REFUSAL_SECONDS,
    SLOWEST,
    ClientDisconnected,
    ConcurrencyLimit,
    Limits,
    Message,
    RateLimiter,
    Receive,
    RequestBody,
    SharedRateLimiter,
)
from zettel.server.logs import METHODS, OTHER, Metrics, log_request
from zettel.server.path_ids import keep_encoded
from zettel.server.proxy import CHAT, CHAT_HEADERS
from zettel.server.public_paths import is_guarded
from zettel.server.refusals import REFUSALS, Refusals
from zettel.server.routes_files import STREAMED

Scope = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

REFUSED = "this needs a valid key: send `Authorization: Bearer zk_…`, in Python key=, in the shell ZETTEL_KEY"
"""One message for every invalid key, so that it reveals nothing about existing keys."""
_ONCE = (
    b"authorization", b"host", b"content-length", b"transfer-encoding", b"origin", b"sec-fetch-site",
    *(name.encode() for name in CHAT_HEADERS),
)  # fmt: skip
"""Headers that decide about a request."""
_TRACE = (b"traceparent", b"tracestate")
_OWN_SITES = (b"same-origin", b"none")
"""Values of Sec-Fetch-Site for the server's own page and for what a person typed."""
_READ = [route for route in (*ROUTES.values(), *COMPOSED.values()) if route.right == "read" and route.verb == "POST"]
READ = frozenset(route.path for route in _READ)
"""Paths of POST requests that only read."""
READ_SHARE = 5
"""They may have one of so many shares of the JSON values of other requests."""
WAITING = frozenset({"/v1/flush", "/v1/evolve", CHAT})
"""Requests that wait for jobs or for a model take no place in the queue of their key."""
AGAIN_SECONDS = 1
"""Retry-After of a busy server."""


class Gate:
    """An ASGI application in front of another one. ``keys`` is None for a server that only this machine reaches."""

    def __init__(
        self, app: App, keys: Keys | None, limits: Limits, metrics: Metrics, audit: AuditLog | None = None
    ) -> None:
        self._app = app
        self._refusals = None if audit is None else Refusals(audit)
        self._keys = keys
        self._limits = limits
        self._metrics = metrics
        shared = limits.rates
        self._buckets = RateLimiter(limits.rate) if shared is None else SharedRateLimiter(limits.rate, shared)
        self._guarded, self._open = ConcurrencyLimit(limits.at_once), ConcurrencyLimit(limits.at_once)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request and log it."""
        if scope["type"] != "http":
            return  # all routes are HTTP; uvicorn rejects the rest
        keep_encoded(scope)
        method = scope["method"] if scope["method"] in METHODS else OTHER
        attributes = {"http.request.method": method, "url.scheme": scope["scheme"]}
        with observed(method, REQUESTS, attributes, kind="SERVER", headers=_trace_headers(scope)) as observation:
            status = await self._answered(scope, receive, send)
            route = getattr(scope.get("route"), "path", None)
            observation.name = f"{method} {route}" if route else None
            if route is not None:
                observation.measured["http.route"] = route
            if status:
                observation.measured["http.response.status_code"] = status
            if status >= 500 or not status:
                observation.measured[ERROR] = str(status or "disconnected")

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> int:
        """Answer a request, log it, and return the status; 0 if the client disconnected."""
        began, status, sent = perf_counter(), 0, 0
        path = scope["path"]
        reads = scope["method"] in ("GET", "DELETE") or path in READ
        values = None if path in STREAMED else self._limits.values // READ_SHARE if reads else self._limits.values
        incoming = RequestBody(receive, self._most(path, reads), self._limits.body_seconds, values)

        async def watched(message: Message) -> None:
            nonlocal status, sent
            if incoming.is_disconnected:
                return
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message.get("headers", ()))
                if is_guarded(scope["path"]):
                    headers.append((b"cache-control", b"no-store"))
                if not incoming.is_complete:  # rejected early: the rest of the body would be parsed as the next request
                    await incoming.drain()
                    headers.append((b"connection", b"close"))
                message["headers"] = headers
            try:
                with anyio.fail_after(self._limits.send_seconds + sent / SLOWEST):
                    await send(message)  # waits until the client has read the previous part
            except TimeoutError:
                incoming.is_disconnected = True
                raise ClientDisconnected from None
            sent = len(message.get("body", b""))

        scope["zettel.key"] = None
        try:
            await self._answer(scope, incoming, watched)
        except ClientDisconnected:
            pass
        except ZettelError as error:
            if status:  # part of the answer is sent: only a broken connection shows that it is incomplete
                raise
            await _refuse(watched, error)
        finally:
            route = getattr(scope.get("route"), "path", None)
            log_request(self._metrics, scope["method"], route, status, perf_counter() - began, scope["zettel.key"])
            if self._refusals is not None and status in REFUSALS:
                self._refusals.record(scope["method"], route, status, scope["zettel.key"])
        return status

    async def _answer(self, scope: Scope, incoming: RequestBody, send: Send) -> None:
        path = scope["path"]
        headers = _unambiguous(scope["headers"])
        incoming.require(_length(headers))
        if self._keys is None:
            _require_local(headers, is_guarded(path))
        if not is_guarded(path):
            with self._open.total():
                await self._app(scope, await incoming.read_all(), send)
            return
        with ExitStack() as places:
            places.enter_context(self._guarded.total())
            places.enter_context(self._metrics.active.track_inprogress())
            key = scope["zettel.key"] = self._key(headers)
            if key is not None:
                places.enter_context(acting_as(key.principal, key.trust, label=key.name))
                places.enter_context(self._guarded.per_key(key.id))
                wait = self._buckets.take(key.id, asyncio.get_running_loop().time())
                if wait:
                    await anyio.sleep(REFUSAL_SECONDS)
                    error = TooManyRequests(f"more than {self._limits.rate:g} requests a second: retry later")
                    raise _busy(error, wait)
                if path not in STREAMED:  # an import reads its file in pieces, and may be large
                    places.callback(lambda: self._buckets.charge(key.id, incoming.cost))
            queue = nullcontext() if key is None or path in WAITING else self._guarded.queue(key.id)
            async with queue:
                if key is not None:
                    PAUSE.set(self._guarded.begin(key.id))
                await self._app(scope, incoming.receive if path in STREAMED else await incoming.read_all(), send)

    def _most(self, path: str, reads: bool) -> int:
        """Return the largest body in bytes. Routes without a key accept none, so that nobody can fill the memory."""
        if not is_guarded(path):
            return 0
        if path in STREAMED:
            return self._limits.upload
        return min(self._limits.body, self._limits.read_body) if reads else self._limits.body

    def _key(self, headers: dict[bytes, bytes]) -> Key | None:
        if self._keys is None:
            return None
        kind, _, text = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        key = self._keys.find(text.strip()) if kind.lower() == "bearer" else None
        if key is None:
            raise InvalidKey(REFUSED)
        return key


def _trace_headers(scope: Scope) -> dict[str, str]:
    """Return the headers with the trace of the caller."""
    return {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _TRACE}


def _unambiguous(pairs: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return the headers by name. Raises ``BadRequest`` for those that a proxy may read in another way."""
    pairs = list(pairs)
    names = Counter(name for name, _ in pairs)
    for name in _ONCE:
        if names[name] > 1:
            raise BadRequest(f"the header {name.decode()} is given more than once: send it once")
    if names[b"content-length"] and names[b"transfer-encoding"]:
        raise BadRequest("content-length and transfer-encoding exclude each other: send one of them")
    return dict(pairs)


def _require_local(headers: dict[bytes, bytes], guarded: bool) -> None:
    """Raise ``PermissionDenied`` for requests of web pages and of other machines.

    Browsers send no Origin with a GET of an image or a script, but Sec-Fetch-Site with every request. Other sites may
    link to the page itself, which is not ``guarded``.
    """
    host = headers.get(b"host", b"").decode("latin-1")
    origin = headers.get(b"origin")
    foreign = origin is not None and origin.decode("latin-1").partition("://")[2].lower() != host.lower()
    foreign = foreign or (guarded and headers.get(b"sec-fetch-site", b"none").lower() not in _OWN_SITES)
    if not is_loopback(_host(f"//{host}")) or foreign:
        raise PermissionDenied(
            "without keys this server answers only programs on its own machine, addressed as localhost"
        )


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _length(headers: dict[bytes, bytes]) -> int:
    """Return the content length of a request, 0 without one."""
    length = headers.get(b"content-length", b"0")
    if not length.isdigit():
        raise BadRequest("content-length must be a number")
    return int(length)


def _busy(error: ServerBusy, seconds: float) -> ServerBusy:
    error.retry_after = seconds
    return error


async def _refuse(send: Send, error: ZettelError) -> None:
    await send({"type": "http.response.start", "status": status_of(error), "headers": error_headers(error)})
    await send({"type": "http.response.body", "body": error_body(error)})


def error_headers(error: ZettelError) -> list[tuple[bytes, bytes]]:
    """Return the headers of an error answer."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(error_body(error)))]
    status = status_of(error)
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, (ServerBusy, StoreBusy)):
        wait = getattr(error, "retry_after", None) or AGAIN_SECONDS
        headers.append((b"retry-after", b"%d" % math.ceil(wait)))
    return headers
