"""The way to one model: so many requests at once, and a pause for all of them when the provider asks for one."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timezone
from email.utils import parsedate_to_datetime

import anyio

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds that all requests wait after a refusal that does not say how long; doubled with each in a row."""
DAY = 86_400.0
"""Seconds that a service is believed to want at most; what asks for years means nothing by it."""


class Lane:
    """What the requests to one model share inside one event loop."""

    def __init__(self, concurrency: int) -> None:
        self._limiter = anyio.CapacityLimiter(concurrency)
        self._opens = 0.0
        self._pause = 0.0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """One of the places, as soon as one is free."""
        async with self._limiter:
            yield

    async def wait(self, deadline: float) -> float:
        """Wait for the end of a pause; how many seconds are left of one that ends after ``deadline``, at once."""
        while (left := self._opens - anyio.current_time()) > 0:
            if self._opens > deadline:
                return left
            await anyio.sleep(left)
        return 0.0

    def slow_down(self, asked: float | None) -> None:
        """The provider wants fewer requests: the next go out after ``asked`` seconds, or after a growing pause."""
        now = anyio.current_time()
        if asked is None and self._opens > now:
            return  # others that were under way met the same refusal: one pause for all
        if asked is None:
            asked = self._pause = min(max(FIRST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
        self._opens = max(self._opens, now + asked)

    def flows(self) -> None:
        """A request was answered: the next pause is a short one again."""
        self._pause = 0.0


def seconds_asked(headers: Mapping[str, str]) -> float | None:
    """What the headers of a refusal ask to wait for, in seconds, DAY at most; None if they do not say.

    ``Retry-After`` of RFC 9110, 10.2.3, in seconds or as a date, and the ``retry-after-ms`` of some providers. No time,
    or one that has passed, says nothing: to ask again at once would be refused again.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        told = lowered.get(name, "")
        try:
            return _sensible(float(told) * unit)
        except ValueError:
            pass
    try:
        when = parsedate_to_datetime(lowered.get("retry-after", ""))
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=timezone.utc)
    return _sensible(when.timestamp() - time.time())


def _sensible(seconds: float) -> float | None:
    return min(seconds, DAY) if seconds > 0 else None
