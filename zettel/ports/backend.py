"""The backend port, through which ``AsyncMemory`` reaches a store in this process or a zettel server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol

from zettel.model import Scope


class Backend(Protocol):
    """Runs the operations of a memory: in this process on a store, or on a zettel server over HTTP.

    An operation has the name, arguments, result and errors of an ``AsyncMemory`` method. ``scope`` is the ``scope=`` of
    the call, or None. Example: ``await backend.call("get", {"id": "n_3f9a"}, None)`` returns a ``Note``.
    """

    async def open(self) -> None:
        """Open the store, or connect to the server. The caller may try again after an error."""
        ...

    async def close(self) -> None:
        """Release all resources; does nothing for a backend that was never opened."""
        ...

    async def call(self, operation: str, arguments: Mapping[str, Any], scope: Scope | None) -> Any:
        """Run an operation and return its result."""
        ...

    def stream(self, operation: str, arguments: Mapping[str, Any], scope: Scope | None) -> AsyncIterator[Any]:
        """Run an operation and yield its results as they arrive."""
        ...
