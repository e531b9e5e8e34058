"""Pauses in long work, so that the event loop also runs other tasks."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextvars import ContextVar
from typing import TypeVar

import anyio

T = TypeVar("T")

SLICE_SECONDS = 0.005
"""Seconds of work between two pauses."""
PAUSE: ContextVar[Callable[[], float]] = ContextVar("zettel.pause", default=float)
"""Returns the seconds of a pause for each second of work; 0 only runs tasks that are ready."""


async def paced(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield the items; other tasks run whenever the work on them has taken ``SLICE_SECONDS``.

    >>> async for note in paced(notes): ...  # doctest: +SKIP
    """
    since = time.monotonic()
    for item in items:
        yield item
        took = time.monotonic() - since
        if took >= SLICE_SECONDS:
            await anyio.sleep(took * PAUSE.get()())
            since = time.monotonic()
