"""Listening sockets and their addresses."""

from __future__ import annotations

import ipaddress
import socket
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
        # Connections inherit this option. asyncio does not set it, because these sockets do not name their protocol:
        # without it the second packet of an answer waits 40 ms for the client's acknowledgement.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield made


def address_of(at: socket.socket, scheme: str = "http") -> str:
    """Return the URL of a socket."""
    host, port, *_ = at.getsockname()
    return f"{scheme}://{in_url(host)}:{port}"


def in_url(host: str) -> str:
    """Return a host as part of a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host
