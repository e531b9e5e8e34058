"""What a scope that grows large wants now and then: inverted lists for its vectors, and to leave no memory behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread

from zettel.graph.embedded import lists
from zettel.graph.embedded.heap import give_back
from zettel.graph.embedded.reaching import Reaching

if TYPE_CHECKING:
    from pathlib import Path

    from zettel.model import Scope


class Optimizing(Reaching):
    """A file whose large scopes are looked after beside all else, each vector set by one at a time."""

    def __init__(self, path: str | Path, busy_seconds: float) -> None:
        super().__init__(path, busy_seconds)
        self._optimizing: set[tuple[str, int]] = set()

    async def optimize(self, scope: Scope, space: int) -> None:
        """Find inverted lists for the vectors of a scope that has grown large, beside what else is asked of it."""
        if (scope.key, space) in self._optimizing:  # an account is kept of what changes meanwhile, for one at a time
            return
        self._optimizing.add((scope.key, space))
        try:
            await self._optimize(scope, space)
        finally:
            self._optimizing.discard((scope.key, space))

    async def _optimize(self, scope: Scope, space: int) -> None:
        number, due = await self._in_outline(
            scope, space, lambda _, held, __: (held.scope, lists.wanted(held) or lists.unwritten(held))
        )
        if due is None:
            return
        if isinstance(due, lists.Wanted):
            wanted = due
            found = await self._read(lambda sql: lists.find(sql, wanted, space))
            if found is not None:
                await self._in_outline(scope, space, lambda _, held, __: lists.adopt(held, *found))
                await self._write(lambda sql: lists.save(sql, number, space, found[0]))
        else:
            listed = due
            await self._write(lambda sql: lists.save(sql, number, space, listed))
        await anyio.to_thread.run_sync(give_back)
