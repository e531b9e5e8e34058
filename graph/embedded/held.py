"""What is held of scopes in memory, and for how long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    from zettel.graph.columnar.columns import Columns
    from zettel.graph.embedded.outline import Outline

    Held: TypeAlias = Columns | Outline
    """A scope for who searches it, or for who only writes."""

MEMORY_BYTES = 2_000_000_000
"""Memory for scopes held as columns: 200 of 5,000 notes, at 8 MB each. The last used one is always held."""

UNEMBEDDED = 0
"""Stands for the vector set of a scope that is held for the count of its words alone."""


class Scopes:
    """The scopes in use, held as columns, or in outline; those not used for longest go first."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], tuple[threading.Lock, list[Held]]] = {}
        self._sizes: dict[tuple[str, int], int] = {}
        self._size = 0
        self._spaces: dict[str, int] = {}
        self._guard = threading.Lock()

    @contextmanager
    def locked(self, scope: str, space: int) -> Iterator[list[Held]]:
        """One scope's columns, nobody else's meanwhile: a list of one, or of none yet.

        Take this before the transaction that reads, so that no snapshot is older than the columns.
        """
        with self._guard:
            if space != UNEMBEDDED and (scope, UNEMBEDDED) in self._held:  # what comes now counts words, too
                del self._held[scope, UNEMBEDDED]
                self._resize((scope, UNEMBEDDED), 0)
            fresh: tuple[threading.Lock, list[Held]] = (threading.Lock(), [])
            lock, cell = self._held.pop((scope, space), fresh)
            self._held[scope, space] = (lock, cell)  # last: most recently used
        with lock:
            try:
                yield cell
            finally:
                self._settle((scope, space), cell)

    def _settle(self, used: tuple[str, int], cell: list[Held]) -> None:
        with self._guard:
            held = self._held.get(used)
            if held is not None and held[1] is cell:  # else it was let go of meanwhile
                self._resize(used, sum(columns.nbytes for columns in cell))
                if not cell:
                    del self._held[used]
            while self._size > MEMORY_BYTES and len(self._held) > 1:
                oldest = next(iter(self._held))
                del self._held[oldest]
                self._resize(oldest, 0)

    def _resize(self, held: tuple[str, int], size: int) -> None:
        self._size += size - self._sizes.pop(held, 0)
        self._spaces.pop(held[0], None)
        if size:
            self._sizes[held] = size
            self._spaces[held[0]] = held[1]

    def space_of(self, scope: str) -> int | None:
        """The vector set with which the scope was last held as columns, if it still is."""
        with self._guard:
            return self._spaces.get(scope)

    def held(self) -> list[tuple[str, int]]:
        """The scopes held, with the vector set of each."""
        with self._guard:
            return list(self._held)

    def forget(self) -> None:
        """Let go of all."""
        with self._guard:
            self._held.clear()
            self._sizes.clear()
            self._spaces.clear()
            self._size = 0
