"""``LocalBackend``: the backend of a memory whose store is opened in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zettel.local import maintain, read, search, transfer, write
from zettel.local.local_memory import LocalMemory
from zettel.model import Scope
from zettel.ports import GraphStore
from zettel.ports.settings import Settings

if TYPE_CHECKING:
    from zettel.local.runners import RunnerSpec
    from zettel.scoring import ScorerSpec

OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "list": read.list_notes,
    **{
        function.__name__: function
        for function in (
            write.add_many_report, write.update, write.link, write.revert, write.revert_effects, write.archive,
            write.unarchive, write.quarantine, write.release, write.delete, write.delete_scope,
            read.get, read.events, read.links, read.neighbors, read.graph, read.conflicts, read.terms, read.history,
            search.search_many, search.context, search.answer_context, search.feedback, search.searches, search.tune,
            transfer.import_transcript, transfer.estimate_import, transfer.export, transfer.dump,
            maintain.scopes, maintain.flush, maintain.evolve, maintain.evolve_later, maintain.jobs,
            maintain.retry_jobs, maintain.cancel_job, maintain.reembed, maintain.stats, maintain.check,
            maintain.cypher,
        )
    },
}  # fmt: skip
"""The operations by name. ``AsyncMemory`` documents each under the same name."""
WHOLE_STORE = frozenset({"scopes", "reembed", "check", "cypher"})
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
