"""What stands between a driver and a server and breaks: a TCP proxy that loses requests or answers, goes down and comes
up again, on real sockets.
"""

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
AT_ONCE = 1 << 16
"""Bytes passed on at once."""
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of no time: closing tells the other side that the connection broke."""

Lost = Literal["request", "answer"]


class Proxy:
    """Passes on what drivers and a server say, until it is told to break. Used as a context manager."""

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        assert parts.hostname is not None
        self._server = (parts.hostname, parts.port or 7687)
        self._lock = threading.Lock()
        self._ends: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener: socket.socket | None = None
        self._wanted: Callable[[bytes], bool] | None = None
        self._lost: Lost = "request"
        self._left = 0
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
        """Where drivers find it; without routing, which would lead them past it."""
        return f"bolt://{HOST}:{self.port}"

    def cut(
        self,
        wanted: Callable[[bytes], bool],
        *,
        lost: Lost,
        times: int = 1,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """Break the connection at the next requests that are wanted.

        ``wanted`` is shown all that was said on the connection since its last commit. A lost request never reaches the
        server; a lost answer was given, so that what was asked for is done. ``meanwhile`` is called before the break.
        """
        with self._lock:
            self._wanted, self._lost, self._left, self._meanwhile, self.cuts = wanted, lost, times, meanwhile, 0

    def up(self) -> None:
        """Accept connections, at the port of last time."""
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
            ends = list(self._ends)
        for end in ends:
            _break(end)
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
                self._ends |= {driver, server}
            self._start(_Line(self, driver, server).run)

    def strike(self, said: bytes) -> Lost | None:
        """Whether this request is one to be lost, and how."""
        with self._lock:
            if self._left == 0 or self._wanted is None or not self._wanted(said):
                return None
            self._left -= 1
            self.cuts += 1
            return self._lost

    def interlude(self) -> None:
        """What happens before the break."""
        self._meanwhile()

    def forget(self, *ends: socket.socket) -> None:
        """These are closed."""
        with self._lock:
            self._ends.difference_update(ends)


class _Line:
    """One connection, with a thread for each direction."""

    def __init__(self, proxy: Proxy, driver: socket.socket, server: socket.socket) -> None:
        self._proxy, self._driver, self._server = proxy, driver, server
        self._losing = False

    def run(self) -> None:
        answers = threading.Thread(target=self._answers, daemon=True)
        answers.start()
        self._requests()
        answers.join()
        self._driver.close()
        self._server.close()
        self._proxy.forget(self._driver, self._server)

    def _requests(self) -> None:
        said = b""
        while data := _received(self._driver):
            said += data
            lost = self._proxy.strike(said)
            if lost == "request":
                self._proxy.interlude()
                break
            self._losing = lost == "answer"
            if said.endswith(COMMIT):
                said = b""
            if not _sent(self._server, data):
                break
        else:  # what was asked for last may be on its way: only one side has ended
            _half_close(self._server)
            return
        self._cut()

    def _answers(self) -> None:
        while data := _received(self._server):
            if self._losing:
                self._proxy.interlude()
                self._cut()
                return
            if not _sent(self._driver, self._proxy.rewrite(data)):
                break
        self._cut()

    def _cut(self) -> None:
        _break(self._driver)
        _break(self._server)


def _received(end: socket.socket) -> bytes:
    """The next bytes; none when the connection has ended or broken."""
    try:
        return end.recv(AT_ONCE)
    except OSError:
        return b""


def _sent(end: socket.socket, data: bytes) -> bool:
    try:
        end.sendall(data)
    except OSError:
        return False
    return True


def _half_close(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_WR)
    except OSError:
        return  # it is closed already


def _break(end: socket.socket) -> None:
    """Wake whoever reads there; the reset is sent when it is closed."""
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other side was first
