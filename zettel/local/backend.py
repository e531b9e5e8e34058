"""``LocalBackend``: the backend of a memory whose store is opened in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from zettel.local import maintain, read, search, transfer, write
from zettel.local.local_memory import LocalMemory
from zettel.model import Scope
from zettel.ports import GraphStore
from zettel.ports.settings import Settings

if TYPE_CHECKING:
    from zettel.local.runners import RunnerSpec
    from zettel.scoring import ScorerSpec


def _functions_of(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public functions that a module defines, by name. A name that would hide a builtin ends in ``_``."""
    for name, value in vars(module).items():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__ and not name.startswith("_"):
            yield name.removesuffix("_"), value


OPERATIONS: Mapping[str, Callable[..., Any]] = {
    name: function for module in (write, read, search, transfer, maintain) for name, function in _functions_of(module)
}
"""The public functions of the operation modules by name. ``AsyncMemory`` documents each under the same name."""
WHOLE_STORE = frozenset(name for name, function in OPERATIONS.items() if "scope" not in function.__annotations__)
"""Operations that take no scope."""


class LocalBackend:
    """Runs operations on a store that is opened in this process."""

    def __init__(
        self,
        url: str | Path | GraphStore,
        scope: Scope,
        *,
        runner: RunnerSpec = None,
        scorer: ScorerSpec = None,
        **settings: Any,
    ) -> None:
        self.memory = LocalMemory(Settings(url, **settings), scope, runner, scorer)

    async def open(self) -> None:
        """Open the store and start its jobs. Raises what the store's ``open`` raises."""
        await self.memory.open()

    async def close(self) -> None:
        """Stop the jobs and close the store."""
        await self.memory.close()

    async def call(self, operation: str, arguments: Mapping[str, Any], scope: Scope | None) -> Any:
        """Run an operation and return its result."""
        named = {} if operation in WHOLE_STORE else {"scope": scope}
        return await OPERATIONS[operation](self.memory, **arguments, **named)

    async def stream(self, operation: str, arguments: Mapping[str, Any], scope: Scope | None) -> AsyncIterator[Any]:
        """Run an operation and yield its results as they come."""
        async for item in OPERATIONS[operation](self.memory, **arguments, scope=scope):
            yield item
