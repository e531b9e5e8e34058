"""Archived notes stay unchanged, can be searched on request, and can be restored."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import BACKENDS, EVERY_STORE
from tests.contract.support import LIFE, decide, said
from tests.contract.transfer_helpers import told
from zettel import Decay, LinkType, Memory, Note
from zettel.errors import InvalidInput, NotFound
from zettel.model import NoteUse
from zettel.testing.reference_store import ReferenceStore

pytestmark = pytest.mark.over_http

ALL_FADES = Decay(0, strength=1.0, importance=1.0)


@pytest.fixture(params=EVERY_STORE)
def fading(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    """A memory on each store whose every round puts away all that may fade."""
    with Memory(BACKENDS[request.param](tmp_path), decay=ALL_FADES) as opened:
        yield opened


def noted(memory: Memory, id: str) -> Note:
    note = memory.get(id)
    assert isinstance(note, Note)
    return note


def away(memory: Memory, *ids: str) -> list[bool]:
    return [noted(memory, id).archived for id in ids]


def state(memory: Memory, id: str) -> dict[str, Any]:
    return noted(memory, id).model_dump(exclude={"version"})


def test_by_hand_and_back(memory: Memory) -> None:
    ids = memory.add_many(LIFE, wait=True)
    before = [state(memory, id) for id in ids]
    links = memory.links(ids[2])
    assert memory.archive(ids[2]).archived
    assert ids[2] not in [note.id for note in memory.list().notes]
    assert LIFE[2]["content"] not in said(memory, "Who howls along with the cello?")
    assert LIFE[2]["content"] in said(memory, "Who howls along with the cello?", archived=True)
    assert memory.history(ids[2])[-1].cause.by == "user"
    assert memory.links(ids[2]) == links
    assert memory.check() == []
    memory.unarchive(ids[2])
    memory.flush()
    assert [state(memory, id) for id in ids] == before
    assert said(memory, "Who howls along with the cello?")[0] == LIFE[2]["content"]
    assert memory.check() == []


def test_what_cannot_be_done_is_said(memory: Memory) -> None:
    one, other = (memory.add("The ferry to Bergen leaves at nine.", id=id, speaker="Ann", occurred_at="2024-05-01")
                  for id in "ab")  # fmt: skip
    memory.evolve()
    with pytest.raises(InvalidInput, match="merged into"):
        memory.unarchive(other)
    with pytest.raises(InvalidInput, match="not in the archive"):
        memory.unarchive(one)
    memory.archive(one)
    with pytest.raises(InvalidInput, match="already"):
        memory.archive(one)
    with pytest.raises(NotFound, match="n_nothing"):
        memory.archive("n_nothing")


def test_a_list_of_the_archive_begins_with_the_newest_and_goes_on(memory: Memory) -> None:
    ids = memory.add_many(LIFE)
    for id in ids[:4]:
        memory.archive(id)
    page = memory.list(archived=True, limit=3)
    assert [note.id for note in page.notes] == [ids[3], ids[2], ids[1]]
    assert [note.id for note in memory.list(archived=True, limit=3, cursor=page.cursor).notes] == [ids[0]]
    assert [note.id for note in memory.list(archived=True, speaker="Bob").notes] == [ids[1]]
    assert [note.id for note in memory.list().notes] == ids[4:]


@pytest.mark.parametrize(
    "asked",
    [{}, {"k": 3}, {"speaker": "Ann"}, {"session": "a"}, {"since": "2024-02-01"}, {"as_of": "2024-03-01"}],
    ids=str,
)
def test_all_stores_answer_alike_with_the_archive(memory: Memory, asked: dict[str, Any]) -> None:
    found = []
    with Memory(ReferenceStore()) as other:
        for one in (memory, other):
            ids = one.add_many(LIFE, wait=True)
            for id in ids[::2]:
                one.archive(id)
            hits = one.search("Where does Ann live, and what about the cello?", archived=True, **asked)
            assert all(("archive" in hit.why.seeds) == hit.note.archived for hit in hits)
            found.append([(hit.note.content, hit.note.archived) for hit in hits])
    assert found[0] == found[1]
    assert any(archived for _, archived in found[0])


def test_both_clocks_hold_for_the_archive(memory: Memory) -> None:
    ids = memory.add_many(LIFE, wait=True)
    then = max(noted(memory, id).recorded_at for id in ids)
    later = memory.add("Ann keeps a zeppelin in Bergen.", occurred_at="2025-01-01")
    for id in (ids[0], later):
        memory.archive(id)
    assert "zeppelin" not in str(said(memory, "zeppelin", archived=True, known_at=then))
    assert "zeppelin" not in str(said(memory, "zeppelin", archived=True, as_of="2024-06-01"))
    assert "zeppelin" in said(memory, "zeppelin", archived=True)[0]
    hits = memory.search("Who lives in Bergen?", known_at=then, archived=True)  # not put away yet
    assert [hit.note.id for hit in hits].count(ids[0]) == 1


def test_what_is_put_away_is_found_by_the_words_that_it_had_then(memory: Memory) -> None:
    one = memory.add("A recipe for walnuts.", occurred_at="2024-05-01", wait=True)
    memory.archive(one)
    then = memory.history(one)[-1].recorded_at
    memory.update(one, content="A recipe for almonds.")
    (hit,) = memory.search("walnuts", archived=True, known_at=then)
    assert hit.note.content == "A recipe for walnuts."
    assert "text" in hit.why.seeds
    (other,) = memory.search("almonds", archived=True, known_at=then)
    assert "text" not in other.why.seeds
    assert other.score < hit.score
    assert "text" in memory.search("almonds", archived=True)[0].why.seeds


def test_nothing_fades_unasked(memory: Memory) -> None:
    ids = memory.add_many(LIFE, wait=True)
    assert memory.evolve().archived == 0
    assert not any(away(memory, *ids))


def test_what_fades_is_put_away_and_the_rest_stays(fading: Memory) -> None:
    plain = fading.add("The pond froze.")
    pinned = fading.add("The key is under the third stone.")
    fading.update(pinned, tags=["pinned"])
    fact = fading.add("The mill stands empty.")
    fading.update(fact, kind="semantic")
    old, new = fading.add("The bakery sold rye buns."), fading.add("Tove painted the fence.")
    fading.flush()
    decide(fading, new, old, LinkType.SUPERSEDES)
    rule = fading.add("When it rains, close the hatch.")
    fading.update(rule, kind="procedural")
    assert fading.evolve().archived == 2
    assert away(fading, plain, pinned, fact, old, new, rule) == [True, False, False, True, False, False]
    assert noted(fading, plain).faded
    assert [r.cause.by for r in fading.history(plain)][-1] == "decay"
    assert fading.check() == []
    before = fading.history(plain)
    assert not any(fading.evolve())
    assert fading.history(plain) == before


def test_a_policy_of_days_leaves_what_is_recent(url: Any) -> None:
    with Memory(url, decay=Decay(90)) as memory:
        ids = memory.add_many(LIFE)
        assert memory.evolve().archived == 0
        assert not any(away(memory, *ids))


class Unused(Decay):
    """What was of no use fades."""

    def fades(self, note: Note, use: NoteUse, importance: float, now: datetime) -> bool:
        return use.times == 0


def test_what_a_note_speaks_for_was_of_use_keeps_it_from_fading(url: Any) -> None:
    with Memory(url) as memory:
        said = {"content": "Ida lit the harbour lamps.", "speaker": "Ida", "session": "s"}
        ids = memory.add_many([said | {"occurred_at": f"2024-05-01T{hour}:00Z"} for hour in (10, 11)])
        (hit, *_) = memory.search("Who lit the harbour lamps?")
        assert memory.evolve().merged == 1
    with Memory(url, decay=Unused(0)) as memory:
        memory.feedback(hit.search_id, used=[ids[1]])
        assert memory.evolve().archived == 0
        memory.feedback(hit.search_id, used=[])
        assert memory.evolve().archived == 1


def test_an_exact_question_brings_a_faded_note_back(fading: Memory) -> None:
    kept = fading.add("The harbour lamps were lit.")
    fading.update(kept, tags=["pinned"])
    id = fading.add("Ida put the astrolabe behind the clock.", speaker="Ida")
    fading.flush()
    before = state(fading, id)
    assert fading.evolve().archived == 1
    assert [note.id for note in fading.list().notes] == [kept]
    assert fading.search("What is behind the clock?", min_score=0.2) == []  # no rare word: it stays away
    assert away(fading, id) == [True]
    hits = fading.search("Where is the astrolabe?", session="elsewhere")
    assert hits == []
    (hit, *_) = fading.search("Where is the astrolabe?", restore_decayed=False)
    assert (hit.note.id, hit.note.faded) == (id, True)
    fading.flush()
    assert away(fading, id) == [True]
    (hit, *_) = fading.search("Where is the astrolabe?")
    assert hit.note.id == id
    assert "archive" in hit.why.seeds
    fading.flush()
    assert state(fading, id) == before
    assert fading.history(id)[-1].cause.by == "search"
    assert fading.check() == []
    (hit, *_) = fading.search("Where is the astrolabe?")
    assert (hit.note.id, "archive" in hit.why.seeds) == (id, False)


def test_what_was_put_away_by_hand_is_not_brought_back_by_a_question(fading: Memory) -> None:
    id = fading.add("Ida put the astrolabe behind the clock.")
    fading.archive(id)
    assert fading.search("Where is the astrolabe?") == []
    fading.evolve()
    assert fading.search("Where is the astrolabe?") == []
    fading.flush()
    assert away(fading, id) == [True]


def test_what_a_person_restore_decayed_does_not_fade_again(fading: Memory) -> None:
    one, other = fading.add("The pond froze."), fading.add("The vicar bought a sledge.")
    assert fading.evolve().archived == 2
    fading.unarchive(one)
    fading.revert(other, 1)
    assert fading.evolve().archived == 0
    assert away(fading, one, other) == [False, False]


def test_fading_leaves_what_was_made_of_a_note(fading: Memory) -> None:
    texts = [f"Ida fired the kiln with birch wood, load {n} of the kiln." for n in range(8)]
    ids = fading.add_many([{"content": text, "session": str(n), "id": str(n)} for n, text in enumerate(texts)])
    for id in ids:
        fading.update(id, tags=["pinned"])
    fading.flush()
    fading.evolve()
    insights = [state(fading, note.id) for note in fading.list(kinds=["insight"]).notes]
    assert insights
    for id in ids:
        fading.update(id, tags=[])
    fading.evolve()
    assert [state(fading, note.id) for note in fading.list(kinds=["insight"]).notes] == insights


def test_a_move_carries_the_archive(url: Any, tmp_path: Path) -> None:
    with Memory(url, decay=ALL_FADES) as memory:
        id = memory.add("Ida put the astrolabe behind the clock.")
        memory.evolve()
        before = told(memory)
        memory.export(tmp_path / "all.zettel", "zettel")
    with Memory(tmp_path / "there.db") as moved:
        moved.import_transcript(tmp_path / "all.zettel")
        assert told(moved) == before
        assert noted(moved, id).faded
        assert [hit.note.id for hit in moved.search("the astrolabe")] == [id]
