"""A TCP proxy between a driver and a server that loses requests or answers, goes down and comes up again."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Literal
from urllib.parse import urlsplit

HOST = "127.0.0.1"
COMMIT = b"\x00\x02\xb0\x12\x00\x00"
"""The request to commit, as Bolt frames it: a message of two bytes (a structure without fields, its signature)."""
CHUNK_BYTES = 1 << 16
"""Most bytes forwarded at once."""
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of no time: closing resets the connection."""

Lost = Literal["request", "answer"]


class Proxy:
    """Forwards requests and answers until a cut is requested. Used as a context manager."""

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        assert parts.hostname is not None
        self._server = (parts.hostname, parts.port or 7687)
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener: socket.socket | None = None
        self._matches: Callable[[bytes], bool] | None = None
        self._lost: Lost = "request"
        self._remaining = 0
        self._meanwhile: Callable[[], None] = lambda: None
        self.cuts = 0
        self.rewrite: Callable[[bytes], bytes] = bytes
        self.port = 0

    def __enter__(self) -> Proxy:
        self.up()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.down()

    @property
    def url(self) -> str:
        """The address for drivers, without routing, which would bypass the proxy."""
        return f"bolt://{HOST}:{self.port}"

    def cut(
        self,
        matches: Callable[[bytes], bool],
        *,
        lost: Lost,
        times: int = 1,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """Break the connection at the next ``times`` matching requests.

        ``matches`` receives all bytes that the driver sent since its last commit. A lost request never reaches the
        server; when an answer is lost, the server has done the work. ``meanwhile`` is called before the break.
        """
        with self._lock:
            self._matches, self._lost, self._remaining, self._meanwhile, self.cuts = matches, lost, times, meanwhile, 0

    def up(self) -> None:
        """Accept connections, at the same port as before."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, self.port))
        listener.listen()
        self.port = listener.getsockname()[1]
        self._listener = listener
        self._start(self._accept, listener)

    def down(self) -> None:
        """Break all connections and refuse new ones."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self._lock:
            sockets = list(self._sockets)
        for peer in sockets:
            _break(peer)
        threads, self._threads = self._threads, []
        for thread in threads:
            thread.join()

    def _start(self, work: Callable[..., None], *values: object) -> None:
        thread = threading.Thread(target=work, args=values, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                driver, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._server)
            except OSError:
                driver.close()
                continue
            with self._lock:
                self._sockets |= {driver, server}
            self._start(_Connection(self, driver, server).run)

    def next_loss(self, request: bytes) -> Lost | None:
        """Return which half of this request is lost, if any."""
        with self._lock:
            if self._remaining == 0 or self._matches is None or not self._matches(request):
                return None
            self._remaining -= 1
            self.cuts += 1
            return self._lost

    def call_meanwhile(self) -> None:
        """Call the function given for the time before the break."""
        self._meanwhile()

    def forget(self, *sockets: socket.socket) -> None:
        """Remove closed sockets."""
        with self._lock:
            self._sockets.difference_update(sockets)


class _Connection:
    """One connection, with a thread for each direction."""

    def __init__(self, proxy: Proxy, driver: socket.socket, server: socket.socket) -> None:
        self._proxy, self._driver, self._server = proxy, driver, server
        self._losing_answer = False

    def run(self) -> None:
        answers = threading.Thread(target=self._answers, daemon=True)
        answers.start()
        self._requests()
        answers.join()
        self._driver.close()
        self._server.close()
        self._proxy.forget(self._driver, self._server)

    def _requests(self) -> None:
        request = b""
        while data := _received(self._driver):
            request += data
            lost = self._proxy.next_loss(request)
            if lost == "request":
                self._proxy.call_meanwhile()
                break
            self._losing_answer = lost == "answer"
            if request.endswith(COMMIT):
                request = b""
            if not _sent(self._server, data):
                break
        else:  # only one side has ended: the last answer may still be on its way
            _half_close(self._server)
            return
        self._disconnect()

    def _answers(self) -> None:
        while data := _received(self._server):
            if self._losing_answer:
                self._proxy.call_meanwhile()
                self._disconnect()
                return
            if not _sent(self._driver, self._proxy.rewrite(data)):
                break
        self._disconnect()

    def _disconnect(self) -> None:
        _break(self._driver)
        _break(self._server)


def _received(peer: socket.socket) -> bytes:
    """Return the next bytes; b"" when the connection has ended or broken."""
    try:
        return peer.recv(CHUNK_BYTES)
    except OSError:
        return b""


def _sent(peer: socket.socket, data: bytes) -> bool:
    try:
        peer.sendall(data)
    except OSError:
        return False
    return True


def _half_close(peer: socket.socket) -> None:
    try:
        peer.shutdown(socket.SHUT_WR)
    except OSError:
        return  # it is closed already


def _break(peer: socket.socket) -> None:
    """Wake the reading thread; closing the socket sends the reset."""
    try:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        peer.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other side closed it first
