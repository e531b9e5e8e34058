"""What was replaced is marked and can be left out; what contradicts stays and is listed; both can be taken back."""

from __future__ import annotations

from tests.contract.support import decide, said
from zettel import LinkType, Memory

BERGEN = "I live in Bergen, above a bakery."
OSLO = "Big news: I moved to Oslo on Monday!"


def _moved(memory: Memory) -> tuple[str, str]:
    old = memory.add(BERGEN, role="Ann", occurred_at="2024-01-10")
    new = memory.add(OSLO, role="Ann", occurred_at="2024-05-01")
    memory.add("Do you like Bergen?", role="Bob", occurred_at="2024-05-02")
    memory.flush()
    decide(memory, new, old, LinkType.SUPERSEDES)
    return old, new


def test_current_only_leaves_out_what_was_replaced(memory: Memory) -> None:
    old, new = _moved(memory)
    everything = {hit.note.id for hit in memory.search("Where does Ann live?")}
    current = {hit.note.id for hit in memory.search("Where does Ann live?", current_only=True)}
    assert {old, new} <= everything
    assert current == everything - {old}
    assert [hit.note.id for hit in memory.search("Bergen bakery", k=1, current_only=True)] != [old]
    before = memory.search("Where does Ann live?", current_only=True, as_of="2024-03-01")
    assert [hit.note.id for hit in before] == [old]
    memory.revert(new, 1)
    assert old in {hit.note.id for hit in memory.search("Where does Ann live?", current_only=True)}


def test_what_contradicts_is_listed_until_it_is_settled(memory: Memory) -> None:
    rome = memory.add("Ben lives in Rome.")
    turin = memory.add("Ben lives in Turin.")
    memory.flush()
    assert memory.conflicts() == []
    decide(memory, turin, rome, LinkType.CONTRADICTS)
    (pair,) = memory.conflicts()
    assert (pair.note.id, pair.other.id) == (turin, rome)
    assert len(memory.search("Where does Ben live?", current_only=True)) == 2
    milan = memory.add("Ben moved to Milan.")
    memory.flush()
    decide(memory, milan, rome, LinkType.SUPERSEDES)
    assert memory.conflicts() == []
    assert BERGEN not in said(memory, "Where does Ben live?", current_only=True)
