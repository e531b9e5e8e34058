"""Limits of requests: size, rate, concurrency and time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import anyio

from zettel.errors import RequestTimeout, ServerBusy, TooLarge

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]


class Limits(NamedTuple):
    """The limits of a server."""

    body: int = 16 * 2**20
    """Bytes of a request's body."""
    upload: int = 2**30
    """Bytes of a transcript that is imported."""
    rate: float = 100.0
    """Requests a second of one key on average, with bursts of twice as many; 0: no limit."""
    at_once: int = 128
    """Concurrent requests; further ones get 503. One key may use a quarter of them. Routes without keys have a limit of
    their own."""
    head_seconds: float = 10.0
    """Timeout for the head of a request."""
    body_seconds: float = 30.0
    """Timeout for the body, in addition to its time at ``SLOWEST``."""
    send_seconds: float = 60.0
    """Timeout for a client to read the answer, in addition to its time at ``SLOWEST``."""
    stop_seconds: float = 30.0
    """Time for running requests when the server stops."""


UNPACKED = 4
"""Maximum unpacked size of a zip, in multiples of ``Limits.upload``."""
DRAIN_SECONDS = 1.0
"""Time to read and drop the rest of a rejected body; a client that is cut off may miss the answer."""
SLOWEST = 16_384
"""Slowest accepted transfer in bytes a second."""
BURST_SECONDS = 2
"""Size of a burst, in seconds of the rate."""
SHARES = 4
"""Each key may use one of this many shares of the concurrent requests."""
MOST_BUCKETS = 10_000
"""Number of keys whose rate is tracked; a key that drops out starts with a full burst."""


class RateLimiter:
    """A token bucket for each key."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = max(1.0, rate * BURST_SECONDS)
        self._left: dict[str, tuple[float, float]] = {}  # tokens and time of each update, oldest first

    def take(self, key: str, now: float) -> float:
        """Take a token at ``now`` (monotonic seconds) and return 0.0, or the seconds until there is one."""
        if not self._rate:
            return 0.0
        left, at = self._left.pop(key, (self._most, now))
        left = min(self._most, left + (now - at) * self._rate)
        wait = 0.0 if left >= 1 else (1 - left) / self._rate
        self._left[key] = (left if wait else left - 1, now)
        if len(self._left) > MOST_BUCKETS:
            del self._left[next(iter(self._left))]
        return wait


class ConcurrencyLimit:
    """Bounds the concurrent requests, in total and of each key."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._each = max(1, most // SHARES)
        self._taken = 0
        self._of: Counter[str] = Counter()

    @contextmanager
    def total(self) -> Iterator[None]:
        """Count a request. Raises ``ServerBusy``."""
        if self._taken >= self._most:
            raise ServerBusy("the server is busy: retry later")
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1

    @contextmanager
    def per_key(self, key: str) -> Iterator[None]:
        """Count a request of a key. Raises ``ServerBusy``."""
        if self._of[key] >= self._each:
            raise ServerBusy(f"this key has {self._each} requests running: retry later")
        self._of[key] += 1
        try:
            yield
        finally:
            self._of[key] -= 1
            if not self._of[key]:
                del self._of[key]


class ClientDisconnected(Exception):
    """The client disconnected before the end of its request, or does not read the answer."""


class RequestBody:
    """The body of a request, with limits of size and time."""

    def __init__(self, receive: Receive, most: int, seconds: float) -> None:
        self._receive = receive
        self._most = most
        self._seconds = seconds
        self._began = asyncio.get_running_loop().time()
        self._read = 0
        self.is_complete = False
        """True after the last part of the body was read."""
        self.is_disconnected = False
        """True after the client disconnected."""

    def require(self, size: int) -> None:
        """Raise ``TooLarge`` if ``size`` exceeds the limit."""
        if size > self._most:
            most = f"{self._most:,} bytes"
            raise TooLarge(f"the body exceeds the limit of {most}: send less at once")

    async def receive(self) -> Message:
        """Return the next part. Raises ``TooLarge``, ``RequestTimeout``, ``ClientDisconnected``."""
        if self.is_complete:
            return await self._receive()
        seconds = self._began + self._seconds + self._read / SLOWEST - asyncio.get_running_loop().time()
        try:
            with anyio.fail_after(seconds):
                message = await self._receive()
        except TimeoutError:
            raise RequestTimeout(f"the body did not arrive in {self._seconds:g} seconds: send it at once") from None
        if message["type"] == "http.disconnect":
            self.is_disconnected = True
            raise ClientDisconnected
        self._read += len(message.get("body", b""))
        self.is_complete = not message.get("more_body", False)
        self.require(self._read)
        return message

    async def drain(self) -> None:
        """Read and drop the rest, for a short time."""
        with anyio.move_on_after(DRAIN_SECONDS):
            while not self.is_complete:
                message = await self._receive()
                self.is_complete = not message.get("more_body", False)

    async def read_all(self) -> Receive:
        """Read the whole body and return a ``receive`` function for it. Raises the errors of ``receive``."""
        parts = []
        while not self.is_complete:
            parts.append((await self.receive()).get("body", b""))
        body: Message | None = {"type": "http.request", "body": b"".join(parts), "more_body": False}

        async def replay() -> Message:
            nonlocal body
            message, body = body, None
            return message or await self._receive()

        return replay
