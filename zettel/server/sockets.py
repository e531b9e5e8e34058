"""Sockets to listen at: who reaches them, and by what address."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager

BACKLOG = 512
"""Connections that wait to be taken."""


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


def address_of(at: socket.socket, scheme: str = "http") -> str:
    """The URL that leads to a socket."""
    host, port, *_ = at.getsockname()
    return f"{scheme}://{in_url(host)}:{port}"


def in_url(host: str) -> str:
    """A host as URLs have it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host
