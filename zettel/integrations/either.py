"""One implementation for ``Memory`` and ``AsyncMemory``: what is written for the second is done with either.

An integration of several steps is one coroutine function that takes an ``AsyncMemory``; a ``Memory`` runs it in its own
loop, in one hop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias, TypeVar

from zettel.async_memory import AsyncMemory
from zettel.errors import InvalidInput
from zettel.memory import Memory

R = TypeVar("R")
Either: TypeAlias = Memory | AsyncMemory
Work: TypeAlias = Callable[[AsyncMemory], Awaitable[R]]


def wait(memory: Either, work: Work[R]) -> R:
    """Do ``work`` and wait for it. Raises ``InvalidInput`` for an ``AsyncMemory``, which can only be awaited."""
    if isinstance(memory, AsyncMemory):
        raise InvalidInput("an AsyncMemory has to be awaited: use the method that begins with an a, or a Memory")
    return memory._bridge.call(partial(work, memory._bridge.inner))


async def reach(memory: Either, work: Work[R]) -> R:
    """Do ``work`` and await it, with a ``Memory`` too: there it is done in the memory's own loop."""
    if isinstance(memory, AsyncMemory):
        return await work(memory)
    return await memory._bridge.reach(partial(work, memory._bridge.inner))


def require_memory(memory: object) -> None:
    """Raise ``InvalidInput`` for anything else."""
    if not isinstance(memory, (Memory, AsyncMemory)):
        raise InvalidInput(f"{type(memory).__name__} is no memory: hand in a Memory or an AsyncMemory")
