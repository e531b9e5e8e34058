"""Runs one coroutine function on a ``Memory`` or an ``AsyncMemory``.

An integration writes each operation once, as a coroutine function that takes an ``AsyncMemory``. A ``Memory`` runs it
in its own event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from zettel.async_memory import AsyncMemory
from zettel.core.principals import acting_as
from zettel.errors import InvalidInput
from zettel.memory import Memory

R = TypeVar("R")
AnyMemory: TypeAlias = Memory | AsyncMemory
Operation: TypeAlias = Callable[[AsyncMemory], Awaitable[R]]

_LOCKS: WeakKeyDictionary[AsyncMemory, asyncio.Lock] = WeakKeyDictionary()


def run_sync(memory: AnyMemory, operation: Operation[R]) -> R:
    """Run ``operation`` and wait for its result. Raises ``InvalidInput`` for an ``AsyncMemory``."""
    if isinstance(memory, AsyncMemory):
        raise InvalidInput("an AsyncMemory has to be awaited: use the method that begins with an a, or a Memory")
    return memory._bridge.call(partial(operation, memory._bridge.inner))


async def run_async(memory: AnyMemory, operation: Operation[R]) -> R:
    """Run ``operation`` and await its result. A ``Memory`` runs it in its own event loop."""
    if isinstance(memory, AsyncMemory):
        return await operation(memory)
    return await memory._bridge.reach(partial(operation, memory._bridge.inner))


class Adapter:
    """Runs the operations of one integration, which the memory records as their writer: ``adapter:crewai``."""

    def __init__(self, name: str) -> None:
        self._principal = f"adapter:{name}"

    def run_sync(self, memory: AnyMemory, operation: Operation[R]) -> R:
        """See ``run_sync``."""
        with acting_as(self._principal):
            return run_sync(memory, operation)

    async def run_async(self, memory: AnyMemory, operation: Operation[R]) -> R:
        """See ``run_async``."""
        with acting_as(self._principal):
            return await run_async(memory, operation)


def require_memory(memory: object) -> None:
    """Raise ``InvalidInput`` unless ``memory`` is a ``Memory`` or an ``AsyncMemory``."""
    if not isinstance(memory, (Memory, AsyncMemory)):
        raise InvalidInput(f"memory must be a Memory or an AsyncMemory, got {type(memory).__name__}")


def writing(memory: AsyncMemory) -> asyncio.Lock:
    """Return the lock of a memory, for operations that read something and then write it."""
    return _LOCKS.setdefault(memory, asyncio.Lock())
