"""Which older notes stand nearest: exact, from the scope's vectors held in memory and kept in step with the database.

A batch of jobs compares hundreds of notes with the whole scope, which one product of matrices does in a fraction of the
time that the database would take to look at each pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import anyio
import anyio.to_thread
import numpy as np

from zettel.graph.columnar.columns import as_ints
from zettel.graph.columnar.nearest import Flat
from zettel.graph.neo4j.connection import Connection, Transaction
from zettel.model import Scope
from zettel.ports import Near

HELD_SCOPES = 8
"""Scopes whose vectors are held; one of 20,000 notes takes 20 MB. Those not used for longest go first."""


class Held:
    """A scope's vectors as they stood at its count ``changes``, in rows by ``seq``; a note that went has a row, but no
    vector."""

    def __init__(self, secret: bytes = b"") -> None:
        self.secret = secret
        self.changes = -1
        self._ids: list[str] = []
        self._seqs: list[int] = []
        self._rows: dict[str, int] = {}
        self._vectors = Flat(0)

    def take(self, told: Iterable[tuple[str, int, bool, bytes]]) -> None:
        """Take in what changed: of each note its ``seq``, whether it is shown, and its vector."""
        shown: list[tuple[int, str, bytes]] = []
        gone: list[int] = []
        for id, seq, is_shown, vector in told:
            if is_shown:
                shown.append((seq, id, vector))
            elif id in self._rows:
                gone.append(self._rows[id])
        self._vectors.drop(as_ints(gone))
        if shown:
            vectors = np.frombuffer(b"".join(vector for *_, vector in shown), "<f4").reshape(len(shown), -1)
            self._make_rows(sorted((seq, id) for seq, id, _ in shown if id not in self._rows), vectors.shape[1])
            self._vectors.put(as_ints([self._rows[id] for _, id, _ in shown]), vectors)

    def nearest_older(self, notes: Iterable[str], k: int) -> list[Near]:
        """For each of the notes that has a vector, the k of lower seq with the highest cosine, ties by seq; by seq."""
        embedded = self._vectors.embedded
        rows = as_ints(sorted(self._rows[id] for id in set(notes) & self._rows.keys()))
        rows = rows[embedded[rows]]
        if not len(rows):
            return []
        near = self._vectors.nearest_before(rows, k, embedded)
        return [
            Near(self._ids[row], tuple(zip([self._ids[one] for one in others], cosines.tolist(), strict=True)))
            for row, (others, cosines) in zip(rows.tolist(), near, strict=True)
        ]

    def _make_rows(self, new: Sequence[tuple[int, str]], dim: int) -> None:
        """Rows for new notes, by seq: after the others, unless one comes late."""
        if not self._seqs:
            self._vectors = Flat(dim)
        if not new or not self._seqs or new[0][0] > self._seqs[-1]:
            self._append(new)
            return
        rows, vectors, there = self._rows, self._vectors, zip(self._seqs, self._ids, strict=True)
        ordered = sorted([*there, *new])
        self._ids, self._seqs, self._rows, self._vectors = [], [], {}, Flat(dim)
        self._append(ordered)
        self._vectors.put(as_ints([self._rows[id] for id in rows]), vectors.take(as_ints(list(rows.values()))))

    def _append(self, new: Iterable[tuple[int, str]]) -> None:
        for seq, id in new:
            self._rows[id] = len(self._ids)
            self._ids.append(id)
            self._seqs.append(seq)


class Nearby:
    """The vectors of the scopes that are being linked."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._held: dict[tuple[str, int], Held] = {}
        self._lock = anyio.Lock()

    async def near(self, scope: Scope, notes: Sequence[str], space: int, k: int) -> list[Near]:
        """The k nearest older notes (lower seq) of each that has a vector; by seq."""
        async with self._lock:  # nobody brings them in step while a thread reads them
            held = await self._in_step(scope, space)
            return await anyio.to_thread.run_sync(partial(held.nearest_older, notes, k))

    def forget(self) -> None:
        """Let go of all."""
        self._held.clear()

    async def _in_step(self, scope: Scope, space: int) -> Held:
        held = self._held.pop((scope.key, space), None) or Held()

        async def work(transaction: Transaction) -> Held:
            states = await transaction.run("state", scope=scope.key)
            if not states:
                return Held()
            (state,) = states
            known = held
            if held.secret != state["secret"] or held.changes < state["floor"]:
                known = Held(state["secret"])  # something went, and nothing tells what
            known.take(await transaction.run("vectors_since", scope=scope.key, space=space, since=known.changes))
            known.changes = state["changes"]
            return known

        held = await self._connection.reading(work)
        self._held[scope.key, space] = held  # last: most recently used
        while len(self._held) > HELD_SCOPES:
            del self._held[next(iter(self._held))]
        return held
