"""One batch in one transaction: the scope is locked first, and looked at again before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zettel.batch import Batch, Conflict
from zettel.errors import EmbedderMismatch
from zettel.graph.neo4j import writes
from zettel.graph.neo4j.connection import Connection, Transaction
from zettel.model import TIME_MIN

SCOPE, RESTORING = "Scope", "Restoring"
"""Labels of the node that a scope hangs on, and of the one that a scope hangs on that is not whole yet."""


async def apply(
    transaction: Transaction,
    batch: Batch,
    plan: writes.Plan,
    secret: bytes,
    token: str,
    now: int,
    *,
    restoring: bool = False,
) -> bool:
    """Write a batch; False if it was written before, and only the answer was lost.

    ``now`` is in microseconds, ``token`` tells this batch from any other. Raises ``Conflict``, ``StaleLease``,
    ``EmbedderMismatch``.
    """
    fill = {"label": RESTORING if restoring else SCOPE}
    (state,) = await transaction.run("scope_lock", fill=fill, **_locking(batch, plan, secret, token, now))
    if not _is_due(state, batch, plan, secret, token):
        return False
    lost = await writes.run(transaction, plan, state["changes"] + 1)
    if lost.notes or lost.tokens:
        await transaction.run(
            "scope_counted", fill=fill, scope=plan.scope, notes=-lost.notes, tokens=-lost.tokens
        )
    return True


async def add(
    connection: Connection, batch: Batch, plan: writes.Plan, step: writes.Step, secret: bytes, token: str, now: int
) -> None:
    """Write a batch whose plan is this one ``step``, in a transaction of its own. Raises what :func:`apply` raises."""

    def check(state: Mapping[str, Any]) -> None:
        _is_due(state, batch, plan, secret, token)

    values = {**_locking(batch, plan, secret, token, now), **step.values}
    await connection.write(step.name, *step.flags, check=check, fill={"label": SCOPE}, **values)


def _locking(batch: Batch, plan: writes.Plan, secret: bytes, token: str, now: int) -> dict[str, Any]:
    """The parameters of ``parts/locked.cypher``."""
    return {
        "scope": plan.scope,
        "of": batch.scope.key,
        "name": batch.scope.model_dump_json(),
        "secret": secret,
        "token": token,
        "now": now,
        "earliest": TIME_MIN,
        "expects": batch.expects,
        "seq": batch.seq,
        "recorded_at": plan.recorded_at,
        "more_notes": plan.added.notes,
        "more_tokens": plan.added.tokens,
        "erased": plan.added.erased,
    }


def _is_due(state: Mapping[str, Any], batch: Batch, plan: writes.Plan, secret: bytes, token: str) -> bool:
    """Whether the locked scope stood where the batch was planned; False if the batch was written before.

    Raises ``Conflict``, ``EmbedderMismatch``.
    """
    if state["unsettled"]:
        raise Conflict(f"{batch.scope} is being deleted or imported")
    if state["written"] == token:
        return False
    if state["seq"] != batch.expects or state["secret"] != secret:
        raise Conflict(f"{batch.scope} stands at {state['seq']}, not at {batch.expects}")
    _require_spaces(plan.dims, dict(state["spaces"]))
    return True


def _require_spaces(dims: Mapping[int, int], there: Mapping[int, int]) -> None:
    """Raises ``EmbedderMismatch`` unless these vector sets are there, with vectors of these lengths."""
    for space, dim in dims.items():
        if there.get(space) != dim:
            raise EmbedderMismatch(
                f"a vector of {dim} numbers does not fit vector set {space}: it "
                + (f"has {there[space]}" if space in there else "has been replaced; open the memory anew")
            )
