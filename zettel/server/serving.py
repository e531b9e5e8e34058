"""Serving an application over sockets: who may reach it, how it is encrypted, and how it ends."""

from __future__ import annotations

import logging
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from zettel.errors import InvalidInput, MissingExtra
from zettel.remote import sockets
from zettel.server.limits import Limits
from zettel.server.logs import LOG, JsonLines
from zettel.server.otlp import exporting
from zettel.server.uvicorn_protocol import protocol_class

if TYPE_CHECKING:
    from zettel.server.proxy import Proxy

DEFAULT_PORT = 8766
MOST_CONNECTIONS = 2_000
"""Maximum number of open connections; each takes a file descriptor and some kilobytes. Beyond it, the server still
accepts connections, and uvicorn answers requests on all connections with a plain 503."""
OTHER_FILES = 200
"""File descriptors that connections leave for the store and other files, if the system limits them."""
IDLE_SECONDS = 75
"""Timeout of an idle connection, longer than in most proxies and clients."""


class Safety(NamedTuple):
    """The encryption of the server: its own certificate, or a ``proxy`` in front with this address."""

    certfile: Path | None = None
    keyfile: Path | None = None
    proxy: str | None = None


def require_server() -> None:
    """Raise ``MissingExtra`` if the packages of ``[server]`` are not installed."""
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtra("the HTTP server", "server") from error


def require_safe(host: str, keyed: bool, safety: Safety) -> None:
    """Raise ``InvalidInput`` if other machines can reach the server without keys or without encryption."""
    if not keyed and safety.proxy is not None:
        raise InvalidInput(
            "without keys every client of the proxy would have all rights: create a key with `zettel keys create`, "
            "or omit --behind-proxy"
        )
    if sockets.is_loopback(host):
        return
    if not keyed:
        raise InvalidInput(
            f"other machines can reach {host!r}, and no keys exist: create a key with `zettel keys create`, "
            "or listen at 127.0.0.1"
        )
    if safety.certfile is None and safety.proxy is None:
        raise InvalidInput(
            f"at {host!r} keys and memories would be sent unencrypted: set --certfile and --keyfile, or set "
            "--behind-proxy to the address of a proxy that encrypts them"
        )


def address_of(at: socket.socket, safety: Safety) -> str:
    """Return the URL of the server behind a socket."""
    return sockets.address_of(at, "http" if safety.certfile is None else "https")


@dataclass(frozen=True)
class ServerArguments:
    """All that a server process needs besides its socket. ``opening`` are the arguments of ``AsyncMemory``."""

    store: str
    opening: Mapping[str, Any]
    keys: Path | None
    limits: Limits
    safety: Safety
    scorers: Path | None = None
    """Folder of the scorers that clients tune."""
    audit: Path | None = None
    """File of the audit log."""
    otel: bool = False
    """True to export traces and metrics by OTLP."""


async def run(
    arguments: ServerArguments, at: socket.socket, ready: Callable[[], None], proxy: Proxy | None = None
) -> None:
    """Open a store and serve it on a socket until a signal; then finish running requests and close the memory."""
    from zettel.async_memory import AsyncMemory
    from zettel.local.audit_log import AuditLog
    from zettel.server.app import application
    from zettel.server.keys import Keys

    limits = arguments.limits
    async with AsyncExitStack() as stack:
        keys = None
        if arguments.keys is not None:
            keys = stack.enter_context(closing(Keys(arguments.keys)))
        if arguments.otel:
            stack.enter_context(exporting())
        audit = None if arguments.audit is None else AuditLog(arguments.audit)
        opening = {**arguments.opening, "audit": audit}
        memory = await stack.enter_async_context(AsyncMemory(arguments.store, **opening))
        if proxy is not None:
            await stack.enter_async_context(proxy)
        app = application(memory, keys, limits=limits, scorers=arguments.scorers, audit=audit, proxy=proxy)
        uvicorn_server = server(app, limits, arguments.safety)
        at.listen(sockets.BACKLOG)  # one of several processes receives connections only when it can answer
        ready()
        await uvicorn_server.serve(sockets=[at])


def server(app: Any, limits: Limits, safety: Safety) -> Any:
    """Return a uvicorn server: ``serve(sockets=[…])`` runs it until SIGINT, SIGTERM or ``should_exit``.

    At the end it answers running requests first. Raises ``InvalidInput`` for an unusable certificate.
    """
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Stop the server at a signal, without raising the signal again: the memory is closed afterwards."""
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
        reason = error.strerror or str(error)
        raise InvalidInput(f"{safety.certfile} with {safety.keyfile} is not a usable certificate: {reason}") from None


@contextmanager
def logged(enabled: bool = True) -> Iterator[None]:
    """Write the logs of the server and uvicorn to stderr as JSON lines; without ``enabled`` only errors."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    others = ("uvicorn", "zettel.privacy", "zettel.webhooks")
    loggers = [(LOG, logging.INFO if enabled else logging.WARNING)]
    loggers += [(logging.getLogger(name), logging.WARNING) for name in others]
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
