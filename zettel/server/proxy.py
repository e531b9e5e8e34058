"""The proxy to a language model: OpenAI's chat completions, with memories in the prompt, and the turns stored.

Requests go to ``/v1/chat/completions``. The scope comes from the key, from headers and from the field ``user``. The
upstream's answer passes through unchanged, also a stream and an error.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import anyio
import httpx
from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from zettel.async_memory import AsyncMemory
from zettel.core.arguments import require_name
from zettel.core.scope_patterns import ANY, PARTS, is_in
from zettel.errors import InvalidInput, ModelUnavailable, PermissionDenied
from zettel.model import Scope
from zettel.remote.routes import Right
from zettel.server.access import scope_of
from zettel.server.chat_answer import ChatAnswer
from zettel.server.keys import Key
from zettel.server.limits import Receive

PROXY_KEY = "ZETTEL_PROXY_KEY"
"""The environment variable with the upstream's key."""
CHAT = "/v1/chat/completions"
MODELS = "/v1/models"
HEADERS = {part: f"zettel-{part}" for part in PARTS}
"""The headers that name the parts of a scope."""
SESSION_HEADER = "zettel-session"
"""The header that names the conversation."""
CHAT_HEADERS = (*HEADERS.values(), SESSION_HEADER)
CONNECT_SECONDS, READ_SECONDS = 10.0, 600.0
"""Timeouts of the upstream: a model may think for minutes before it sends the first byte."""

_FORWARDED = ("accept", "content-type", "user-agent", "idempotency-key", "openai-", "x-stainless-")
"""Beginnings of request headers that the upstream receives: never the caller's key, cookies or address."""
_OWN = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "te", "trailer", "transfer-encoding", "upgrade",
    "content-length", "content-encoding", "set-cookie", "cache-control", "date", "server",
})  # fmt: skip
"""Headers of answers that concern one connection, or that this server sets itself."""

routes = APIRouter(include_in_schema=False)


class Chat(Protocol):
    """One chat completion, with the ``messages`` to send to the model."""

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]: ...

    async def store(self, answer: str, calls: Sequence[str], finished_at: datetime | None) -> None:
        """Store the turn, without the answer if it is not finished. ``calls`` are the ids of its tool calls."""


class Chats(Protocol):
    """Recalls and stores: see ``zettel.integrations.proxied_chats``."""

    async def begin(
        self, memory: AsyncMemory, messages: Sequence[Mapping[str, Any]], scope: Scope, session: str | None
    ) -> Chat:
        """Recall memories for a chat completion."""


class Proxy:
    """A connection to the service at ``url``, such as ``https://api.openai.com/v1``. An async context manager.

    ``key`` is sent as its bearer token; None: no key is sent. ``chats`` recalls and stores. Raises ``InvalidInput``.
    """

    def __init__(self, url: str, key: str | None, chats: Chats) -> None:
        try:
            parts = urlsplit(url)
            valid = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
        except ValueError:
            valid = False
        if not valid or parts.username is not None or parts.query:
            raise InvalidInput(
                f"{url.rpartition('@')[2]!r} is not the address of a model: use a URL such as "
                f"https://api.openai.com/v1, without a login and without a query. Its key belongs into {PROXY_KEY}"
            )
        if key is not None and not (key.isascii() and key.isprintable()):
            raise InvalidInput(f"{PROXY_KEY} has characters that no HTTP header accepts: check it")
        self.url = url.rstrip("/")
        self.host = parts.netloc
        self.chats = chats
        self._key = key
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS, pool=None),
            limits=httpx.Limits(max_connections=None),
        )
        self._client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))  # they would mix users

    async def __aenter__(self) -> Proxy:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    @asynccontextmanager
    async def answer(self, request: Request, body: bytes) -> AsyncIterator[httpx.Response]:
        """Send a request with another body, and yield the answer, whose body is still to be read.

        Raises ``ModelUnavailable`` if the upstream cannot be reached or breaks off.
        """
        forwarded = {name: value for name, value in request.headers.items() if name.startswith(_FORWARDED)}
        headers = forwarded | {"accept-encoding": "identity"}
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key}"
        path = request.scope["path"].removeprefix("/v1")
        query = f"?{request.url.query}" if request.url.query else ""
        try:
            async with self._client.stream(
                request.method, f"{self.url}{path}{query}", headers=headers, content=body
            ) as answer:
                yield answer
        except httpx.TransportError as error:
            raise ModelUnavailable(f"the model at {self.host} did not answer ({type(error).__name__})") from None


# ------------------------------------------------------------------------------------------------------------- routes


@routes.post(CHAT)
async def complete(request: Request) -> Response:
    """Answer a chat completion with memories of the user, and store the turn."""
    key, memory, proxy = request.scope["zettel.key"], request.app.state.memory, request.app.state.proxy
    _require(key, "write")
    body = await request.body()
    fields = _fields(body)
    if fields is None:  # the upstream reports the error
        return _Relay(proxy, request, body)
    whose = scope_of_chat(key, memory.scope, request.headers, fields.get("user"))
    messages = fields["messages"]
    chat = await proxy.chats.begin(memory, messages, whose, _header(request.headers, SESSION_HEADER))
    if chat.messages != messages:
        body = json.dumps(fields | {"messages": chat.messages}).encode()
    return _Relay(proxy, request, body, chat)


@routes.get(MODELS)
@routes.get(MODELS + "/{name:path}")
async def models(request: Request, name: str = "") -> Response:
    """Answer with the upstream's models."""
    _require(request.scope["zettel.key"], "read")
    if not {".", ".."}.isdisjoint(unquote(name).split("/")):  # it would leave the path of the models
        raise HTTPException(404)
    return _Relay(request.app.state.proxy, request, b"")


def _require(key: Key | None, right: Right) -> None:
    if key is not None and not key.may(right):
        raise PermissionDenied(f"this needs a key with the right {right}: this key has the right {key.right}")


def _fields(body: bytes) -> dict[str, Any] | None:
    """Return the body of a chat completion, None if it is not one."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return None
    messages = fields.get("messages") if isinstance(fields, dict) else None
    valid = isinstance(messages, list) and messages and all(isinstance(message, dict) for message in messages)
    return fields if valid else None


# -------------------------------------------------------------------------------------------------------------- scope


def scope_of_chat(key: Key | None, default: Scope, headers: Mapping[str, str], user: object) -> Scope:
    """Return the scope of a chat: named by headers, or by the field ``user``, and completed from the key.

    ``default`` is the server's own scope, which completes keys for all scopes. Raises ``InvalidInput`` without a user,
    and ``PermissionDenied`` if the key does not open the scope.
    """
    named = {part: value for part, header in HEADERS.items() if (value := _header(headers, header)) is not None}
    if user is not None and "user" not in named:
        if not isinstance(user, str) or not user.strip():
            raise InvalidInput(f"the field user must be the id of a user, a non-empty string, got {user!r}")
        require_name("the field user", user)
        named["user"] = user
    patterns = None if key is None else key.scopes
    scope = Scope(**{**_common(patterns, default), **named})
    if scope.user is None and (patterns is None or not is_in(scope, patterns)):
        raise InvalidInput(
            "this chat has no user: name one in the header Zettel-User or in the field user, or use a key of one user"
        )
    scope_of(key, scope, "write")
    return scope


def _common(patterns: tuple[Scope, ...] | None, default: Scope) -> dict[str, str | None]:
    """Return the parts of a scope that all scopes of a key have in common."""
    if patterns is None:
        return default.model_dump()
    first, *others = (pattern.model_dump() for pattern in patterns)
    return {
        part: value for part, value in first.items() if value != ANY and all(other[part] == value for other in others)
    }


def _header(headers: Mapping[str, str], name: str) -> str | None:
    """Return the percent-decoded value of a header. Raises ``InvalidInput``."""
    value = headers.get(name)
    if value is None:
        return None
    try:
        text = unquote(value, errors="strict").strip()
    except UnicodeDecodeError:
        text = ""
    if not text:
        raise InvalidInput(f"the header {name.title()} must be a non-empty text, percent-encoded UTF-8 beyond ASCII")
    require_name(f"the header {name.title()}", text)
    return text


# -------------------------------------------------------------------------------------------------------------- relay


class _Relay(Response):
    """Sends a request to the upstream and passes its answer on as it comes; then the turn is stored.

    A client that disconnects ends the request to the upstream too.
    """

    def __init__(self, proxy: Proxy, request: Request, body: bytes, chat: Chat | None = None) -> None:
        super().__init__()
        self._proxy, self._request, self._sent = proxy, request, body
        self._chat = chat

    async def __call__(self, scope: Any, receive: Receive, send: Any) -> None:
        answer: ChatAnswer | None = None
        with anyio.CancelScope() as connection:
            watcher = asyncio.get_running_loop().create_task(_cancel_when_disconnected(receive, connection))
            try:
                async with self._proxy.answer(self._request, self._sent) as upstream:
                    is_stream = upstream.headers.get("content-type", "").startswith("text/event-stream")
                    answer = ChatAnswer(is_stream=is_stream)
                    if is_stream:
                        await _start(send, upstream)
                    async for part in upstream.aiter_bytes():
                        answer.feed(part)
                        if is_stream:
                            await send({"type": "http.response.body", "body": part, "more_body": True})
            finally:
                watcher.cancel()
        if answer is None:  # the client disconnected before the upstream answered
            return
        answer.close()
        begun = connection.cancelled_caught and answer.text  # the user has read the beginning
        if self._chat is not None and upstream.is_success and (answer.is_complete or begun):
            await self._chat.store(answer.text, answer.calls, answer.finished_at if answer.is_complete else None)
        if is_stream:
            await send({"type": "http.response.body", "body": b""})
        else:
            await _start(send, upstream, len(answer.body))
            await send({"type": "http.response.body", "body": answer.body})


async def _cancel_when_disconnected(receive: Receive, connection: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    connection.cancel()


async def _start(send: Any, upstream: httpx.Response, size: int | None = None) -> None:
    """Send the upstream's status and headers."""
    headers = [(name.lower(), value) for name, value in upstream.headers.raw if name.decode().lower() not in _OWN]
    if size is not None:
        headers.append((b"content-length", b"%d" % size))
    await send({"type": "http.response.start", "status": upstream.status_code, "headers": headers})
