"""Which older notes stand nearest: exact, from the scope's vectors held in memory and kept in step with the database.

A batch of jobs compares hundreds of notes with the whole scope, which one product of matrices does in a fraction of the
time that the database would take to look at each pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from zettel.graph.neo4j.connection import Connection, Transaction
from zettel.model import Scope
from zettel.ports import Near
from zettel.search.pool import best

if TYPE_CHECKING:
    from zettel.query import Floats, Ints

ROUNDING = 1e-5
"""More than float32 products of unit vectors of a few hundred numbers are ever off."""
NEAR_AT_ONCE = 64
"""Notes compared with the whole scope at once: 64 rows of 20,000 cosines take 5 MB."""
HELD_SCOPES = 8
"""Scopes whose vectors are held; one of 20,000 notes takes 20 MB. Those not used for longest go first."""


@dataclass
class Held:
    """A scope's vectors as they stood at its count ``changes``."""

    secret: bytes = b""
    changes: int = -1
    rows: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """By note: its ``seq`` and its vector."""


class Nearby:
    """The vectors of the scopes that are being linked."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._held: dict[tuple[str, int], Held] = {}

    async def near(self, scope: Scope, notes: Sequence[str], space: int, k: int) -> list[Near]:
        """The k nearest older notes (lower seq) of each that has a vector; by seq."""
        held = await self._in_step(scope, space)
        ids = sorted(held.rows, key=lambda id: held.rows[id][0])
        if not ids:
            return []
        vectors = np.frombuffer(b"".join(held.rows[id][1] for id in ids), "<f4").reshape(len(ids), -1)
        seq = np.array([held.rows[id][0] for id in ids], np.int64)
        asked = set(notes)
        return _nearest_older(ids, seq, vectors, [place for place, id in enumerate(ids) if id in asked], k)

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
                known = Held(secret=state["secret"])  # something went, and nothing tells what
            rows = await transaction.run("vectors_since", scope=scope.key, space=space, since=known.changes)
            for note, seq, shown, vector in rows:
                if shown:
                    known.rows[note] = (seq, vector)
                else:
                    known.rows.pop(note, None)
            known.changes = state["changes"]
            return known

        held = await self._connection.reading(work)
        self._held[scope.key, space] = held  # last: most recently used
        while len(self._held) > HELD_SCOPES:
            del self._held[next(iter(self._held))]
        return held


def _nearest_older(ids: list[str], seq: Ints, vectors: Floats, places: list[int], k: int) -> list[Near]:
    """For each place the k places before it with the highest cosine, ties by seq."""
    found: list[Near] = []
    for start in range(0, len(places), NEAR_AT_ONCE):
        some = places[start : start + NEAR_AT_ONCE]
        for place, products in zip(some, vectors[some] @ vectors.T, strict=True):
            older = np.arange(place)
            rough = products[:place]
            if place > k:  # how a product rounds depends on its size: what may count is computed again by itself
                older = older[rough >= np.partition(rough, place - k)[place - k] - ROUNDING]
            cosines = (vectors[older].astype(np.float64) * vectors[place].astype(np.float64)).sum(axis=1)
            order = best(cosines, seq[older], k)
            told = cosines[order].astype(np.float32)  # as other stores tell them: the weights of links are rounded
            near = [(ids[other], float(cosine)) for other, cosine in zip(older[order], told, strict=True)]
            found.append(Near(ids[place], tuple(near)))
    return found
