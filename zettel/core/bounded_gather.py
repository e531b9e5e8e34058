"""Concurrent calls, with a bound on those that run at the same time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import anyio

T = TypeVar("T")
First = TypeVar("First")
Second = TypeVar("Second")

MAX_CONCURRENT = 8
"""Tasks of one call that run at the same time."""


async def bounded_gather(tasks: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Return the results in order. The first error cancels the other tasks and is raised, as itself."""
    if len(tasks) == 1:
        return [await tasks[0]()]
    done: dict[int, T] = {}
    failed: list[BaseException] = []
    limit = anyio.CapacityLimiter(MAX_CONCURRENT)

    async def do(place: int) -> None:
        async with limit:
            try:
                done[place] = await tasks[place]()
            except BaseException as error:  # also a cancellation from elsewhere, which the group would swallow
                failed.append(error)
                raise

    try:
        async with anyio.create_task_group() as group:
            for place in range(len(tasks)):
                group.start_soon(do, place)
    except Exception:  # the ExceptionGroup of what failed
        if not failed:
            raise
    if failed:
        raise failed[0]
    return [done[place] for place in range(len(tasks))]


async def both(first: Callable[[], Awaitable[First]], second: Callable[[], Awaitable[Second]]) -> tuple[First, Second]:
    """Return the results of two calls that run at the same time. Errors as in :func:`bounded_gather`."""
    tasks: list[Callable[[], Awaitable[Any]]] = [first, second]
    one, two = await bounded_gather(tasks)
    return one, two
