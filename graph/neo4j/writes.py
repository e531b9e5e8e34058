"""Execution of a batch's statements in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from zettel.graph.neo4j import hashes
from zettel.graph.neo4j.connection import Transaction

MAX_SINGLE_NOTES = 100
"""Most notes of a batch in one statement: for small batches the round trips cost more than the writes."""


@dataclass
class IndexCounts:
    """Notes and tokens that a batch adds to or removes from the index, and if it erases a note."""

    notes: int = 0
    tokens: int = 0
    erased: bool = False


@dataclass(frozen=True)
class StatementCall:
    """One statement with its parameters, and a check of its row."""

    name: str
    values: Mapping[str, Any]
    flags: tuple[str, ...] = ()
    fill: Mapping[str, str | int] = field(default_factory=dict)
    check: Callable[[Mapping[str, Any]], None] | None = None
    unindexes: bool = False
    """True if its row counts the notes and tokens that leave the index."""
    reorders: bool = False
    """True if its row lists sessions whose order must be repaired."""


@dataclass(frozen=True)
class BatchPlan:
    """The statements of one batch."""

    scope: str
    calls: tuple[StatementCall, ...]
    dims: Mapping[int, int]
    """The length of the vectors of each vector set that the batch uses."""
    recorded_at: int
    added: IndexCounts

    def as_single_call(self) -> StatementCall | None:
        """Return a small batch that only adds events with their notes as one call of ``add``, or None."""
        if [call.name for call in self.calls] != ["events_put", "notes_put"]:
            return None
        events, notes = self.calls
        new = {row["event"]["id"] for row in events.values["events"]}
        rows = notes.values["notes"]
        if len(rows) > MAX_SINGLE_NOTES or not all(new.issuperset(row["events"]) for row in rows):
            return None
        return StatementCall("add", {**events.values, **notes.values}, events.flags)


async def run(transaction: Transaction, plan: BatchPlan, changes: int) -> IndexCounts:
    """Run the statements of a batch, and return the notes and tokens that left the index."""
    removed = IndexCounts()
    for call in plan.calls:
        values = {"scope": plan.scope, "changes": changes, **call.values}
        rows = await transaction.run(call.name, *call.flags, fill=call.fill, **values)
        row: Mapping[str, Any] = dict(rows[0]) if rows else {}
        if call.check is not None:
            call.check(row)
        if call.unindexes:
            removed.notes += row["notes"]
            removed.tokens += row["tokens"]
        if call.reorders and row["sessions"]:
            await transaction.run(
                "sessions_repair", scope=plan.scope, changes=changes, sessions=row["sessions"], never=hashes.NO_TIME
            )
    return removed
