"""``LocalBackend``: the backend of a memory whose store is opened in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from zettel.core import telemetry
from zettel.core.telemetry import observed
from zettel.core.uncancelled import uncancelled
from zettel.local import maintain, read, search, transfer, write
from zettel.local.local_memory import LocalMemory
from zettel.model import Scope
from zettel.ports import GraphStore
from zettel.ports.settings import Settings

if TYPE_CHECKING:
    from zettel.local.audit_log import AuditLog
    from zettel.local.auditing import Auditor
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


REPORTED = {"add_many_report": "add", "search_many": "search"}
"""Names of operations in the audit log and in telemetry, where the method that people call has another one."""


class LocalBackend:
    """Runs operations on a store that is opened in this process."""

    def __init__(
        self,
        url: str | Path | GraphStore,
        scope: Scope,
        *,
        runner: RunnerSpec = None,
        scorer: ScorerSpec = None,
        audit: str | Path | AuditLog | None = None,
        webhooks: str | Path | None = None,
        **settings: Any,
    ) -> None:
        self.memory = LocalMemory(Settings(url, **settings), scope, runner, scorer, webhooks)
        self._scope = scope
        self.audit = audit
        self._auditor: Auditor | None = None

    async def open(self) -> None:
        """Open the store and start its jobs. Raises what the store's ``open`` raises, and ``AuditError``."""
        if self.audit is None:
            await self.memory.open()
            return
        from zettel.local.audit_log import AuditLog
        from zettel.local.auditing import Auditor

        log = self.audit if isinstance(self.audit, AuditLog) else AuditLog(self.audit)
        try:
            await self.memory.open()
        except BaseException:
            if log is not self.audit:
                log.close()
            raise
        assert self.memory.engine is not None
        self._auditor = Auditor(log, self._scope, self.memory.engine.guard)

    async def close(self) -> None:
        """Stop the jobs, close the store and the audit log, also if the caller is cancelled."""
        try:
            await uncancelled(self.memory.close())
        finally:
            if self._auditor is not None:
                self._auditor.close()

    async def call(self, operation: str, arguments: Mapping[str, Any], scope: Scope | None) -> Any:
        """Run an operation and return its result. The audit log and telemetry learn of it here."""
        named = {} if operation in WHOLE_STORE else {"scope": scope}
        run = partial(OPERATIONS[operation], self.memory, **arguments, **named)
        name = REPORTED.get(operation, operation)
        with observed(f"zettel.{name}", telemetry.OPERATIONS, {"zettel.operation": name}) as observation:
            if self._auditor is None:
                result = await run()
            else:
                result = await self._auditor.call(name, arguments, scope, run)
            if isinstance(result, (list, int)):
                observation.attributes["zettel.count"] = int(result) if isinstance(result, int) else len(result)
            return result

    async def stream(self, operation: str, arguments: Mapping[str, Any], scope: Scope | None) -> AsyncIterator[Any]:
        """Run an operation and yield its results as they come."""
        run = partial(OPERATIONS[operation], self.memory, **arguments, scope=scope)
        items = run() if self._auditor is None else self._auditor.stream(operation, arguments, scope, run)
        attributes = {"zettel.operation": operation}
        with observed(f"zettel.{operation}", telemetry.OPERATIONS, attributes, current=False):
            async for item in items:
                yield item
