"""Serving an application over sockets: who may reach it, how it is encrypted, and how it ends."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from zettel.errors import InvalidInput, MissingExtra
from zettel.server.limits import SLOWEST, Limits
from zettel.server.logs import LOG, JsonLines

if TYPE_CHECKING:
    from zettel.server.keys import Keys

DEFAULT_PORT = 8766
LATE = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
MOST_CONNECTIONS = 2_000
"""Open at once, each with a file descriptor and some kilobytes. While there are so many, a request on any of them, old
or new, gets a plain 503 of uvicorn's; the connections themselves are taken nevertheless."""
OTHER_FILES = 200
"""File descriptors that are left for the store and what else there is, where the system allows few."""
BACKLOG = 512
"""Connections that wait to be taken."""
IDLE_SECONDS = 75
"""That a connection without a request is kept open: longer than most proxies and clients keep theirs."""


class Safety(NamedTuple):
    """How what is sent is kept from others: by a certificate here, or by a ``proxy`` in front, at this address."""

    certfile: Path | None = None
    keyfile: Path | None = None
    proxy: str | None = None


def require_server() -> None:
    """Raise ``MissingExtra`` where the packages of ``[server]`` are not installed."""
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtra("the HTTP server", "server") from error


def require_safe(host: str, keyed: bool, safety: Safety) -> None:
    """Raise ``InvalidInput`` where other machines come in, at an address or by a proxy, unless that is safe."""
    if not keyed and safety.proxy is not None:
        raise InvalidInput(
            "behind a proxy whoever reaches it would have all rights, for there are no keys: make one with "
            "`zettel keys create`, or leave --behind-proxy out"
        )
    if is_loopback(host):
        return
    if not keyed:
        raise InvalidInput(
            f"{host!r} may be reached by other machines, and there are no keys: make one with `zettel keys create`, "
            "or listen at 127.0.0.1"
        )
    if safety.certfile is None and safety.proxy is None:
        raise InvalidInput(
            f"at {host!r} keys and memories would be sent unencrypted: name --certfile and --keyfile, or the address "
            "of the proxy in front that encrypts them with --behind-proxy"
        )


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket at an address; ``port`` 0 takes a free one. Raises ``OSError`` in one line."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        made = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise OSError(f"cannot listen at {host}, port {port}: {error.strerror or error}") from None
    with made:
        # Connections inherit it. asyncio sets it only on sockets that say they are of TCP, which these do not: without
        # it the second half of an answer waits 40 ms for the client to acknowledge the first.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield made


def address_of(at: socket.socket, safety: Safety) -> str:
    """Where the server answers through a socket."""
    host, port, *_ = at.getsockname()
    return f"{'http' if safety.certfile is None else 'https'}://{f'[{host}]' if ':' in host else host}:{port}"


async def run(
    store: str,
    opening: Mapping[str, Any],
    at: socket.socket,
    keys: Keys | None,
    limits: Limits,
    safety: Safety,
    scorers: Path | None,
    ready: Callable[[], None],
) -> None:
    """Open a store and serve it through a socket until a signal; what was begun is answered, and the memory closed."""
    from zettel.async_memory import AsyncMemory
    from zettel.server.app import application

    async with AsyncMemory(store, **opening) as memory:
        made = server(application(memory, keys, limits=limits, scorers=scorers), limits, safety)
        ready()
        await made.serve(sockets=[at])


def server(app: Any, limits: Limits, safety: Safety) -> Any:
    """A uvicorn server for an application: ``serve(sockets=[…])`` runs it until SIGINT, SIGTERM or ``should_exit``.

    When it ends, requests under way are answered first. Raises ``InvalidInput`` for a certificate that cannot be used.
    """
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Signals end it, and nothing else: the memory is still to be closed, so none is raised again."""
            if threading.current_thread() is not threading.main_thread():
                yield
                return
            former = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
            try:
                yield
            finally:
                for number, handler in former.items():
                    signal.signal(number, handler)

    _require_certificate(safety)
    config = uvicorn.Config(
        app, http=_patient(limits.head_seconds), ws="none", lifespan="off", log_config=None, access_log=False,
        server_header=False, timeout_keep_alive=IDLE_SECONDS, limit_concurrency=most_connections(), backlog=BACKLOG,
        timeout_graceful_shutdown=int(limits.stop_seconds), proxy_headers=safety.proxy is not None,
        forwarded_allow_ips=safety.proxy or "", ssl_certfile=safety.certfile, ssl_keyfile=safety.keyfile,
    )  # fmt: skip
    return Server(config)


def most_connections() -> int:
    """``MOST_CONNECTIONS``, or fewer where this process may not open as many files."""
    try:
        import resource
    except ImportError:  # Windows knows no such limit
        return MOST_CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(1, min(MOST_CONNECTIONS, soft - min(OTHER_FILES, soft // 2)))


def _require_certificate(safety: Safety) -> None:
    if safety.certfile is None:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(safety.certfile, safety.keyfile)
    except OSError as error:
        told = error.strerror or str(error)
        raise InvalidInput(f"{safety.certfile} with {safety.keyfile} cannot be used as a certificate: {told}") from None


class _Joined:
    """A transport that sends the head of an answer together with its body: half the work for both sides.

    uvicorn writes them one right after the other. A head whose body lets itself be waited for goes alone.
    """

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._head and data.startswith(b"HTTP/1."):
            self._head = data
            self._loop.call_soon(self._send)
        else:
            self._send(data)

    def close(self) -> None:
        self._send()
        waiting = 0 if self._transport.is_closing() else self._transport.get_write_buffer_size()
        self._transport.close()
        if waiting:  # for a client that may never take it
            self._loop.call_later(Limits().send_seconds + waiting / SLOWEST, self._transport.abort)

    def _send(self, data: bytes = b"") -> None:
        data, self._head = self._head + data, b""
        if data and not self._transport.is_closing():
            self._transport.write(data)


def _patient(seconds: float) -> Any:
    """uvicorn's protocol, which waits for a request's head only so long, and writes answers in one piece."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(_Joined(transport, self.loop))
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is h11.IDLE:
                self._wait()
            else:
                self._stop()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _wait(self) -> None:
            if self._late is None:
                self._late = self.loop.call_later(seconds, self._close)

        def _stop(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

        def _close(self) -> None:
            if not self.transport.is_closing():
                self.transport.write(LATE)
                self.transport.close()

    return Patient


@contextmanager
def logged(enabled: bool = True) -> Iterator[None]:
    """Inside, the server's log and uvicorn's go to stderr as JSON lines; not ``enabled``: only what went wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    loggers = [(LOG, logging.INFO if enabled else logging.WARNING), (logging.getLogger("uvicorn"), logging.WARNING)]
    for logger, level in loggers:
        logger.addHandler(handler)
        logger.setLevel(level)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, _ in loggers:
            logger.removeHandler(handler)
            logger.propagate = True
