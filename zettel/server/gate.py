"""The gate before all routes: who comes in, how much at once, and what is told of it afterwards.

It is plain ASGI, so that nothing is read of a request that has no key, and little of one that is too large.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import ExitStack
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import anyio

from zettel.errors import BadRequest, KeyRefused, NotAllowed, ServerBusy, StoreBusy, TooManyRequests, ZettelError
from zettel.server.files import STREAMED
from zettel.server.keys import Key, Keys
from zettel.server.limits import SLOWEST, Buckets, Gone, Incoming, Limits, Message, Places, Receive
from zettel.server.logs import Metrics, tell
from zettel.server.open_paths import is_guarded
from zettel.server.sockets import is_loopback
from zettel.server.wire import error_body, status_of

Scope = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

REFUSED = "this needs a key that is valid: `Authorization: Bearer zk_…`, in Python key=, in the shell ZETTEL_KEY"
"""The same whatever is wrong with a key: what is told apart can be searched for."""
AGAIN_SECONDS = 1
"""After which to come again when the server has too much to do."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Gate:
    """An ASGI application before another one. ``keys`` is None where programs of this machine alone come in."""

    def __init__(self, app: App, keys: Keys | None, limits: Limits, metrics: Metrics) -> None:
        self._app = app
        self._keys = keys
        self._limits = limits
        self._metrics = metrics
        self._buckets = Buckets(limits.rate)
        self._guarded, self._open = Places(limits.at_once), Places(limits.at_once)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and tell of it."""
        if scope["type"] != "http":
            return  # no route speaks anything else, and uvicorn refuses it then
        began, status, sent = perf_counter(), 0, 0
        incoming = Incoming(receive, self._most(scope["path"]), self._limits.body_seconds)

        async def watched(message: Message) -> None:
            nonlocal status, sent
            if incoming.gone:
                return
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message.get("headers", ()))
                if is_guarded(scope["path"]):
                    headers.append((b"cache-control", b"no-store"))
                if not incoming.whole_read:  # refused; what comes after it would be taken for another request
                    await incoming.drain()
                    headers.append((b"connection", b"close"))
                message["headers"] = headers
            try:
                with anyio.fail_after(self._limits.send_seconds + sent / SLOWEST):
                    await send(message)  # once the client has taken what was sent before
            except TimeoutError:
                incoming.gone = True
                raise Gone from None
            sent = len(message.get("body", b""))

        scope["zettel.key"] = None
        try:
            await self._answer(scope, incoming, watched)
        except Gone:
            pass
        except ZettelError as error:
            if status:  # part of the answer is gone already: only to break off tells that it is not whole
                raise
            await _refuse(watched, error)
        finally:
            route = getattr(scope.get("route"), "path", None)
            tell(self._metrics, scope["method"], route, status, perf_counter() - began, scope["zettel.key"])

    async def _answer(self, scope: Scope, incoming: Incoming, send: Send) -> None:
        path = scope["path"]
        headers = dict(scope["headers"])
        incoming.require(_length(headers))
        if self._keys is None:
            _require_local(headers)
        if _CONTROL.search(path):
            raise BadRequest("the path holds a control character")
        if not is_guarded(path):
            with self._open.one():
                await self._app(scope, await incoming.whole(), send)
            return
        with ExitStack() as places:
            places.enter_context(self._guarded.one())
            places.enter_context(self._metrics.active.track_inprogress())
            key = scope["zettel.key"] = self._key(headers)
            if key is not None:
                wait = self._buckets.take(key.id, asyncio.get_running_loop().time())
                if wait:
                    raise _busy(TooManyRequests(f"more than {self._limits.rate:g} requests a second: come later"), wait)
                places.enter_context(self._guarded.of(key.id))
            await self._app(scope, incoming.receive if path in STREAMED else await incoming.whole(), send)

    def _most(self, path: str) -> int:
        """Bytes of a body: none where no key is asked for, so that nobody fills the memory with what they send."""
        if not is_guarded(path):
            return 0
        return self._limits.upload if path in STREAMED else self._limits.body

    def _key(self, headers: dict[bytes, bytes]) -> Key | None:
        if self._keys is None:
            return None
        kind, _, text = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        key = self._keys.find(text.strip()) if kind.lower() == "bearer" else None
        if key is None:
            raise KeyRefused(REFUSED)
        return key


def _require_local(headers: dict[bytes, bytes]) -> None:
    """Raise ``NotAllowed`` for what a web page sends: without keys, to come from this machine is all that is asked."""
    host = headers.get(b"host", b"").decode("latin-1")
    origin = headers.get(b"origin")
    foreign = origin is not None and origin.decode("latin-1").partition("://")[2].lower() != host.lower()
    if not is_loopback(_host(f"//{host}")) or foreign:
        raise NotAllowed("without keys this server answers programs of its own machine alone, by the name localhost")


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _length(headers: dict[bytes, bytes]) -> int:
    """Bytes of the body as the head tells them; 0 if it does not."""
    told = headers.get(b"content-length", b"0")
    if not told.isdigit():
        raise BadRequest("content-length is no number")
    return int(told)


def _busy(error: ServerBusy, seconds: float) -> ServerBusy:
    error.retry_after = seconds
    return error


async def _refuse(send: Send, error: ZettelError) -> None:
    await send({"type": "http.response.start", "status": status_of(error), "headers": error_headers(error)})
    await send({"type": "http.response.body", "body": error_body(error)})


def error_headers(error: ZettelError) -> list[tuple[bytes, bytes]]:
    """The head of an answer that tells an error."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(error_body(error)))]
    status = status_of(error)
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, (ServerBusy, StoreBusy)):
        wait = getattr(error, "retry_after", None) or AGAIN_SECONDS
        headers.append((b"retry-after", b"%d" % math.ceil(wait)))
    return headers
