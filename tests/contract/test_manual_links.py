"""Manual links are revisions: they apply at once, jobs never remove them, and they can be reverted."""

from __future__ import annotations

import pytest

from tests.contract.support import LIFE, search_texts
from zettel import LinkType, Memory, Scope
from zettel.errors import InvalidInput, NotFound

pytestmark = pytest.mark.over_http


def by_hand(memory: Memory, id: str) -> list[tuple[str, str, str]]:
    return [(link.target, link.type.value, link.reason) for link in memory.links(id) if link.reason.startswith("I ")]


def test_a_manual_link_is_a_revision_and_can_be_reverted(memory: Memory) -> None:
    tuner, cello = memory.add("Ida tunes on Fridays."), memory.add("The cello stands in the hall.")
    memory.flush()
    before = memory.get(tuner)
    link = memory.link(tuner, cello, reason="I asked her")
    assert (link.source, link.target, link.type) == (tuner, cello, LinkType.RELATES)
    assert by_hand(memory, cello) == [(cello, "RELATES", "I asked her")]
    *_, last = memory.history(tuner)
    assert (last.cause.by, last.version, last.change, last.links) == ("user", before.version + 1, {}, (link,))
    assert {read.note for read in last.inputs} == {tuner, cello}
    memory.revert(tuner, before.version)
    assert by_hand(memory, cello) == []


def test_a_superseded_note_ranks_below_and_is_marked(memory: Memory) -> None:
    old = memory.add("The harbour office opens at eight.", occurred_at="2024-01-01")
    new = memory.add("The harbour office opens at nine.", occurred_at="2024-06-01")
    memory.flush()
    memory.link(new, old, "supersedes", reason="I read the sign")
    assert memory.get(old).valid_to == memory.get(new).valid_from
    assert search_texts(memory, "When does the harbour office open?")[0] == "The harbour office opens at nine."


def test_jobs_keep_manual_links(memory: Memory) -> None:
    ids = [memory.add(f"The red boat of Ida lies in the harbour, berth {n}.") for n in range(3)]
    memory.flush()
    for id in ids[:2]:
        memory.link(ids[2], id, reason="I saw it")
    memory.update(ids[2], content="The red boat of Ida lies in the harbour, berth 20.")  # the note is linked again
    memory.flush()
    memory.evolve()
    assert sorted(by_hand(memory, ids[2])) == sorted((id, "RELATES", "I saw it") for id in ids[:2])


@pytest.mark.parametrize("deleted", [0, 1])
def test_a_link_is_deleted_with_either_note(memory: Memory, deleted: int) -> None:
    ids = [memory.add("Ida tunes on Fridays."), memory.add("The cello stands in the hall.")]
    memory.link(ids[0], ids[1], reason="I asked the luthier")
    memory.delete(ids[deleted])
    assert memory.links(ids[1 - deleted]) == []
    assert "luthier" not in str(memory.history(ids[1 - deleted]))


@pytest.mark.here
def test_invalid_links_raise(memory: Memory) -> None:
    first, other, archived = memory.add_many(LIFE[:3])
    memory.archive(archived)
    other_note = memory.add("Elsewhere.", scope=Scope(user="bob"))
    for source, target in [(first, other_note), (other_note, first), ("n_0", first), (first, "n_0")]:
        with pytest.raises(NotFound):
            memory.link(source, target)
    for source, target, kind, message in [
        (first, first, "RELATES", "to itself"),
        (first, archived, "RELATES", "is in the archive"),
        (archived, first, "RELATES", "is in the archive"),
        (first, other, "MENTIONS", "must be one of RELATES, SUPERSEDES, UPDATES, CONTRADICTS"),
        (first, other, 7, "type=7"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            memory.link(source, target, kind)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="reason"):
        memory.link(first, other, reason="\x00")
    assert by_hand(memory, first) == []
