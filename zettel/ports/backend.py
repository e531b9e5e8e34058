"""``Backend``: the port through which ``AsyncMemory`` reaches a store in this process or a zettel server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol

from zettel.model import Scope


class Backend(Protocol):
    """Runs the operations of a memory. An operation has the name and the arguments of an ``AsyncMemory`` method.

    ``scope`` is the scope that the call names, or None. Results and errors are those of the method.
    """

    async def open(self) -> None:
        """Open the store, or connect to the server. After an error it may be called again."""
        ...

    async def close(self) -> None:
        """Release everything; also for a backend that was never opened."""
        ...

    async def call(self, operation: str, arguments: Mapping[str, Any], scope: Scope | None) -> Any:
        """Run an operation and return its result."""
        ...

    def stream(self, operation: str, arguments: Mapping[str, Any], scope: Scope | None) -> AsyncIterator[Any]:
        """Run an operation and yield its results as they come."""
        ...
