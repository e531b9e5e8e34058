"""Merging: duplicates become one note with all their events, and a merge can be reverted."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count, permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.conftest import BACKENDS, EVERY_STORE
from tests.contract.support import decide, noted, search_texts
from tests.contract.test_erasable import SECRETS
from tests.contract.test_erasable import traces as traces  # a fixture
from tests.contract.transfer_helpers import moved_to
from zettel import Event, LinkType, Memory
from zettel.errors import NotFound
from zettel.jobs import merge_job
from zettel.model import Kind
from zettel.testing.reference_store import ReferenceStore

PEOPLE = ("Ann", "Bob", "Ida", "Ole", "Tove")
THINGS = ("barn", "boat", "kiln", "orchard", "cellar", "harness", "sledge", "loom", "stove", "bridge")
STYLES: tuple[Callable[[str], str], ...] = (
    str, str.upper, "Well, {}".format, "{} Thanks!".format, lambda text: text.rstrip(".") + " !!",
)  # fmt: skip
DAY = "2024-05-01T09:00Z"


def statement(number: int) -> str:
    person, thing = PEOPLE[number % 5], THINGS[number // 5 % 10]
    return f"{person} painted the {thing} and used {number + 2} brushes."


def event(number: int, text: str, **fields: Any) -> Event:
    return Event(**{"id": f"e{number}", "content": text, "speaker": "Ida", "occurred_at": DAY, "session": "a"} | fields)


def state(memory: Memory, *ids: str) -> list[dict[str, Any]]:
    """Return all fields of notes except versions, and the ends of their links."""
    return [
        noted(memory, id).model_dump(exclude={"version"})
        | {"links": sorted((x.source, x.type.value, x.target) for x in memory.links(id))}
        for id in ids
    ]


def versions(memory: Memory, *ids: str) -> list[int]:
    return [noted(memory, id).version for id in ids]


def pair(memory: Memory) -> tuple[str, str]:
    """Add a statement and its duplicate, and merge them."""
    original, duplicate = memory.add_many([event(0, statement(0)), event(1, f"Well, {statement(0)}")])
    assert memory.evolve().merged == 1
    return original, duplicate


def test_fifty_planted_duplicates_are_merged_and_nothing_else(memory: Memory) -> None:
    originals = [event(n, statement(n)) for n in range(50)]
    duplicates = [event(100 + n, STYLES[n % len(STYLES)](statement(n))) for n in range(50)]
    near = [
        event(200, statement(0).replace("2", "3")), event(201, statement(1).replace("Bob", "Tor")),
        event(202, statement(2).replace("painted", "never painted")), event(203, statement(3), speaker="Ole"),
        event(204, statement(4), occurred_at="2024-06-01"), event(205, statement(5).rstrip(".") + "?"),
        *(event(210 + n, "Thanks!") for n in range(5)), *(event(220 + n, "In Oslo.") for n in range(5)),
    ]  # fmt: skip
    ids = memory.add_many([*originals, *duplicates, *near])
    assert memory.evolve().merged == 50
    assert [noted(memory, id).merged_into for id in ids] == [*[None] * 50, *ids[:50], *[None] * len(near)]
    for first, second in zip(ids[:50], ids[50:100], strict=True):
        assert noted(memory, second).archived
        assert noted(memory, first).event_ids == (noted(memory, first).event_ids[0], noted(memory, second).event_ids[0])
    assert [note.id for note in memory.list(kinds=[Kind.EPISODIC], limit=200).notes] == ids[:50] + ids[100:]
    for number in range(0, 50, 7):
        hit_ids = [hit.note.id for hit in memory.search(STYLES[2](statement(number)), k=5)]
        assert ids[number] in hit_ids
        assert not set(hit_ids).intersection(ids[50:100])
    assert memory.check() == []
    before = versions(memory, *ids)
    assert not any(memory.evolve())
    assert versions(memory, *ids) == before


def test_a_later_duplicate_joins_the_merged_note(memory: Memory) -> None:
    first, second = pair(memory)
    third = memory.add(statement(0), id="third", speaker="Ida", occurred_at=DAY, session="a")
    assert memory.evolve().merged == 1
    assert [noted(memory, id).merged_into for id in (second, third)] == [first, first]
    assert len(noted(memory, first).event_ids) == 3
    assert {r.cause.by for r in memory.history(first)} >= {"merge"}
    merging = [r for r in memory.history(first) if r.cause.by == "merge" and r.live]
    assert [set(r.change) for r in merging] == [{"event_ids", "occurrences"}]
    assert {read.note for read in merging[0].inputs} == {first, second, third}


def test_frequent_duplicates_are_merged_in_bounded_groups(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_job, "MAX_MERGED", 4)
    ids = memory.add_many([event(n, "The nightly deploy of the barn server finished.") for n in range(10)])
    assert memory.evolve().merged == 3 + 3 + 1
    assert [len(noted(memory, id).event_ids) for id in (ids[0], ids[4], ids[8])] == [4, 4, 2]
    assert max(len(revision.inputs) for id in ids for revision in memory.history(id)) == 4
    assert not any(memory.evolve())
    memory.add_many([event(10, "The nightly deploy of the barn server finished.")])
    assert memory.evolve().merged == 1
    assert [len(noted(memory, id).event_ids) for id in (ids[0], ids[4], ids[8])] == [4, 4, 3]


def test_known_at_before_a_merge_shows_both_notes(memory: Memory) -> None:
    ids = memory.add_many([event(0, statement(0)), event(1, statement(0))])
    memory.flush()
    before = max(noted(memory, id).recorded_at for id in ids)
    memory.evolve()
    then = memory.search(statement(0), known_at=before)
    assert {hit.note.id for hit in then} == set(ids)
    assert all(len(hit.note.event_ids) == 1 and not hit.note.archived for hit in then)
    assert [len(hit.note.event_ids) for hit in memory.search(statement(0))] == [2]


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_the_order_of_arrival_does_not_matter(order: tuple[int, ...]) -> None:
    """Whatever the order of arrivals and merges, the oldest note stays and has all events."""
    texts = [statement(0), f"Well, {statement(0)}", statement(0).upper()]
    for evolved_at in range(4):
        with Memory(ReferenceStore()) as memory:
            ids = []
            for place, number in enumerate(order):
                ids += memory.add_many([event(number, texts[number])])
                if place == evolved_at:
                    memory.evolve()
            memory.evolve()
            assert [noted(memory, id).merged_into for id in ids] == [None, ids[0], ids[0]]
            assert noted(memory, ids[0]).event_ids == tuple(noted(memory, id).event_ids[0] for id in ids)


@pytest.mark.parametrize("side", [0, 1])
def test_reverting_either_note_separates_both_for_good(memory: Memory, side: int) -> None:
    ids = memory.add_many([event(0, statement(0)), event(1, statement(0)), event(2, "Hens lay eggs.")])
    memory.flush()
    before = state(memory, *ids)
    memory.evolve()
    assert state(memory, *ids) != before
    memory.revert(ids[side], 1)
    memory.flush()
    assert [noted(memory, id).merged_into for id in ids] == [None] * 3
    assert search_texts(memory, statement(0), k=2) == [statement(0)] * 2
    assert memory.check() == []
    assert memory.evolve().merged == 0  # a person reverted the merge
    for id in ids:
        memory.revert(id, 1)
    memory.flush()
    assert [dict(note, links=[]) for note in state(memory, *ids)] == [dict(note, links=[]) for note in before]


def test_reverting_a_revert_merges_again(memory: Memory) -> None:
    first, second = pair(memory)
    merged = state(memory, first, second)
    memory.revert(second, 1)
    memory.revert(second, memory.history(second)[-2].version)
    assert state(memory, first, second) == merged
    assert len(memory.list().notes) == 1
    memory.flush()
    assert memory.check() == []


def test_one_of_three_merged_notes_can_be_separated(memory: Memory) -> None:
    first, second = pair(memory)
    third = memory.add(statement(0), id="third", speaker="Ida", occurred_at=DAY, session="a")
    memory.evolve()
    memory.revert(third, 1)
    assert [noted(memory, id).merged_into for id in (first, second, third)] == [None, first, None]
    memory.revert(second, 1)
    assert [noted(memory, id).merged_into for id in (first, second, third)] == [None] * 3
    assert [len(noted(memory, id).event_ids) for id in (first, second, third)] == [1] * 3
    memory.flush()
    assert memory.check() == []


def test_revising_a_merged_event_separates_it(memory: Memory) -> None:
    first, second = pair(memory)
    assert memory.add_many([event(1, "Ann sold the barn.")], on_conflict="revise") == [second]
    assert [noted(memory, id).content for id in (first, second)] == [statement(0), "Ann sold the barn."]
    assert not noted(memory, second).archived
    assert len(noted(memory, first).event_ids) == 1
    memory.flush()
    assert search_texts(memory, "Who sold the barn?", k=1) == ["Ann sold the barn."]
    assert memory.check() == []


def test_revising_the_remaining_event_separates_it(memory: Memory) -> None:
    first, second = pair(memory)
    assert memory.add_many([event(0, "Ann sold the barn.")], on_conflict="revise") == [first]
    assert sorted(note.content for note in memory.list().notes) == ["Ann sold the barn.", f"Well, {statement(0)}"]
    assert noted(memory, second).merged_into is None
    memory.flush()
    assert memory.check() == []


def test_edited_notes_are_not_merged(memory: Memory) -> None:
    ids = memory.add_many([event(n, statement(0)) for n in range(3)])
    memory.update(ids[1], tags=["keep"])
    assert memory.evolve().merged == 1
    assert [noted(memory, id).merged_into for id in ids] == [None, None, ids[0]]


def test_links_to_a_merged_note_lead_to_its_target(memory: Memory) -> None:
    texts = statement(0), statement(0), "The vicar owns a sledge."
    ids = memory.add_many([event(number, text) for number, text in enumerate(texts)])
    memory.flush()
    decide(memory, ids[2], ids[1], LinkType.RELATES)
    memory.evolve()
    assert ids[2] in {near.note.id for near in memory.neighbors(ids[0], hops=1)}
    memory.delete(ids[2])
    assert noted(memory, ids[1]).merged_into == ids[0]
    assert memory.check() == []


@pytest.mark.parametrize("index", [0, 1])
def test_deleting_a_merged_note_destroys_all_its_events(url: Any, traces: Callable[..., list[str]], index: int) -> None:
    text = f"Once we lived above the harbour of {SECRETS[0]}."
    with Memory(url) as memory:
        unrelated = memory.add("Bread and boats and the harbour.", speaker="Ida")
        ids = memory.add_many([event(0, text, session=SECRETS[0]), event(1, text.upper(), session=SECRETS[0])])
        assert memory.evolve().merged == 1
        memory.evolve()
        assert memory.delete(ids[index]) == 2
        memory.flush(timeout=60)
        assert [note.id for note in memory.list().notes] == [unrelated]
        assert traces(SECRETS[0]) == []
        assert memory.check() == []


@pytest.mark.parametrize("source", ["a", "b"])
def test_deleting_a_source_keeps_the_duplicate_of_another_source(memory: Memory, source: str) -> None:
    first, second = memory.add_many([event(0, statement(0), source="a"), event(1, statement(0), source="b")])
    assert memory.evolve().merged == 1
    assert memory.delete(source=source) == 1
    memory.flush()
    (remaining,) = memory.list().notes
    assert remaining.id == (second if source == "a" else first)
    assert (remaining.merged_into, len(remaining.event_ids)) == (None, 1)
    assert memory.check() == []


def test_duplicates_of_different_sessions_are_not_merged(memory: Memory) -> None:
    later = "2024-05-01T15:00Z"
    _, other = memory.add_many([event(0, statement(0)), event(1, statement(0), session="b", occurred_at=later)])
    assert memory.evolve().merged == 0
    filters: list[dict[str, Any]] = [{"session": "b"}, {"since": later}]
    for clause in filters:
        assert [hit.note.id for hit in memory.search(statement(0), **clause)] == [other]
        assert [note.id for note in memory.list(**clause).notes] == [other]


def test_a_transfer_includes_merges(url: Any, tmp_path: Path) -> None:
    with Memory(url) as memory:
        first, second = pair(memory)
        with moved_to(tmp_path, memory) as moved:
            moved.revert(second, 1)
            assert [noted(moved, id).merged_into for id in (first, second)] == [None, None]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 5)),
        st.tuples(st.just("evolve"), st.just(0)),
        st.tuples(st.just("revert"), st.integers(0, 30)),
        st.tuples(st.just("update"), st.integers(0, 5)),
        st.tuples(st.just("delete"), st.integers(0, 5)),
    ),
    min_size=2,
    max_size=9,
)


def exists(memory: Memory, id: str) -> bool:
    try:
        memory.get(id)
    except NotFound:
        return False
    return True


def consistent(memory: Memory, ids: list[str]) -> bool:
    """Return whether each event belongs to exactly one visible note, and each merged note to its target."""
    notes = {id: noted(memory, id) for id in ids}
    shown = [event for note in notes.values() if not note.archived for event in note.event_ids]
    archived = {id: note for id, note in notes.items() if note.archived}
    return len(shown) == len(set(shown)) == len(ids) and all(
        set(note.event_ids) <= set(notes[note.merged_into or ""].event_ids) for note in archived.values()
    )


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("backend", EVERY_STORE)
def test_any_history_of_merges_can_be_reverted(
    backend: str, tmp_path_factory: pytest.TempPathFactory, soak_scale: Any
) -> None:
    """Random arrivals, rounds, edits, reverts and deletes; then a revert of each note in random order restores it."""

    @given(steps, st.randoms(use_true_random=False))
    @settings(max_examples=soak_scale(1000))
    def walk(history: list[tuple[str, int]], chance: random.Random) -> None:
        with Memory(BACKENDS[backend](tmp_path_factory.mktemp("history"))) as memory:
            ids: list[str] = []
            numbers = count()
            raw: dict[str, dict[str, Any]] = {}
            for name, value in [("add", 0), *history]:
                if name == "add":
                    text = STYLES[value](statement(0)) if value < 3 else statement(value)
                    ids += memory.add_many([event(next(numbers), text)])
                    raw[ids[-1]] = noted(memory, ids[-1]).model_dump(exclude={"version"})
                elif name == "evolve":
                    memory.evolve()
                elif name == "delete" and len(ids) > 1:
                    memory.delete(ids[value % len(ids)])
                    ids = [id for id in ids if exists(memory, id)]
                elif name == "revert" and ids:
                    chosen = ids[value % len(ids)]
                    past = [revision.version for revision in memory.history(chosen)]
                    memory.revert(chosen, past[value % len(past)])
                elif name == "update" and ids:
                    memory.update(ids[value % len(ids)], importance=value / 10)
                assert consistent(memory, ids)
            order = chance.sample(ids, len(ids))
            for id in order:
                memory.revert(id, 1)
            memory.flush()
            assert all(noted(memory, id).model_dump(exclude={"version"}) == raw[id] for id in ids)
            assert memory.check() == []

    walk()


STATES = ("I'm vegan.", "Call me Bo.", "I'm allergic to nuts.", "The vault code is 1234.", "I prefer tea.")
DAYS = ("2024-05-01T09:00Z", "2024-06-02T09:00Z", "2024-07-03T09:00Z")


def stated(text: str, *days: str, **fields: Any) -> list[Event]:
    """Return a statement of Ida on each of these days, each in its own session."""
    return [event(n, text, **{"id": f"{text}{day}", "occurred_at": day, "session": day} | fields)
            for n, day in enumerate(days)]  # fmt: skip


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_a_state_on_three_days_is_one_note_with_its_dates(memory: Memory, order: tuple[int, ...]) -> None:
    for text in STATES:
        memory.add_many([stated(text, *DAYS)[place] for place in order])
    assert memory.evolve().merged == 2 * len(STATES)
    for text in STATES:
        (hit,) = (hit for hit in memory.search(text) if hit.note.content == text)
        assert len(hit.note.event_ids) == 3
        assert [when.date().isoformat() for when in hit.note.occurrences] == [day[:10] for day in DAYS]
        assert hit.note.valid_from == hit.note.occurrences[0]
        assert [h.note.content for h in memory.search(text, as_of="2024-05-15")].count(text) == 1
    assert not any(memory.evolve())
    assert memory.check() == []


@pytest.mark.parametrize(
    "text", ["Went running this morning.", "I'm tired.", "I ate at Tove's.", "Where do I live?", "Thanks a lot!"]
)
def test_events_moods_and_questions_are_not_merged_across_days(memory: Memory, text: str) -> None:
    memory.add_many(stated(text, *DAYS))
    assert memory.evolve().merged == 0


def test_erasing_one_statement_keeps_the_others(memory: Memory) -> None:
    ids = memory.add_many(stated("I'm vegan.", *DAYS))
    memory.evolve()
    memory.delete(noted(memory, ids[1]).event_ids[0])
    memory.flush()
    memory.evolve()
    (note,) = memory.list(kinds=[Kind.EPISODIC]).notes
    assert [when.month for when in note.occurrences] == [5, 7]
    assert memory.check() == []


def test_reverting_a_merge_of_states_restores_each_statement(memory: Memory) -> None:
    ids = memory.add_many(reversed(stated("I'm vegan.", *DAYS)))
    memory.evolve()
    memory.revert(ids[0], 1)
    notes = [noted(memory, id) for id in ids]
    assert [note.valid_from for note in notes] == [note.occurred_at for note in notes]
    assert [note.occurrences for note in notes] == [()] * 3


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_a_state_that_ended_and_returned_is_two_notes(memory: Memory, order: tuple[int, ...]) -> None:
    homes = stated("I live in Bergen.", DAYS[0], DAYS[2])
    arrivals = [homes[0], event(9, "I live in Oslo now.", id="o", occurred_at=DAYS[1], session="o"), homes[1]]
    for place in order:
        memory.add_many([arrivals[place]])
        memory.flush()
        memory.evolve()
    memory.flush()
    memory.evolve()
    assert search_texts(memory, "Where does Ida live?", k=1) == ["I live in Bergen."]
    assert search_texts(memory, "Where does Ida live?", k=1, as_of="2024-06-15") == ["I live in Oslo now."]
    assert search_texts(memory, "Where does Ida live?", k=1, as_of="2024-05-15") == ["I live in Bergen."]
    ends = {note.occurred_at: note.valid_to for note in memory.list().notes}
    assert [end and end.month for _, end in sorted(ends.items(), key=str)] == [6, 7, None]
    assert memory.check() == []


def test_a_contradicted_statement_is_merged_with_its_contradictions(memory: Memory) -> None:
    ids = memory.add_many(stated("The vault code is 1234.", *DAYS))
    other = memory.add("The vault code is 9999.", speaker="page", role="tool", occurred_at=DAYS[2])
    memory.flush()
    memory.link(other, ids[2], "CONTRADICTS", reason="I see two codes")
    assert memory.evolve().merged == 2
    assert {end for pair in memory.conflicts() for end in (pair.note.id, pair.other.id)} == {ids[0], other}
    assert noted(memory, ids[0]).confidence > 0.8 > 0.2 > noted(memory, other).confidence


def test_every_day_of_a_merged_statement_counts_in_the_profile(memory: Memory) -> None:
    memory.add_many(stated("I love salt glazes.", *DAYS))
    assert memory.evolve().merged == 2
    (profile,) = memory.list(tags=["profile"]).notes
    assert "(3 days, 2024-05-01 to 2024-07-03)" in profile.content
