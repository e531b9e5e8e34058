"""Limits of requests: size, rate, concurrency and time."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

import anyio

from zettel.core.pacing import paced
from zettel.errors import RequestTimeout, ServerBusy, TooLarge
from zettel.server.json_limits import JsonLimits

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]


class Limits(NamedTuple):
    """The limits of a server."""

    body: int = 4 * 2**20
    """Bytes of a request's body."""
    read_body: int = 2**18
    """Bytes of the body of a request that only reads, such as a search."""
    values: int = 20_000
    """Values of a JSON body, names of fields included; a request that only reads may have a fifth."""
    upload: int = 2**30
    """Bytes of a transcript that is imported."""
    rate: float = 100.0
    """Requests a second of one key on average, with bursts of twice as many; 0: no limit. A body costs as much as one
    request for each ``COST_BYTES`` and each ``COST_VALUES``."""
    at_once: int = 128
    """Concurrent requests; further ones get 503. One key may use a quarter of them, most of which wait in its queue.
    Routes without keys have a limit of their own."""
    head_seconds: float = 10.0
    """Timeout for the head of a request."""
    body_seconds: float = 30.0
    """Timeout for the body, in addition to its time at ``SLOWEST``."""
    send_seconds: float = 60.0
    """Timeout for a client to read the answer, in addition to its time at ``SLOWEST``."""
    stop_seconds: float = 30.0
    """Time for running requests when the server stops."""
    rates: Path | None = None
    """File in which several server processes share the rate of each key."""


UNPACKED = 4
"""Maximum unpacked size of a zip, in multiples of ``Limits.upload``."""
DRAIN_SECONDS = 1.0
"""Time to read and drop the rest of a rejected body; a client that is cut off may miss the answer."""
SLOWEST = 16_384
"""Slowest accepted transfer in bytes a second."""
BURST_SECONDS = 2
"""Size of a burst, in seconds of the rate."""
COST_BYTES, COST_VALUES = 16_384, 100
"""Bytes and JSON values of a body that count as another request of its key."""
LONGEST_DEBT = 10
"""Seconds of the rate that bodies may cost in advance."""
REFUSAL_SECONDS = 0.25
"""Pause before a refusal because of the rate, so that a key that repeats requests at once does not delay others."""
SHARES = 4
"""Each key may use one of this many shares of the concurrent requests."""
PIECE = 4_096
"""Bytes of a body that are checked between two pauses at most."""
RUNNING = 2
"""Requests of one key that run at the same time; its others wait, so that they do not delay other keys."""
ACTIVE_SECONDS = 1.0
"""Time after its last request for which a key counts as active."""
PAUSE_OF_SHARED = 3.0
"""Seconds for which long work pauses for each second of work, while other keys are active."""
MOST_BUCKETS = 10_000
"""Number of keys whose rate is tracked; a key that drops out starts with a full burst."""
_BUCKETS = "CREATE TABLE IF NOT EXISTS buckets (key TEXT PRIMARY KEY, tokens REAL, at REAL) WITHOUT ROWID"


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

    def charge(self, key: str, tokens: float) -> None:
        """Take tokens for a request that took its first one already; the next requests wait for a debt."""
        if self._rate and key in self._left:
            left, at = self._left[key]
            self._left[key] = (max(left - tokens, -LONGEST_DEBT * self._rate), at)


class SharedRateLimiter(RateLimiter):
    """Token buckets that the server processes of one machine share in a file."""

    def __init__(self, rate: float, file: Path) -> None:
        super().__init__(rate)
        self._file = sqlite3.connect(file, isolation_level=None)
        for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = OFF", _BUCKETS):
            self._file.execute(statement)

    def take(self, key: str, now: float) -> float:
        """Take a token, as ``RateLimiter.take`` does."""
        with self._bucket(key):
            return super().take(key, now)

    def charge(self, key: str, tokens: float) -> None:
        """Take tokens, as ``RateLimiter.charge`` does."""
        with self._bucket(key):
            super().charge(key, tokens)

    @contextmanager
    def _bucket(self, key: str) -> Iterator[None]:
        """Read a key's bucket, and write it after the block."""
        if not self._rate:
            yield
            return
        self._file.execute("BEGIN IMMEDIATE")
        try:
            row = self._file.execute("SELECT tokens, at FROM buckets WHERE key = ?", (key,)).fetchone()
            self._left = {} if row is None else {key: row}
            yield
            if key in self._left:
                self._file.execute("INSERT OR REPLACE INTO buckets VALUES (?, ?, ?)", (key, *self._left[key]))
        finally:
            self._file.execute("COMMIT")


class ConcurrencyLimit:
    """Bounds the concurrent requests, in total and of each key."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._each = max(1, most // SHARES)
        self._taken = 0
        self._of: Counter[str] = Counter()
        self._queues: WeakValueDictionary[str, anyio.Semaphore] = WeakValueDictionary()
        self._latest: tuple[str, float] = "", -ACTIVE_SECONDS  # the key of the last request, and its time
        self._other = -ACTIVE_SECONDS  # time of the last request of another key than that

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

    def begin(self, key: str) -> Callable[[], float]:
        """Record a request of a key, and return the pause for its work, see ``zettel.core.pacing``."""
        latest, at = self._latest
        if latest != key:
            self._other = at
        self._latest = key, time.monotonic()
        return partial(self._pause, key)

    def _pause(self, key: str) -> float:
        """Return the pause for each second of work of a key: 0 unless another key is active."""
        latest, at = self._latest
        other = self._other if latest == key else at
        return PAUSE_OF_SHARED if time.monotonic() - other < ACTIVE_SECONDS else 0.0

    def queue(self, key: str) -> anyio.Semaphore:
        """Return the queue of a key: ``RUNNING`` requests enter at once, the others in order of arrival."""
        return self._queues.setdefault(key, anyio.Semaphore(min(RUNNING, self._each)))


class ClientDisconnected(Exception):
    """The client disconnected before the end of its request, or does not read the answer."""


class RequestBody:
    """The body of a request, with limits of size and time, and of ``values`` if it is JSON (None: it is a file)."""

    def __init__(self, receive: Receive, most: int, seconds: float, values: int | None = None) -> None:
        self._receive = receive
        self._most = most
        self._seconds = seconds
        self._json = None if values is None else JsonLimits(values)
        self._began: float | None = None
        self._read = 0
        self.is_complete = False
        """True after the last part of the body was read."""
        self.is_disconnected = False
        """True after the client disconnected."""

    @property
    def cost(self) -> float:
        """The cost of the parts so far, in requests."""
        values = 0 if self._json is None else self._json.values
        return self._read / COST_BYTES + values / COST_VALUES

    def require(self, size: int) -> None:
        """Raise ``TooLarge`` if ``size`` exceeds the limit."""
        if size > self._most:
            most = f"{self._most:,} bytes"
            raise TooLarge(f"the body exceeds the limit of {most}: send less at once")

    async def receive(self) -> Message:
        """Return the next part. Raises ``TooLarge``, ``RequestTimeout``, ``ClientDisconnected``."""
        if self.is_complete:
            return await self._receive()
        now = asyncio.get_running_loop().time()
        self._began = now if self._began is None else self._began  # the time in the queue of its key does not count
        seconds = self._began + self._seconds + self._read / SLOWEST - now
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
        if self._json is not None:
            body = message.get("body", b"")
            async for start in paced(range(0, len(body), PIECE)):
                self._json.feed(body[start : start + PIECE])
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
