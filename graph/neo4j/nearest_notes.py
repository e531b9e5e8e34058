"""Exact nearest older notes, from the scope's vectors cached in memory.

A batch of jobs compares hundreds of notes with the whole scope. One matrix product does this much faster than the
database could compare each pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import anyio
import anyio.to_thread
import numpy as np

from zettel.graph.columnar.columns import as_ints
from zettel.graph.columnar.vector_index import ExactIndex
from zettel.graph.neo4j.connection import Neo4jConnection, Transaction
from zettel.model import Scope
from zettel.ports import NearestNotes

CACHED_SCOPES = 8
"""Most scopes in the cache; the least recently used are dropped. One of 20,000 notes takes 20 MB."""


class ScopeVectors:
    """A scope's vectors at its change count ``changes``, in rows by ``seq``. The row of an erased note is empty."""

    def __init__(self, secret: bytes = b"") -> None:
        self.secret = secret
        self.changes = -1
        self._ids: list[str] = []
        self._seqs: list[int] = []
        self._rows: dict[str, int] = {}
        self._vectors = ExactIndex(0)

    def take(self, changes: Iterable[tuple[str, int, bool, bytes]]) -> None:
        """Apply changes: each note's id and ``seq``, if it is visible, and its vector."""
        visible: list[tuple[int, str, bytes]] = []
        hidden: list[int] = []
        for id, seq, is_visible, vector in changes:
            if is_visible:
                visible.append((seq, id, vector))
            elif id in self._rows:
                hidden.append(self._rows[id])
        self._vectors.drop(as_ints(hidden))
        if visible:
            vectors = np.frombuffer(b"".join(vector for *_, vector in visible), "<f4").reshape(len(visible), -1)
            self._make_rows(sorted((seq, id) for seq, id, _ in visible if id not in self._rows), vectors.shape[1])
            self._vectors.put(as_ints([self._rows[id] for _, id, _ in visible]), vectors)

    def nearest_older(self, notes: Iterable[str], k: int) -> list[NearestNotes]:
        """Return the k notes of lower seq with the highest cosine for each note with a vector; ties by seq."""
        embedded = self._vectors.embedded
        rows = as_ints(sorted(self._rows[id] for id in set(notes) & self._rows.keys()))
        rows = rows[embedded[rows]]
        if not len(rows):
            return []
        nearest = self._vectors.nearest_before(rows, k, embedded)
        return [
            NearestNotes(
                self._ids[row], tuple(zip([self._ids[other] for other in others], cosines.tolist(), strict=True))
            )
            for row, (others, cosines) in zip(rows.tolist(), nearest, strict=True)
        ]

    def _make_rows(self, new: Sequence[tuple[int, str]], dim: int) -> None:
        """Append rows for new notes; build all rows again if one belongs between existing rows."""
        if not self._seqs:
            self._vectors = ExactIndex(dim)
        if not new or not self._seqs or new[0][0] > self._seqs[-1]:
            self._append(new)
            return
        rows, vectors = self._rows, self._vectors
        ordered = sorted([*zip(self._seqs, self._ids, strict=True), *new])
        self._ids, self._seqs, self._rows, self._vectors = [], [], {}, ExactIndex(dim)
        self._append(ordered)
        self._vectors.put(as_ints([self._rows[id] for id in rows]), vectors.take(as_ints(list(rows.values()))))

    def _append(self, new: Iterable[tuple[int, str]]) -> None:
        for seq, id in new:
            self._rows[id] = len(self._ids)
            self._ids.append(id)
            self._seqs.append(seq)


class VectorCache:
    """The vectors of the scopes that link jobs use."""

    def __init__(self, connection: Neo4jConnection) -> None:
        self._connection = connection
        self._cached: dict[tuple[str, int], ScopeVectors] = {}
        self._lock = anyio.Lock()

    async def near(self, scope: Scope, notes: Sequence[str], space: int, k: int) -> list[NearestNotes]:
        """Return the k nearest older notes (lower seq) of each note with a vector, by seq."""
        async with self._lock:  # no update while a thread reads the vectors
            vectors = await self._updated(scope, space)
            return await anyio.to_thread.run_sync(partial(vectors.nearest_older, notes, k))

    def clear(self) -> None:
        """Drop all scopes."""
        self._cached.clear()

    async def _updated(self, scope: Scope, space: int) -> ScopeVectors:
        """Return a scope's vectors after the changes since the last call."""
        cached = self._cached.pop((scope.key, space), None) or ScopeVectors()

        async def work(transaction: Transaction) -> ScopeVectors:
            states = await transaction.run("state", scope=scope.key)
            if not states:
                return ScopeVectors()
            (state,) = states
            known = cached
            if cached.secret != state["secret"] or cached.changes < state["floor"]:
                known = ScopeVectors(state["secret"])  # notes were erased, and no change lists them
            known.take(await transaction.run("vectors_since", scope=scope.key, space=space, since=known.changes))
            known.changes = state["changes"]
            return known

        vectors = await self._connection.reading(work)
        self._cached[scope.key, space] = vectors  # last: most recently used
        while len(self._cached) > CACHED_SCOPES:
            del self._cached[next(iter(self._cached))]
        return vectors
