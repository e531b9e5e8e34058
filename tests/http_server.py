"""A server of a memory on this machine, in a thread of its own, and what asks it, as tests use them."""

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
from zettel.remote.sockets import listening
from zettel.server.app import application
from zettel.server.keys import Keys
from zettel.server.limits import Limits
from zettel.server.serving import Safety, address_of, server

PATIENCE = 60
"""Seconds for one step of a test, on a busy machine."""
IDLE = 20
"""Seconds after which a client takes a new connection: a server lets go of those that are idle for long."""
QUICK = Limits(rate=0)
"""Limits of a server whose tests ask as quickly as they can."""


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]

    @property
    def error(self) -> str:
        """Its type and message; there must be one, in one line."""
        assert self.status >= 400, self
        told = self.body["error"]
        assert set(told) == {"type", "message"}
        assert "\n" not in told["message"]
        return f"{told['type']}: {told['message']}"


class Asker:
    """One client with a key, and a connection that it keeps."""

    def __init__(self, port: int, key: str | None = None) -> None:
        self.port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._headers = {} if key is None else {"authorization": f"Bearer {key}"}
        self._used = monotonic()

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """An answer; a ``body`` that is no bytes goes as JSON."""
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
        told = answer.headers.get("content-type", "")
        return Answer(
            answer.status,
            json.loads(content) if told == "application/json" else content,
            {name.lower(): value for name, value in answer.headers.items()},
        )

    def close(self) -> None:
        self._connection.close()


class Served(NamedTuple):
    url: str
    port: int
    keys: Keys | None
    askers: list[Asker]

    def key(self, name: str, *scopes: Any, right: Any = "admin", **more: Any) -> str:
        """A new key's text; for all scopes if none is named."""
        assert self.keys is not None
        return self.keys.create(name, right, scopes or None, **more)[1]

    def asker(self, key: str | None = None) -> Asker:
        """A client, which is closed with the server."""
        self.askers.append(Asker(self.port, key))
        return self.askers[-1]


@contextmanager
def served(
    store: Path,
    *,
    keyed: bool = True,
    limits: Limits = QUICK,
    scorers: Path | None = None,
    beside: Callable[[AsyncMemory, Any], AbstractAsyncContextManager[Any]] | None = None,
) -> Iterator[Served]:
    """A server of a store, until the block ends; then the memory is closed.

    ``beside`` makes another application of the server's, in the same loop and with the same memory.
    """
    keys = Keys(store.with_name(f"{store.name}.keys"), create=True) if keyed else None
    ended = threading.Event()
    running: list[Any] = []
    askers: list[Asker] = []

    async def serve(at: Any) -> None:
        async with AsyncExitStack() as stack:
            memory = await stack.enter_async_context(AsyncMemory(store))
            app = application(memory, keys, limits=limits, scorers=scorers)
            if beside is not None:
                app = await stack.enter_async_context(beside(memory, app))
            made = server(app, limits, Safety())
            running.append(made)
            await made.serve(sockets=[at])

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
            _wait_for(Asker(port), ended)
            yield Served(url, port, keys, askers)
        finally:
            for asker in askers:
                asker.close()
            if running:
                running[0].should_exit = True
            thread.join(PATIENCE)
            if keys is not None:
                keys.close()
    assert not thread.is_alive()


def _wait_for(asker: Asker, ended: threading.Event) -> None:
    assert not ended.is_set()
    assert asker("GET", "/health").status == 200  # the socket listens already, so the first request waits for it
    asker.close()
