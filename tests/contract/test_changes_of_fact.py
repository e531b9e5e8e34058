"""A note that tells of a change replaces what it changed: by rules, as a link with a reason that can be taken back."""

from __future__ import annotations

from datetime import datetime, timezone

from tests.contract.support import said
from zettel import LinkType, Memory

BERGEN = "I live in Bergen, above a bakery."
VOSS = "I've been living in a cottage near Voss."
OSLO = "Big news: I moved to Oslo on Monday!"
SMALL_TALK = (
    "Do you like Bergen?",
    "Where would you live, if you could live anywhere?",
    "I might move to Rome one day.",
)


def _tell(memory: Memory, *turns: tuple[str, str | None], role: str | None = "Ann") -> list[str]:
    ids = [memory.add(text, role=role, occurred_at=when) for text, when in turns]
    memory.flush()
    return ids


def _moved(memory: Memory) -> tuple[str, str]:
    old, new = _tell(memory, (BERGEN, "2024-01-10"), (OSLO, "2024-05-01"))
    for turn in SMALL_TALK:
        memory.add(turn, role="Bob", occurred_at="2024-05-02")
    memory.flush()
    return old, new


def _replaced(memory: Memory, id: str) -> list[tuple[str, str]]:
    links = memory.links(id)
    return [(link.source, link.reason) for link in links if link.type is LinkType.SUPERSEDES and link.target == id]


def test_todays_answer_comes_first_and_the_former_one_is_marked(memory: Memory) -> None:
    old, new = _moved(memory)
    assert _replaced(memory, old) == [(new, "says that Ann's home changed: Bergen → Oslo")]
    hits = memory.search("Does Ann live in Bergen, above a bakery?", explain=True)
    ranks = {hit.note.id: place for place, hit in enumerate(hits)}
    assert ranks[new] < ranks[old]
    assert hits[ranks[old]].why.superseded_by == new
    assert hits[ranks[old]].note.valid_to == datetime(2024, 5, 1, tzinfo=timezone.utc)
    assert not any(_replaced(memory, hit.note.id) for hit in hits if hit.note.id != old)


def test_as_of_before_the_change_the_former_answer_stands(memory: Memory) -> None:
    _moved(memory)
    then = memory.search("Where does Ann live?", as_of="2024-03-01")
    assert [hit.note.content for hit in then] == [BERGEN]
    assert then[0].note.valid_to is None


def test_late_news_of_an_earlier_time_takes_its_place_in_between(memory: Memory) -> None:
    old, new = _moved(memory)
    (late,) = _tell(memory, (VOSS, "2024-03-01"))
    assert said(memory, "Where does Ann live?")[0] == OSLO
    assert said(memory, "Where does Ann live?", as_of="2024-04-01")[0] == VOSS
    assert said(memory, "Where does Ann live?", as_of="2024-02-01") == [BERGEN]
    assert memory.get(late).valid_to == datetime(2024, 5, 1, tzinfo=timezone.utc)
    assert memory.get(old).valid_to == datetime(2024, 3, 1, tzinfo=timezone.utc)
    assert memory.get(new).valid_to is None
    memory.delete(new)
    memory.flush()
    assert memory.get(late).valid_to is None


def test_revert_takes_the_replacement_back(memory: Memory) -> None:
    old, new = _moved(memory)
    memory.revert(new, 1)
    assert memory.get(old).valid_to is None
    assert _replaced(memory, old) == []


def test_delete_undoes_it(memory: Memory) -> None:
    old, new = _moved(memory)
    memory.delete(new)
    memory.flush()
    assert memory.get(old).valid_to is None
    assert all(OSLO not in text for text in said(memory, "Where does Ann live?"))


def test_deleting_what_was_replaced_leaves_no_word_of_it(memory: Memory) -> None:
    old, new = _moved(memory)
    memory.delete(old)
    memory.flush()
    revisions = [revision.model_dump_json() for revision in memory.history(new)]
    assert not any("bakery" in told or "Bergen" in told for told in revisions)


def test_what_is_reworded_is_decided_again(memory: Memory) -> None:
    old, new = _moved(memory)
    memory.update(new, content="I went to see Oslo on Monday!")
    memory.flush()
    assert memory.get(old).valid_to is None
    memory.update(new, content=OSLO)
    memory.flush()
    assert [source for source, _ in _replaced(memory, old)] == [new]


def test_current_only_leaves_out_what_was_replaced(memory: Memory) -> None:
    old, new = _moved(memory)
    everything = {hit.note.id for hit in memory.search("Where does Ann live?")}
    current = {hit.note.id for hit in memory.search("Where does Ann live?", current_only=True)}
    assert {old, new} <= everything
    assert current == everything - {old}
    assert [hit.note.id for hit in memory.search("Bergen bakery", k=1, current_only=True)] != [old]
    before = memory.search("Where does Ann live?", current_only=True, as_of="2024-03-01")
    assert [hit.note.id for hit in before] == [old]


def test_what_cannot_be_decided_stays_and_is_listed(memory: Memory) -> None:
    rome, turin = _tell(memory, ("Ben lives in Rome.", None), ("Ben lives in Turin.", None), role=None)
    (pair,) = memory.conflicts()
    assert (pair.note.id, pair.other.id) == (turin, rome)
    assert pair.reason == "says otherwise of Ben's home: Rome / Turin"
    assert memory.get(turin).confidence < memory.get(rome).confidence == 1.0
    assert memory.get(rome).valid_to is None
    assert len(memory.search("Where does Ben live?", current_only=True)) == 2
    memory.revert(turin, 1)
    assert memory.conflicts() == []
    assert memory.get(turin).confidence == 1.0


def test_a_word_of_change_settles_a_conflict(memory: Memory) -> None:
    _tell(memory, ("Ben lives in Rome.", None), ("Ben lives in Turin.", None), role=None)
    assert len(memory.conflicts()) == 1
    _tell(memory, ("Ben moved to Milan.", None), role=None)
    assert memory.conflicts() == []
    assert said(memory, "Where does Ben live?", current_only=True) == ["Ben moved to Milan."]


def test_linking_twice_changes_nothing(memory: Memory) -> None:
    old, new = _moved(memory)
    links = [(link.source, link.target, link.type, link.reason) for link in memory.links(old)]
    memory.update(new, importance=0.9)
    memory.flush()
    assert [(link.source, link.target, link.type, link.reason) for link in memory.links(old)] == links
