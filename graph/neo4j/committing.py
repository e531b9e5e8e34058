"""One batch in one transaction: the scope is locked first, and looked at again before anything is written."""

from __future__ import annotations

from collections.abc import Mapping

from zettel.batch import Batch, Conflict
from zettel.errors import EmbedderMismatch
from zettel.graph.neo4j import writes
from zettel.graph.neo4j.connection import Transaction
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
    (state,) = await transaction.run(
        "scope_lock",
        fill=fill,
        scope=plan.scope,
        of=batch.scope.key,
        name=batch.scope.model_dump_json(),
        secret=secret,
        token=token,
        now=now,
        never=TIME_MIN,
        expects=batch.expects,
        seq=batch.seq,
        recorded_at=plan.recorded_at,
        notes=plan.added.notes,
        tokens=plan.added.tokens,
        erased=plan.added.erased,
    )
    if state["unsettled"]:
        raise Conflict(f"{batch.scope} is being deleted or imported")
    if state["written"] == token:
        return False
    if state["seq"] != batch.expects or state["secret"] != secret:
        raise Conflict(f"{batch.scope} stands at {state['seq']}, not at {batch.expects}")
    _require_spaces(plan.dims, dict(state["spaces"]))
    lost = await writes.run(transaction, plan, state["changes"] + 1)
    if lost.notes or lost.tokens:
        await transaction.run(
            "scope_counted", fill=fill, scope=plan.scope, notes=-lost.notes, tokens=-lost.tokens
        )
    return True


def _require_spaces(dims: Mapping[int, int], there: Mapping[int, int]) -> None:
    """Raises ``EmbedderMismatch`` unless these vector sets are there, with vectors of these lengths."""
    for space, dim in dims.items():
        if there.get(space) != dim:
            raise EmbedderMismatch(
                f"a vector of {dim} numbers does not fit vector set {space}: it "
                + (f"has {there[space]}" if space in there else "has been replaced; open the memory anew")
            )
