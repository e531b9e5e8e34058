"""uvicorn's HTTP protocol with timeouts for slow clients."""

from __future__ import annotations

import asyncio
from typing import Any

from zettel.server.limits import SLOWEST, Limits

TIMEOUT_RESPONSE = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class BufferedTransport:
    """A transport that sends the head of an answer together with the start of its body, in one packet.

    uvicorn writes them right after each other. If the body comes later, the head is sent alone.
    """

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop, send_seconds: float) -> None:
        self._transport = transport
        self._loop = loop
        self._send_seconds = send_seconds
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
        if waiting:  # the client may never read it
            self._loop.call_later(self._send_seconds + waiting / SLOWEST, self._transport.abort)

    def _send(self, data: bytes = b"") -> None:
        data, self._head = self._head + data, b""
        if data and not self._transport.is_closing():
            self._transport.write(data)


def protocol_class(limits: Limits) -> Any:
    """Return uvicorn's protocol with timeouts for request heads and for reading answers."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class TimeoutProtocol(H11Protocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(BufferedTransport(transport, self.loop, limits.send_seconds))
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
            if self._timer is None:
                self._timer = self.loop.call_later(limits.head_seconds, self._close)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _close(self) -> None:
            if not self.transport.is_closing():
                self.transport.write(TIMEOUT_RESPONSE)
                self.transport.close()

    return TimeoutProtocol
