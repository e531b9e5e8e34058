"""Upkeep of large scopes: IVF training, and return of freed memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread

from zettel.graph.embedded import ivf_lists
from zettel.graph.embedded.file_access import FileAccess
from zettel.graph.embedded.free_memory import trim_heap

if TYPE_CHECKING:
    from pathlib import Path

    from zettel.model import Scope


class IndexMaintenance(FileAccess):
    """A file with training of IVF lists for large scopes, one training per vector set at a time."""

    def __init__(self, path: str | Path, busy_seconds: float, key: str | None = None) -> None:
        super().__init__(path, busy_seconds, key)
        self._optimizing: set[tuple[str, int]] = set()

    async def optimize(self, scope: Scope, space: int) -> None:
        """Train IVF lists for the vectors of a scope that has grown large. Reads and writes continue meanwhile."""
        if (scope.key, space) in self._optimizing:  # a vector index records changes for one training only
            return
        self._optimizing.add((scope.key, space))
        try:
            await self._optimize(scope, space)
        finally:
            self._optimizing.discard((scope.key, space))

    async def _optimize(self, scope: Scope, space: int) -> None:
        number, due = await self._in_write_index(
            scope,
            space,
            lambda _, cached, __: (cached.scope, ivf_lists.start_training(cached) or ivf_lists.unsaved_lists(cached)),
        )
        if due is None:
            return
        if isinstance(due, ivf_lists.TrainingRequest):
            request = due
            trained = await self._read(lambda sql: ivf_lists.train(sql, request, space))
            if trained is not None:
                await self._in_write_index(scope, space, lambda _, cached, __: ivf_lists.adopt(cached, *trained))
                await self._write(lambda sql: ivf_lists.save(sql, number, space, trained[0]))
        else:
            ivf = due
            await self._write(lambda sql: ivf_lists.save(sql, number, space, ivf))
        await anyio.to_thread.run_sync(trim_heap)
