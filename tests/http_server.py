"""A memory server in its own thread, and its HTTP clients, for tests."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from zettel import AsyncMemory
from zettel.integrations.proxied_chats import ProxiedChats
from zettel.local.audit_log import AuditLog
from zettel.remote.sockets import listening
from zettel.server.app import application
from zettel.server.keys import Keys
from zettel.server.limits import Limits
from zettel.server.proxy import Proxy
from zettel.server.serving import Safety, address_of, server

PATIENCE = 60
"""Seconds for one step of a test, on a busy machine."""
IDLE = 20
"""Seconds after which a client opens a new connection: a server closes those that are idle for long."""
QUICK = Limits(rate=0)
"""Limits of a server without a request rate."""


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]

    @property
    def error(self) -> str:
        """Return the type and message of a one-line error."""
        assert self.status >= 400, self
        error = self.body["error"]
        assert set(error) == {"type", "message"}
        assert "\n" not in error["message"]
        return f"{error['type']}: {error['message']}"


class Asker:
    """A client with a key and a persistent connection."""

    def __init__(self, port: int, key: str | None = None) -> None:
        self.port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._headers = {} if key is None else {"authorization": f"Bearer {key}"}
        self._used = monotonic()

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request and return the answer; a ``body`` that is not bytes is sent as JSON."""
        sent = dict(self._headers)
        if body is not None and not isinstance(body, bytes):
            body, sent["content-type"] = json.dumps(body).encode(), "application/json"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        if monotonic() - self._used > IDLE:
            self._connection.close()
        self._connection.request(method, path, body, sent)
        answer = self._connection.getresponse()
        content = answer.read()
        self._used = monotonic()
        content_type = answer.headers.get("content-type", "")
        return Answer(
            answer.status,
            json.loads(content) if content_type == "application/json" else content,
            {name.lower(): value for name, value in answer.headers.items()},
        )

    def close(self) -> None:
        self._connection.close()


class Served(NamedTuple):
    url: str
    port: int
    keys: Keys | None
    clients: list[Asker]

    def key(self, name: str, *scopes: Any, right: Any = "admin", **more: Any) -> str:
        """Create a key, for all scopes if none is given, and return its text."""
        assert self.keys is not None
        return self.keys.create(name, right, scopes or None, **more)[1]

    def asker(self, key: str | None = None) -> Asker:
        """Return a client that is closed with the server."""
        self.clients.append(Asker(self.port, key))
        return self.clients[-1]


@contextmanager
def served(
    store: Path,
    *,
    keyed: bool = True,
    limits: Limits = QUICK,
    scorers: Path | None = None,
    audit: AuditLog | None = None,
    upstream: tuple[str, str | None] | None = None,
    beside: Callable[[AsyncMemory, Any], AbstractAsyncContextManager[Any]] | None = None,
) -> Iterator[Served]:
    """Serve a store until the block ends, then close the memory.

    ``upstream`` is the URL and the key of a model, for chat completions. ``beside`` wraps the server's application in
    another one, in the same loop and with the same memory.
    """
    keys = Keys(store.with_name(f"{store.name}.keys"), create=True) if keyed else None
    ended = threading.Event()
    running: list[Any] = []
    clients: list[Asker] = []

    async def serve(at: Any) -> None:
        async with AsyncExitStack() as stack:
            memory = await stack.enter_async_context(AsyncMemory(store, audit=audit))
            proxy = None if upstream is None else await stack.enter_async_context(Proxy(*upstream, ProxiedChats()))
            app = application(memory, keys, limits=limits, scorers=scorers, audit=audit, proxy=proxy)
            if beside is not None:
                app = await stack.enter_async_context(beside(memory, app))
            http_server = server(app, limits, Safety())
            running.append(http_server)
            await http_server.serve(sockets=[at])

    def run(at: Any) -> None:
        try:
            asyncio.run(serve(at))
        finally:
            ended.set()

    with listening("127.0.0.1", 0) as at:
        url, port = address_of(at, Safety()), at.getsockname()[1]
        thread = threading.Thread(target=run, args=(at,), name="zettel-server")
        thread.start()
        try:
            _wait_until_healthy(Asker(port), ended)
            yield Served(url, port, keys, clients)
        finally:
            for asker in clients:
                asker.close()
            if running:
                running[0].should_exit = True
            thread.join(PATIENCE)
            if keys is not None:
                keys.close()
    assert not thread.is_alive()


def _wait_until_healthy(asker: Asker, ended: threading.Event) -> None:
    assert not ended.is_set()
    assert (
        asker("GET", "/health").status == 200
    )  # the socket already listens, so the first request waits for the server
    asker.close()
