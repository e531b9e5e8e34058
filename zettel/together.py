"""Several things under way together, and one clear error when one of them goes wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

from zettel.errors import ZettelError

T = TypeVar("T")

AT_ONCE = 8
"""Things of one call that are under way together: while one waits another is worked on."""


async def together(tasks: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """What each task gives, in order; the first error of ours ends the others, and is raised as it is."""
    if len(tasks) == 1:
        return [await tasks[0]()]
    done: dict[int, T] = {}
    failed: list[ZettelError] = []
    limit = anyio.CapacityLimiter(AT_ONCE)

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
