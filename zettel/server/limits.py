"""Limits: what one client may take of a server, so that something is left for the others."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import anyio

from zettel.errors import ServerBusy, TooLarge, TooSlow

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]


class Limits(NamedTuple):
    """What a server takes."""

    body: int = 16 * 2**20
    """Bytes of a request's body; of an event's content a million are taken anyway."""
    upload: int = 2**30
    """Bytes of a transcript that is imported."""
    rate: float = 100.0
    """Requests a second of one key in the long run, and twice as many at once; 0: any number."""
    at_once: int = 128
    """Requests that are being answered; more are told to come again. One key has a quarter of them at most, and those
    that want no key are counted by themselves, so that nobody takes all places."""
    head_seconds: float = 10.0
    """For a request's head to arrive."""
    body_seconds: float = 30.0
    """For its body to arrive, beside what it takes at ``SLOWEST``."""
    send_seconds: float = 60.0
    """For a client to take what it is sent, beside what it takes at ``SLOWEST``."""
    stop_seconds: float = 30.0
    """For requests under way when the server is asked to stop."""


UNPACKED = 4
"""How many times ``Limits.upload`` a zip may unpack to."""
DRAIN_SECONDS = 1.0
"""That what a refused client still sends is taken and thrown away: one that is cut off may not hear the reason."""
SLOWEST = 16_384
"""Bytes a second below which a body, or who takes an answer, is too slow, as over a modem."""
BURST_SECONDS = 2
"""Seconds' worth of requests that may come at once."""
SHARES = 4
"""Keys that it takes to take all places."""
MOST_BUCKETS = 10_000
"""Keys whose use is remembered: one that is forgotten has its whole burst again."""


class Buckets:
    """A token bucket for each key: requests take one, and time fills it again."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = max(1.0, rate * BURST_SECONDS)
        self._left: dict[str, tuple[float, float]] = {}  # what was left, and when; in the order of use

    def take(self, key: str, now: float) -> float:
        """Take one at ``now`` (seconds of a clock that only grows); 0.0, or the seconds to wait until there is one."""
        if not self._rate:
            return 0.0
        left, at = self._left.pop(key, (self._most, now))
        left = min(self._most, left + (now - at) * self._rate)
        wait = 0.0 if left >= 1 else (1 - left) / self._rate
        self._left[key] = (left if wait else left - 1, now)
        if len(self._left) > MOST_BUCKETS:
            del self._left[next(iter(self._left))]
        return wait


class Places:
    """How many requests are being answered at once, and of one key a quarter of it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._each = max(1, most // SHARES)
        self._taken = 0
        self._of: Counter[str] = Counter()

    @contextmanager
    def one(self) -> Iterator[None]:
        """A place. Raises ``ServerBusy``."""
        if self._taken >= self._most:
            raise ServerBusy("the server has too much to do: come again later")
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1

    @contextmanager
    def of(self, key: str) -> Iterator[None]:
        """A place among those of a key. Raises ``ServerBusy``."""
        if self._of[key] >= self._each:
            raise ServerBusy(f"{self._each} requests of this key are being answered: come again later")
        self._of[key] += 1
        try:
            yield
        finally:
            self._of[key] -= 1
            if not self._of[key]:
                del self._of[key]


class Gone(Exception):
    """The client left before it had said what it wants, or does not take what it is told."""


class Incoming:
    """The body of a request as it arrives, held to its size and its time."""

    def __init__(self, receive: Receive, most: int, seconds: float) -> None:
        self._receive = receive
        self._most = most
        self._seconds = seconds
        self._began = asyncio.get_running_loop().time()
        self._read = 0
        self.whole_read = False
        """Whether its end has come."""
        self.gone = False
        """Whether the client left before."""

    def require(self, size: int) -> None:
        """Raise ``TooLarge`` for a size that is too large."""
        if size > self._most:
            most = f"{self._most:,} bytes"
            raise TooLarge(f"the body is larger than the {most} that this server takes: send less at once")

    async def receive(self) -> Message:
        """The next part. Raises ``TooLarge``, ``TooSlow``, ``Gone``."""
        if self.whole_read:
            return await self._receive()
        seconds = self._began + self._seconds + self._read / SLOWEST - asyncio.get_running_loop().time()
        try:
            with anyio.fail_after(seconds):
                message = await self._receive()
        except TimeoutError:
            raise TooSlow(f"the body did not arrive in {self._seconds:g} seconds: send it at once") from None
        if message["type"] == "http.disconnect":
            self.gone = True
            raise Gone
        self._read += len(message.get("body", b""))
        self.whole_read = not message.get("more_body", False)
        self.require(self._read)
        return message

    async def drain(self) -> None:
        """Take what still comes, for a while."""
        with anyio.move_on_after(DRAIN_SECONDS):
            while not self.whole_read:
                message = await self._receive()
                self.whole_read = not message.get("more_body", False)

    async def whole(self) -> Receive:
        """All of it, to be handed on at once. Raises what ``receive`` raises."""
        parts = []
        while not self.whole_read:
            parts.append((await self.receive()).get("body", b""))
        body: Message | None = {"type": "http.request", "body": b"".join(parts), "more_body": False}

        async def again() -> Message:
            nonlocal body
            told, body = body, None
            return told or await self._receive()

        return again
