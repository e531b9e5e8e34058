"""The LRU cache of scopes in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    from zettel.graph.columnar.columns import Columns
    from zettel.graph.embedded.write_index import WriteIndex

    CachedScope: TypeAlias = Columns | WriteIndex
    """Columns for searches, or a write index."""

MEMORY_BYTES = 2_000_000_000
"""Memory for cached scopes: about 200 of 5,000 notes, at 8 MB each. The cache always contains the last used scope."""

UNEMBEDDED = 0
"""Used in place of a vector set for a scope cached only for its word counts."""


class ScopeCache:
    """The cached scopes; the least recently used ones are evicted first."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, int], tuple[threading.Lock, list[CachedScope]]] = {}
        self._sizes: dict[tuple[str, int], int] = {}
        self._size = 0
        self._spaces: dict[str, int] = {}
        self._guard = threading.Lock()

    @contextmanager
    def locked(self, scope: str, space: int) -> Iterator[list[CachedScope]]:
        """Lock one scope and yield its cell: a list with the cached scope, or an empty list.

        Lock before the read transaction begins, so that its state is never older than the columns.
        """
        with self._guard:
            if space != UNEMBEDDED and (scope, UNEMBEDDED) in self._entries:  # the new entry counts words too
                del self._entries[scope, UNEMBEDDED]
                self._resize((scope, UNEMBEDDED), 0)
            fresh: tuple[threading.Lock, list[CachedScope]] = (threading.Lock(), [])
            lock, cell = self._entries.pop((scope, space), fresh)
            self._entries[scope, space] = (lock, cell)  # last: most recently used
        with lock:
            try:
                yield cell
            finally:
                self._evict((scope, space), cell)

    def _evict(self, used: tuple[str, int], cell: list[CachedScope]) -> None:
        """Update the size of the entry just used, and evict others above MEMORY_BYTES."""
        with self._guard:
            entry = self._entries.get(used)
            if entry is not None and entry[1] is cell:  # else it was evicted meanwhile
                self._resize(used, sum(columns.nbytes for columns in cell))
                if not cell:
                    del self._entries[used]
            while self._size > MEMORY_BYTES and len(self._entries) > 1:
                oldest = next(iter(self._entries))
                del self._entries[oldest]
                self._resize(oldest, 0)

    def _resize(self, key: tuple[str, int], size: int) -> None:
        self._size += size - self._sizes.pop(key, 0)
        self._spaces.pop(key[0], None)
        if size:
            self._sizes[key] = size
            self._spaces[key[0]] = key[1]

    def space_of(self, scope: str) -> int | None:
        """Return the vector set that the scope is cached with, if any."""
        with self._guard:
            return self._spaces.get(scope)

    def cached(self) -> list[tuple[str, int]]:
        """Return the cached scopes, each with its vector set."""
        with self._guard:
            return list(self._entries)

    def clear(self) -> None:
        """Evict all scopes."""
        with self._guard:
            self._entries.clear()
            self._sizes.clear()
            self._spaces.clear()
            self._size = 0
