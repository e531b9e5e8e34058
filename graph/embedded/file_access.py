"""Thread and connection handling for work on the file and on cached scopes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from zettel.errors import EmbedderMismatch, MemoryClosed
from zettel.graph.columnar.columns import Columns
from zettel.graph.embedded import vectors
from zettel.graph.embedded.connections import READERS, Connections
from zettel.graph.embedded.integrity import require_tokens
from zettel.graph.embedded.loading import current_columns, current_write_index, save_snapshots
from zettel.graph.embedded.point_in_time import as_known
from zettel.graph.embedded.scope_cache import ScopeCache
from zettel.graph.embedded.scopes import find_scope
from zettel.graph.embedded.write_index import WriteIndex
from zettel.graph.keys import Keys
from zettel.graph.scopes import ScopeRow, Secrets

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from zettel.graph.embedded.scope_cache import CachedScope
    from zettel.model import Scope

Result = TypeVar("Result")


class FileAccess:
    """A file, or with ``:memory:`` a temporary folder until ``close``. Use it from one event loop."""

    def __init__(self, path: str | Path, busy_seconds: float, key: str | None = None) -> None:
        self.path = str(path)
        self._busy_seconds = busy_seconds
        self._key = key
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._connections: Connections | None = None
        self._secrets = Secrets()
        self._scopes = ScopeCache()
        self._scope_locks: WeakValueDictionary[tuple[str, int], anyio.Lock] = WeakValueDictionary()

    async def open(self) -> None:
        """Open or create the file. Raises ``NotAStore``, ``StoreTooNew``, ``StoreReadOnly``, ``StoreBusy``."""
        # These belong to the event loop.
        self._reading, self._writing = anyio.CapacityLimiter(READERS), anyio.CapacityLimiter(1)
        self._moving = anyio.Semaphore(1)  # not a Lock: another task may close an abandoned stream
        await anyio.to_thread.run_sync(self._open)

    def _open(self) -> None:
        path = self.path
        if path == ":memory:":
            self._folder = tempfile.TemporaryDirectory(prefix="zettel-")
            path = f"{self._folder.name}/memory.db"
        connections = Connections(path, self._busy_seconds, self._key)
        try:
            connections.open()
            try:
                require_tokens(connections, time.time_ns() // 1000)
            except BaseException:
                connections.close()
                raise
        except BaseException:
            self._close_folder()
            raise
        self._connections = connections

    async def close(self) -> None:
        """Close the file. Closing twice does nothing."""
        connections, self._connections = self._connections, None
        if connections is not None:
            with anyio.CancelScope(shield=True):
                try:
                    if self._folder is None:
                        await anyio.to_thread.run_sync(save_snapshots, connections, self._scopes)
                finally:
                    await anyio.to_thread.run_sync(connections.close)
                    self._scopes.clear()
                await anyio.to_thread.run_sync(self._close_folder)

    def _close_folder(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()

    def _open_connections(self) -> Connections:
        if self._connections is None:
            raise MemoryClosed(f"{self.path} is not open")
        return self._connections

    async def _read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        connections = self._open_connections()

        def run() -> Result:
            with connections.read() as sql:
                return work(sql)

        return await anyio.to_thread.run_sync(run, limiter=self._reading)

    async def _write(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        connections = self._open_connections()

        def run() -> Result:
            with connections.write() as sql:
                return work(sql)

        return await anyio.to_thread.run_sync(run, limiter=self._writing)

    async def _read_scope(
        self, scope: Scope, work: Callable[[sqlite3.Connection, ScopeRow, Keys], Result], otherwise: Result
    ) -> Result:
        """Read in a scope; the result for a scope never written to is ``otherwise``."""

        def run(sql: sqlite3.Connection) -> Result:
            row = find_scope(sql, scope)
            return otherwise if row is None else work(sql, row, self._secrets.of(scope, row))

        return await self._read(run)

    async def _in_columns(
        self,
        scope: Scope,
        space: int,
        known_at: int | None,
        work: Callable[[sqlite3.Connection, Columns, Keys], Result],
        dim: int | None = None,
    ) -> Result:
        """Work on a scope's columns in the state of one transaction."""

        def run() -> Result:
            with self._cell(scope, space) as (sql, cell, row, space_dim):
                if dim is not None and dim != space_dim:
                    raise EmbedderMismatch(
                        f"a vector of {dim} numbers cannot be compared in vector set {space}: it "
                        + ("was deleted; open the memory again" if space_dim is None else f"has {space_dim}")
                    )
                if row is None:
                    return work(sql, Columns(0, space_dim or 0), Keys(b"nobody"))
                keys = self._secrets.of(scope, row)
                columns = current_columns(sql, cell, row, space, space_dim or 0)
                try:
                    return work(sql, as_known(sql, columns, known_at, keys) if known_at is not None else columns, keys)
                except BaseException:
                    columns.reset_scratch()
                    raise

        return await self._run_in_scope(scope, space, run)

    async def _in_write_index(
        self, scope: Scope, space: int, work: Callable[[sqlite3.Connection, CachedScope, Keys], Result]
    ) -> Result:
        """Work on a scope's write index, or on its columns if they are cached, in the state of one transaction."""

        def run() -> Result:
            with self._cell(scope, space) as (sql, cell, row, dim):
                if row is None:
                    return work(sql, WriteIndex(0, dim or 0), Keys(b"nobody"))
                return work(sql, current_write_index(sql, cell, row, space, dim or 0), self._secrets.of(scope, row))

        return await self._run_in_scope(scope, space, run)

    async def _run_in_scope(self, scope: Scope, space: int, run: Callable[[], Result]) -> Result:
        """Run on a reader thread once no other task uses this cached scope.

        Tasks queue for the scope before they take a reader: a slow first load occupies one reader, not all.
        """
        lock = self._scope_locks.setdefault((scope.key, space), anyio.Lock())
        async with lock:
            return await anyio.to_thread.run_sync(run, limiter=self._reading)

    @contextmanager
    def _cell(
        self, scope: Scope, space: int
    ) -> Iterator[tuple[sqlite3.Connection, list[CachedScope], ScopeRow | None, int | None]]:
        """A transaction, the cached scope, its row and the dimension of the vector set, if they exist."""
        connections = self._open_connections()
        with self._scopes.locked(scope.key, space) as cell, connections.read() as sql:
            row = find_scope(sql, scope)
            if row is None:
                cell.clear()
            yield sql, cell, row, vectors.dim_of(sql, space)
