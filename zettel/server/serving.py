"""Serving an application over sockets: who may reach it, how it is encrypted, and how it ends."""

from __future__ import annotations

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
from zettel.remote import sockets
from zettel.server.limits import Limits
from zettel.server.logs import LOG, JsonLines
from zettel.server.uvicorn_protocol import protocol_class

if TYPE_CHECKING:
    from zettel.server.keys import Keys

DEFAULT_PORT = 8766
MOST_CONNECTIONS = 2_000
"""Open at once, each with a file descriptor and some kilobytes. While there are so many, a request on any of them, old
or new, gets a plain 503 of uvicorn's; the connections themselves are taken nevertheless."""
OTHER_FILES = 200
"""File descriptors that are left for the store and what else there is, where the system allows few."""
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
    if sockets.is_loopback(host):
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


def address_of(at: socket.socket, safety: Safety) -> str:
    """Where the server answers through a socket."""
    return sockets.address_of(at, "http" if safety.certfile is None else "https")


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
        app, http=protocol_class(limits), ws="none", lifespan="off", log_config=None, access_log=False,
        server_header=False, timeout_keep_alive=IDLE_SECONDS, limit_concurrency=most_connections(),
        backlog=sockets.BACKLOG, timeout_graceful_shutdown=int(limits.stop_seconds),
        proxy_headers=safety.proxy is not None,
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
