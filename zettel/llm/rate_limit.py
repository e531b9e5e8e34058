"""Limits the requests to one model: a number at once, and a shared pause when the provider asks for one."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timezone
from email.utils import parsedate_to_datetime

import anyio

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds that all requests wait after a refusal without a wait time; doubled with each refusal in a row."""
DAY = 86_400.0
"""Longest accepted wait in seconds; some services ask for years."""


class RequestLimiter:
    """The limits that requests to one model share inside one event loop."""

    def __init__(self, concurrency: int) -> None:
        self._limiter = anyio.CapacityLimiter(concurrency)
        self._opens = 0.0
        self._pause = 0.0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a free slot."""
        async with self._limiter:
            yield

    async def wait(self, deadline: float) -> float:
        """Wait for the end of the pause and return 0; if it ends after ``deadline``, return its rest at once."""
        while (left := self._opens - anyio.current_time()) > 0:
            if self._opens > deadline:
                return left
            await anyio.sleep(left)
        return 0.0

    def pause(self, seconds: float | None) -> None:
        """Pause all requests for the ``seconds`` that the provider asked for, or for a growing time."""
        now = anyio.current_time()
        if seconds is None and self._opens > now:
            return  # concurrent requests got the same refusal: one pause for all
        if seconds is None:
            seconds = self._pause = min(max(FIRST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
        self._opens = max(self._opens, now + seconds)

    def reset(self) -> None:
        """Make the next pause short again, after a successful request."""
        self._pause = 0.0


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the wait in seconds that the headers of a refusal ask for, DAY at most; None without one.

    Reads ``Retry-After`` of RFC 9110, 10.2.3, in seconds or as a date, and the ``retry-after-ms`` of some providers.
    A time that has passed counts as none, because an immediate retry would be refused again.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = lowered.get(name, "")
        try:
            return _sensible(float(value) * unit)
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
