"""The cost of changing a note with many versions in the embedded store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from zettel import Memory
from zettel.graph.embedded.connections import Connections

VERSIONS = 130
"""More versions than two checkpoints span."""


def update(memory: Memory, note: str, number: int) -> None:
    memory.update(note, tags=[f"tag {number}"])


def revise(memory: Memory, note: str, number: int) -> None:
    memory.add(f"Ann likes tea number {number}.", id="drink", on_conflict="revise")


@pytest.mark.parametrize("change", [update, revise])
def test_a_change_reads_no_more_of_a_long_history(
    change: Callable[[Memory, str, int], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Count the steps of SQLite in the change and in the link job that follows."""
    steps: list[None] = []
    connect = Connections._connect

    def counted(connections: Connections) -> sqlite3.Connection:
        connection = connect(connections)
        connection.set_progress_handler(lambda: steps.append(None), 100)
        return connection

    monkeypatch.setattr(Connections, "_connect", counted)
    costs = []
    with Memory(tmp_path / "memory.db", embedder="static") as memory:
        memory.add("Ann likes tea with honey.")
        note = memory.add("Ann likes tea.", id="drink", wait=True)
        for number in range(VERSIONS):
            steps.clear()
            change(memory, note, number)
            memory.flush()
            costs.append(len(steps))
        assert memory.history(note)[-1].version > VERSIONS
    assert sum(costs[-30:]) <= 1.2 * sum(costs[50:80])
