"""Bounded concurrent gather."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

from zettel.errors import ZettelError

T = TypeVar("T")

MAX_CONCURRENT = 8
"""Tasks of one call that run at the same time."""


async def bounded_gather(tasks: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Return the results in order. The first ``ZettelError`` cancels the other tasks and is raised."""
    if len(tasks) == 1:
        return [await tasks[0]()]
    done: dict[int, T] = {}
    failed: list[ZettelError] = []
    limit = anyio.CapacityLimiter(MAX_CONCURRENT)

    async def do(place: int) -> None:
        async with limit:
            try:
                done[place] = await tasks[place]()
            except ZettelError as error:  # a group of tasks would raise it among others
                failed.append(error)
                group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for place in range(len(tasks)):
            group.start_soon(do, place)
    if failed:
        raise failed[0]
    return [done[place] for place in range(len(tasks))]
