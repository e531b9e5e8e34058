"""A note with many versions: a change takes as long as before, and every version remains."""

from __future__ import annotations

from tests.contract.support import decide, noted
from zettel import LinkType, Memory

VERSIONS = 120
"""More versions than two checkpoints span."""


def test_all_versions_remain(memory: Memory) -> None:
    memory.add("Ann likes tea with honey.", wait=True)
    note = memory.add("Ann likes tea.", id="drink", wait=True)
    for number in range(VERSIONS // 2):
        memory.add(f"Ann likes tea number {number}.", id="drink", on_conflict="revise")
        memory.update(note, tags=[f"tag {number}"])
    memory.flush()
    now = noted(memory, note)
    assert (now.content, now.tags) == (f"Ann likes tea number {VERSIONS // 2 - 1}.", (f"tag {VERSIONS // 2 - 1}",))
    versions = memory.history(note)
    assert [version.version for version in versions] == [*range(1, now.version + 1)]
    changed = [version for version in versions if version.change.get("tags") == ["tag 3"]]
    assert memory.revert(note, changed[0].version).tags == ("tag 3",)  # far before the last checkpoint
    assert memory.revert(note, now.version).tags == now.tags
    memory.update(note, importance=0.9)
    assert noted(memory, note).tags == now.tags
    assert memory.check() == []


def test_deleting_an_input_of_an_old_version_leaves_nothing_of_it(memory: Memory) -> None:
    heron = memory.add("Zephyrine the heron nests at the mill.", wait=True)
    note = memory.add("Zephyrine the heron nests near the mill.", wait=True)
    assert {link.target for link in memory.links(note)} == {heron}
    decide(memory, note, heron, LinkType.RELATES, context="Herons return in March.")
    for number in range(VERSIONS // 2):
        memory.update(note, importance=number / VERSIONS)
    memory.delete(heron)
    memory.update(note, importance=0.9)  # reads the last checkpoint, which must be another one
    assert "Herons" not in noted(memory, note).context
    assert memory.links(note) == []
    assert memory.check() == []
