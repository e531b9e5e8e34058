"""The statements of a batch, and running them in order in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from zettel.graph.neo4j import hashes
from zettel.graph.neo4j.connection import Transaction

AT_ONCE = 100
"""Notes that one statement adds: for so few the round trips of several cost more than all that is written."""


@dataclass
class Tally:
    """Notes and tokens that a scope gets or loses, and whether anything was erased."""

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
    unindexes: bool = False
    """Whether it tells of notes and tokens that the scope loses."""
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

    def as_one(self) -> Step | None:
        """All steps of a small batch that does nothing but add events with their notes, as the one statement
        ``add``."""
        if [step.name for step in self.steps] != ["events_put", "notes_put"]:
            return None
        events, notes = self.steps
        new = {row["event"]["id"] for row in events.values["events"]}
        rows = notes.values["notes"]
        if len(rows) > AT_ONCE or not all(new.issuperset(row["events"]) for row in rows):
            return None
        return Step("add", {**events.values, **notes.values}, events.flags)


async def run(transaction: Transaction, plan: Plan, changes: int) -> Tally:
    """Run the statements of a batch; the notes and tokens that they took out of the index."""
    lost = Tally()
    for step in plan.steps:
        values = {"scope": plan.scope, "changes": changes, **step.values}
        told = await transaction.run(step.name, *step.flags, fill=step.fill, **values)
        row: Mapping[str, Any] = dict(told[0]) if told else {}
        if step.check is not None:
            step.check(row)
        if step.unindexes:
            lost.notes += row["notes"]
            lost.tokens += row["tokens"]
        if step.mends and row["sessions"]:
            await transaction.run(
                "sessions_mend", scope=plan.scope, changes=changes, sessions=row["sessions"], never=hashes.NEVER
            )
    return lost
