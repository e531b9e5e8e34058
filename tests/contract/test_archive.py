"""Archived notes stay unchanged, can be searched on request, and can be restored."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import BACKENDS, EVERY_STORE
from tests.contract.support import LIFE, decide, noted, search_texts
from tests.contract.transfer_helpers import scope_contents
from zettel import Decay, LinkType, Memory, Note
from zettel.errors import InvalidInput, NotFound
from zettel.model import NoteUse
from zettel.testing.reference_store import ReferenceStore

pytestmark = pytest.mark.over_http

DECAY_ALL = Decay(0, strength=1.0, importance=1.0)


@pytest.fixture(params=EVERY_STORE)
def decaying(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    """Return a memory on each store whose evolve round archives every note that may decay."""
    with Memory(BACKENDS[request.param](tmp_path), decay=DECAY_ALL) as opened:
        yield opened


def archived_flags(memory: Memory, *ids: str) -> list[bool]:
    return [noted(memory, id).archived for id in ids]


def state(memory: Memory, id: str) -> dict[str, Any]:
    return noted(memory, id).model_dump(exclude={"version"})


def test_unarchive_restores_an_archived_note(memory: Memory) -> None:
    ids = memory.add_many(LIFE, wait=True)
    before = [state(memory, id) for id in ids]
    links = memory.links(ids[2])
    assert memory.archive(ids[2]).archived
    assert ids[2] not in [note.id for note in memory.list().notes]
    assert LIFE[2]["content"] not in search_texts(memory, "Who howls along with the cello?")
    assert LIFE[2]["content"] in search_texts(memory, "Who howls along with the cello?", archived=True)
    assert memory.history(ids[2])[-1].cause.by == "user"
    assert memory.links(ids[2]) == links
    assert memory.check() == []
    memory.unarchive(ids[2])
    memory.flush()
    assert [state(memory, id) for id in ids] == before
    assert search_texts(memory, "Who howls along with the cello?")[0] == LIFE[2]["content"]
    assert memory.check() == []


def test_invalid_archive_calls_raise(memory: Memory) -> None:
    first, merged = (memory.add("The ferry to Bergen leaves at nine.", id=id, speaker="Ann", occurred_at="2024-05-01")
                  for id in "ab")  # fmt: skip
    memory.evolve()
    with pytest.raises(InvalidInput, match="merged into"):
        memory.unarchive(merged)
    with pytest.raises(InvalidInput, match="not in the archive"):
        memory.unarchive(first)
    memory.archive(first)
    with pytest.raises(InvalidInput, match="already"):
        memory.archive(first)
    with pytest.raises(NotFound, match="n_nothing"):
        memory.archive("n_nothing")


def test_archived_notes_are_listed_newest_first_with_a_cursor(memory: Memory) -> None:
    ids = memory.add_many(LIFE)
    for id in ids[:4]:
        memory.archive(id)
    page = memory.list(archived=True, limit=3)
    assert [note.id for note in page.notes] == [ids[3], ids[2], ids[1]]
    assert [note.id for note in memory.list(archived=True, limit=3, cursor=page.cursor).notes] == [ids[0]]
    assert [note.id for note in memory.list(archived=True, speaker="Bob").notes] == [ids[1]]
    assert [note.id for note in memory.list().notes] == ids[4:]


@pytest.mark.parametrize(
    "filters",
    [{}, {"k": 3}, {"speaker": "Ann"}, {"session": "a"}, {"since": "2024-02-01"}, {"as_of": "2024-03-01"}],
    ids=str,
)
def test_all_stores_rank_archived_notes_equally(memory: Memory, filters: dict[str, Any]) -> None:
    answers = []
    with Memory(ReferenceStore()) as other:
        for store in (memory, other):
            ids = store.add_many(LIFE, wait=True)
            for id in ids[::2]:
                store.archive(id)
            hits = store.search("Where does Ann live, and what about the cello?", archived=True, **filters)
            assert all(("archive" in hit.why.seeds) == hit.note.archived for hit in hits)
            answers.append([(hit.note.content, hit.note.archived) for hit in hits])
    assert answers[0] == answers[1]
    assert any(archived for _, archived in answers[0])


def test_as_of_and_known_at_apply_to_the_archive(memory: Memory) -> None:
    ids = memory.add_many(LIFE, wait=True)
    then = max(noted(memory, id).recorded_at for id in ids)
    later = memory.add("Ann keeps a zeppelin in Bergen.", occurred_at="2025-01-01")
    for id in (ids[0], later):
        memory.archive(id)
    assert "zeppelin" not in str(search_texts(memory, "zeppelin", archived=True, known_at=then))
    assert "zeppelin" not in str(search_texts(memory, "zeppelin", archived=True, as_of="2024-06-01"))
    assert "zeppelin" in search_texts(memory, "zeppelin", archived=True)[0]
    hits = memory.search("Who lives in Bergen?", known_at=then, archived=True)  # not archived yet
    assert [hit.note.id for hit in hits].count(ids[0]) == 1


def test_an_archived_note_is_found_by_its_wording_at_known_at(memory: Memory) -> None:
    id = memory.add("A recipe for walnuts.", occurred_at="2024-05-01", wait=True)
    memory.archive(id)
    then = memory.history(id)[-1].recorded_at
    memory.update(id, content="A recipe for almonds.")
    (hit,) = memory.search("walnuts", archived=True, known_at=then)
    assert hit.note.content == "A recipe for walnuts."
    assert "text" in hit.why.seeds
    (other,) = memory.search("almonds", archived=True, known_at=then)
    assert "text" not in other.why.seeds
    assert other.score < hit.score
    assert "text" in memory.search("almonds", archived=True)[0].why.seeds


def test_nothing_decays_by_default(memory: Memory) -> None:
    ids = memory.add_many(LIFE, wait=True)
    assert memory.evolve().archived == 0
    assert not any(archived_flags(memory, *ids))


def test_decayed_notes_are_archived_and_the_rest_stays(decaying: Memory) -> None:
    plain = decaying.add("The pond froze.")
    pinned = decaying.add("The key is under the third stone.")
    decaying.update(pinned, tags=["pinned"])
    fact = decaying.add("The mill stands empty.")
    decaying.update(fact, kind="semantic")
    old, new = decaying.add("The bakery sold rye buns."), decaying.add("Tove painted the fence.")
    decaying.flush()
    decide(decaying, new, old, LinkType.SUPERSEDES)
    rule = decaying.add("When it rains, close the hatch.")
    decaying.update(rule, kind="procedural")
    assert decaying.evolve().archived == 2
    assert archived_flags(decaying, plain, pinned, fact, old, new, rule) == [True, False, False, True, False, False]
    assert noted(decaying, plain).faded
    assert [r.cause.by for r in decaying.history(plain)][-1] == "decay"
    assert decaying.check() == []
    before = decaying.history(plain)
    assert not any(decaying.evolve())
    assert decaying.history(plain) == before


def test_a_policy_in_days_leaves_recent_notes(url: Any) -> None:
    with Memory(url, decay=Decay(90)) as memory:
        ids = memory.add_many(LIFE)
        assert memory.evolve().archived == 0
        assert not any(archived_flags(memory, *ids))


class Unused(Decay):
    """Unused notes decay."""

    def fades(self, note: Note, use: NoteUse, importance: float, now: datetime) -> bool:
        return use.times == 0


def test_use_of_a_merged_note_prevents_decay(url: Any) -> None:
    with Memory(url) as memory:
        event = {"content": "Ida lit the harbour lamps.", "speaker": "Ida", "session": "s"}
        ids = memory.add_many([event | {"occurred_at": f"2024-05-01T{hour}:00Z"} for hour in (10, 11)])
        (hit, *_) = memory.search("Who lit the harbour lamps?")
        assert memory.evolve().merged == 1
    with Memory(url, decay=Unused(0)) as memory:
        memory.feedback(hit.search_id, used=[ids[1]])
        assert memory.evolve().archived == 0
        memory.feedback(hit.search_id, used=[])
        assert memory.evolve().archived == 1


def test_an_exact_question_restores_a_decayed_note(decaying: Memory) -> None:
    pinned = decaying.add("The harbour lamps were lit.")
    decaying.update(pinned, tags=["pinned"])
    id = decaying.add("Ida put the astrolabe behind the clock.", speaker="Ida")
    decaying.flush()
    before = state(decaying, id)
    assert decaying.evolve().archived == 1
    assert [note.id for note in decaying.list().notes] == [pinned]
    assert decaying.search("What is behind the clock?", min_score=0.2) == []  # no rare word: it stays archived
    assert archived_flags(decaying, id) == [True]
    hits = decaying.search("Where is the astrolabe?", session="elsewhere")
    assert hits == []
    (hit, *_) = decaying.search("Where is the astrolabe?", restore_decayed=False)
    assert (hit.note.id, hit.note.faded) == (id, True)
    decaying.flush()
    assert archived_flags(decaying, id) == [True]
    (hit, *_) = decaying.search("Where is the astrolabe?")
    assert hit.note.id == id
    assert "archive" in hit.why.seeds
    decaying.flush()
    assert state(decaying, id) == before
    assert decaying.history(id)[-1].cause.by == "search"
    assert decaying.check() == []
    (hit, *_) = decaying.search("Where is the astrolabe?")
    assert (hit.note.id, "archive" in hit.why.seeds) == (id, False)


def test_a_question_does_not_restore_a_manually_archived_note(decaying: Memory) -> None:
    id = decaying.add("Ida put the astrolabe behind the clock.")
    decaying.archive(id)
    assert decaying.search("Where is the astrolabe?") == []
    decaying.evolve()
    assert decaying.search("Where is the astrolabe?") == []
    decaying.flush()
    assert archived_flags(decaying, id) == [True]


def test_notes_restored_by_a_person_do_not_decay_again(decaying: Memory) -> None:
    first, second = decaying.add("The pond froze."), decaying.add("The vicar bought a sledge.")
    assert decaying.evolve().archived == 2
    decaying.unarchive(first)
    decaying.revert(second, 1)
    assert decaying.evolve().archived == 0
    assert archived_flags(decaying, first, second) == [False, False]


def test_decay_leaves_insights_unchanged(decaying: Memory) -> None:
    texts = [f"Ida fired the kiln with birch wood, load {n} of the kiln." for n in range(8)]
    ids = decaying.add_many([{"content": text, "session": str(n), "id": str(n)} for n, text in enumerate(texts)])
    for id in ids:
        decaying.update(id, tags=["pinned"])
    decaying.flush()
    decaying.evolve()
    insights = [state(decaying, note.id) for note in decaying.list(kinds=["insight"]).notes]
    assert insights
    for id in ids:
        decaying.update(id, tags=[])
    decaying.evolve()
    assert [state(decaying, note.id) for note in decaying.list(kinds=["insight"]).notes] == insights


def test_a_transfer_includes_the_archive(url: Any, tmp_path: Path) -> None:
    with Memory(url, decay=DECAY_ALL) as memory:
        id = memory.add("Ida put the astrolabe behind the clock.")
        memory.evolve()
        before = scope_contents(memory)
        memory.export(tmp_path / "all.zettel", "zettel")
    with Memory(tmp_path / "there.db") as moved:
        moved.import_transcript(tmp_path / "all.zettel")
        assert scope_contents(moved) == before
        assert noted(moved, id).faded
        assert [hit.note.id for hit in moved.search("the astrolabe")] == [id]
