"""The statements of a batch, and running them in order in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from zettel.graph.neo4j import hashes
from zettel.graph.neo4j.connection import Transaction


@dataclass
class Tally:
    """What a batch changes about its scope as a whole."""

    notes: int = 0
    tokens: int = 0
    erased: bool = False


@dataclass(frozen=True)
class Step:
    """One statement, with what its answer must be and what it tells."""

    name: str
    values: Mapping[str, Any]
    flags: tuple[str, ...] = ()
    fill: Mapping[str, str | int] = field(default_factory=dict)
    check: Callable[[Mapping[str, Any]], None] | None = None
    sign: int = 0
    """How the notes and tokens that it tells of change the scope's: -1, or 0 for not at all."""
    mends: bool = False
    """Whether it tells of sessions whose order must be mended."""


@dataclass(frozen=True)
class Plan:
    """The statements of one batch."""

    scope: str
    steps: tuple[Step, ...]
    dims: Mapping[int, int]
    """Which vector sets must be there, and how many numbers a vector of each has."""
    recorded_at: int
    added: Tally


async def run(transaction: Transaction, plan: Plan, changes: int) -> Tally:
    """Run the statements of a batch; what they change about the scope."""
    tally = Tally(plan.added.notes, plan.added.tokens, plan.added.erased)
    for step in plan.steps:
        values = {"scope": plan.scope, "changes": changes, **step.values}
        told = await transaction.run(step.name, *step.flags, fill=step.fill, **values)
        row: Mapping[str, Any] = dict(told[0]) if told else {}
        if step.check is not None:
            step.check(row)
        if step.sign:
            tally.notes += step.sign * row["notes"]
            tally.tokens += step.sign * row["tokens"]
        if step.mends and row["sessions"]:
            await transaction.run("sessions_mend", scope=plan.scope, sessions=row["sessions"], never=hashes.NEVER)
    return tally
