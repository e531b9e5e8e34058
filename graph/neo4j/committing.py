"""One batch in one transaction: it locks the scope and checks its ``seq`` before it writes."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zettel.errors import EmbedderMismatch
from zettel.graph.keys import Keys
from zettel.graph.neo4j import planning, writes
from zettel.graph.neo4j.connection import Neo4jConnection, Transaction
from zettel.model import TIME_MIN
from zettel.ports.operations import Batch, Conflict

SCOPE, RESTORING = "Scope", "Restoring"
"""Labels of a scope's node, and of the node of a scope that is being restored."""


@dataclass(frozen=True)
class PlannedBatch:
    """A batch with its statements and the scope's secret.

    ``now`` is in microseconds; ``token`` identifies the batch.
    """

    batch: Batch
    plan: writes.BatchPlan
    secret: bytes
    token: str
    now: int

    def check(self, state: Mapping[str, Any]) -> bool:
        """Return False if the batch was already written. Raises ``Conflict``, ``EmbedderMismatch``.

        ``state`` is the state of the locked scope before the batch.
        """
        scope = self.batch.scope
        if state["unsettled"]:
            raise Conflict(f"{scope} is being deleted or imported")
        if state["written"] == self.token:
            return False
        if state["seq"] != self.batch.expects or state["secret"] != self.secret:
            raise Conflict(f"{scope} is at seq {state['seq']}, not at {self.batch.expects}")
        dims = dict(state["spaces"])
        for space, dim in self.plan.dims.items():
            if dims.get(space) != dim:
                raise EmbedderMismatch(
                    f"a vector of {dim} numbers does not fit vector set {space}: it "
                    + (f"has {dims[space]}" if space in dims else "has been replaced; open the memory again")
                )
        return True

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of ``parts/lock_scope.cypher``."""
        added = self.plan.added
        return {
            "scope": self.plan.scope,
            "of": self.batch.scope.key,
            "name": self.batch.scope.model_dump_json(),
            "secret": self.secret,
            "token": self.token,
            "now": self.now,
            "earliest": TIME_MIN,
            "expects": self.batch.expects,
            "seq": self.batch.seq,
            "recorded_at": self.plan.recorded_at,
            "added_notes": added.notes,
            "added_tokens": added.tokens,
            "erased": added.erased,
        }


def plan(batch: Batch, scope: str, keys: Keys) -> PlannedBatch:
    """Plan the statements that write a batch to the nodes of the key ``scope``."""
    token, now = secrets.token_hex(8), time.time_ns() // 1000
    return PlannedBatch(batch, planning.plan(batch, scope, keys, token, now), keys.secret, token, now)


async def apply(transaction: Transaction, planned: PlannedBatch, *, restoring: bool = False) -> bool:
    """Write a batch; return False if it was already written.

    Raises ``Conflict``, ``StaleLease``, ``EmbedderMismatch``.
    """
    fill = {"label": RESTORING if restoring else SCOPE}
    (state,) = await transaction.run("batch_begin", fill=fill, **planned.parameters())
    if not planned.check(state):
        return False
    removed = await writes.run(transaction, planned.plan, state["changes"] + 1)
    if removed.notes or removed.tokens:
        await transaction.run(
            "scope_counts_add", fill=fill, scope=planned.plan.scope, notes=-removed.notes, tokens=-removed.tokens
        )
    return True


async def add(connection: Neo4jConnection, planned: PlannedBatch, call: writes.StatementCall) -> None:
    """Write a batch that is this single call, in its own transaction. Raises the errors of :func:`apply`."""

    def check(state: Mapping[str, Any]) -> None:
        planned.check(state)

    values = {**planned.parameters(), **call.values}
    await connection.write(call.name, *call.flags, check=check, fill={"label": SCOPE}, **values)
