"""Listening sockets and their addresses."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

BACKLOG = 512
"""Connections that wait to be accepted."""


def is_loopback(host: str) -> bool:
    """Return whether only programs on this machine reach the host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Open a socket at an address; ``port`` 0 selects a free one. Raises ``OSError``."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        made = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise OSError(f"cannot listen at {host}, port {port}: {error.strerror or error}") from None
    with made:
        _send_at_once(made)
        yield made


def _send_at_once(at: socket.socket) -> None:
    """Connections inherit this option. asyncio does not set it, because these sockets do not name their protocol:
    without it the second packet of an answer waits 40 ms for the client's acknowledgement."""
    at.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


if sys.platform == "linux":

    @contextmanager
    def reserved(host: str, port: int) -> Iterator[socket.socket]:
        """Bind a socket whose address several processes share, each with a ``queue`` of its own. Raises ``OSError``."""
        with listening(host, port) as free:  # another server at the address is an error
            family, address = free.family, free.getsockname()
        with _bound(family, address) as made:
            yield made

    def queue(at: socket.socket) -> socket.socket:
        """Return a socket at a reserved address. The system spreads connections evenly over those that listen."""
        made = _bound(at.family, at.getsockname())
        _send_at_once(made)
        return made

    def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
        made = socket.socket(family, socket.SOCK_STREAM)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            made.setsockopt(socket.SOL_SOCKET, option, 1)
        try:
            made.bind(address)
        except OSError:
            made.close()
            raise
        return made

else:
    reserved = listening

    def queue(at: socket.socket) -> socket.socket:
        """Return the socket: where the system does not spread connections, the processes share one queue."""
        return at


def address_of(at: socket.socket, scheme: str = "http") -> str:
    """Return the URL of a socket."""
    host, port, *_ = at.getsockname()
    return f"{scheme}://{in_url(host)}:{port}"


def in_url(host: str) -> str:
    """Return a host as part of a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host
