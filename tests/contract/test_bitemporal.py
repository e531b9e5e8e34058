"""Bitemporal reads: valid time (`as_of`) and transaction time (`known_at`)."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from tests.contract.support import LIFE, decide, search_texts
from zettel import LinkType, Memory
from zettel.errors import InvalidInput

pytestmark = pytest.mark.over_http


def test_as_of_excludes_later_facts(memory: Memory) -> None:
    memory.add_many(LIFE, wait=True)
    assert any("Oslo" in text for text in search_texts(memory, "Where did Ann move to?", as_of="2024-06-01")[:2])
    then = search_texts(memory, "Where did Ann move to?", as_of="2024-02-01")
    assert then
    assert not any("Oslo" in text or "Congratulations" in text for text in then)
    assert search_texts(memory, "Ida and the glaciers", as_of="1999-01-01") == [LIFE[6]["content"]]


def test_statistics_as_of_a_moment_are_those_of_that_moment(memory: Memory) -> None:
    memory.add_many(LIFE[:3], wait=True)
    hits = memory.search("Ann's cello", as_of="2024-02-01", explain=True)
    before = [(hit.note.content, round(hit.why.local_score, 4)) for hit in hits]
    memory.add_many(LIFE[3:], wait=True)
    hits = memory.search("Ann's cello", as_of="2024-02-01", explain=True)
    after = [(hit.note.content, round(hit.why.local_score, 4)) for hit in hits]
    undated = LIFE[6]["content"]
    assert [text for text, _ in after if text != undated] == [text for text, _ in before]


@pytest.mark.here
def test_a_replacement_ranks_above_its_note_unless_recorded_after_known_at(memory: Memory) -> None:
    old = memory.add("Ann lives in Bergen.", occurred_at="2024-01-01")
    new = memory.add("Ann has left for Oslo.", occurred_at="2024-05-01")
    memory.flush()
    decide(memory, new, old, LinkType.SUPERSEDES)
    hits = memory.search("Ann lives in Bergen", explain=True)
    assert [hit.note.id for hit in hits[:2]] == [new, old]
    assert hits[1].note.valid_to == datetime(2024, 5, 1, tzinfo=timezone.utc)
    assert hits[1].why.superseded_by == new
    then = memory.search("Ann lives in Bergen", as_of="2024-02-01", explain=True)
    assert [hit.note.id for hit in then] == [old]
    assert then[0].why.superseded_by is None


@pytest.mark.here
def test_valid_to_is_derived_so_nothing_needs_repair(memory: Memory) -> None:
    old = memory.add("Ann lives in Bergen.", occurred_at="2024-01-01")
    new = memory.add("Ann lives in Oslo.", occurred_at="2024-05-01")
    between = memory.add("Ann lives in Voss.", occurred_at="2024-03-01")
    memory.flush()
    decide(memory, new, old, LinkType.SUPERSEDES)
    decide(memory, between, old, LinkType.SUPERSEDES)
    assert memory.get(old).valid_to == datetime(2024, 3, 1, tzinfo=timezone.utc)
    memory.delete(between)
    assert memory.get(old).valid_to == datetime(2024, 5, 1, tzinfo=timezone.utc)
    memory.revert(new, 1)
    assert memory.get(old).valid_to is None


def test_a_context_contains_outdated_notes_only_for_questions_about_the_past(memory: Memory) -> None:
    old = memory.add("Ann lives in Bergen.", occurred_at="2024-01-01")
    new = memory.add("Ann lives in Oslo.", occurred_at="2024-05-01")
    memory.flush()
    memory.link(new, old, LinkType.SUPERSEDES)
    assert memory.context("Where does Ann live?") == "## Wednesday, 2024-05-01\n- Ann lives in Oslo."
    assert "valid since 2024-05-01)" in memory.context("Where did Ann live before?")
    assert "Bergen." in memory.context("Where does Ann live?", current_only=False)
    assert memory.context("Where does Ann live?", as_of="2024-02-01").endswith("- Ann lives in Bergen.")
    assert "Bergen" not in memory.answer_context("Where does Ann live?").text


def test_an_end_set_by_hand_wins_until_reverted(memory: Memory) -> None:
    old = memory.add("Ann lives in Bergen.", occurred_at="2024-01-01")
    new = memory.add("Ann lives in Oslo.", occurred_at="2024-05-01")
    memory.flush()
    memory.link(new, old, LinkType.SUPERSEDES)
    linked = memory.get(old).version
    assert memory.update(old, valid_to="2024-03-01").valid_to == datetime(2024, 3, 1, tzinfo=timezone.utc)
    for end in ("2024-03-01", "2024-07-01"):  # before and after that by the link
        memory.update(old, valid_to=end)
        moment = datetime.fromisoformat(end).replace(tzinfo=timezone.utc)
        assert memory.get(old).valid_to == moment
        assert [note.valid_to for note in memory.list().notes] == [moment, None]
        assert _ends(memory)[old] == moment
        before, after = moment - timedelta(days=1), moment + timedelta(days=1)
        assert _ends(memory, as_of=before)[old] is None
        assert _ends(memory, as_of=after)[old] == moment
        assert old in _current(memory, as_of=before)
        assert old not in _current(memory, as_of=after)
        assert old not in _current(memory)
    memory.revert(old, linked)
    assert memory.get(old).valid_to == datetime(2024, 5, 1, tzinfo=timezone.utc)
    memory.update(old, valid_to="2024-03-01")
    memory.update(old, valid_to=None)
    assert memory.get(old).valid_to == datetime(2024, 5, 1, tzinfo=timezone.utc)


def test_a_statement_without_a_successor_ends_by_hand(memory: Memory) -> None:
    id = memory.add("Ann has a library card.", occurred_at="2024-01-01")
    memory.add("Ann likes the library.", occurred_at="2024-02-01")
    memory.flush()
    moment = memory.get(id).recorded_at + timedelta(microseconds=1)
    _wait_past(moment)
    memory.update(id, valid_to="2024-05-01")
    assert id not in _current(memory, "library")  # the last event is older than the end
    assert id in _current(memory, "library", now="2024-04-01")
    assert id in _current(memory, "library", known_at=moment)
    assert id not in _current(memory, "library", known_at=memory.history(id)[-1].recorded_at)
    (hit,) = memory.search("library card", k=1)
    assert (hit.why.time[-10:], hit.why.superseded_by) == ("2024-05-01", None)
    memory.update(id, valid_to="2999-01-01")
    assert id in _current(memory, "library")
    assert memory.search("library card", k=1)[0].why.time == "valid until 2999-01-01"
    memory.update(id, content="Ann has a library card, a blue one.")
    assert memory.get(id).valid_to == datetime(2999, 1, 1, tzinfo=timezone.utc)


def test_a_start_set_by_hand_moves_the_note_and_the_end_of_its_predecessor(memory: Memory) -> None:
    old = memory.add("Ann lives in Bergen.", occurred_at="2024-01-01")
    new = memory.add("Ann lives in Oslo.", occurred_at="2024-05-01")
    memory.flush()
    memory.link(new, old, LinkType.SUPERSEDES)
    memory.update(new, valid_from="2024-03-01")
    assert memory.get(old).valid_to == datetime(2024, 3, 1, tzinfo=timezone.utc)
    assert _current(memory, as_of="2024-04-01") == [new]
    assert _current(memory, as_of="2024-02-01") == [old]
    with pytest.raises(InvalidInput, match="is before valid_from"):
        memory.update(new, valid_to="2024-02-01")


def _ends(memory: Memory, **search: object) -> dict[str, datetime | None]:
    """Return the end of validity of each hit, by id."""
    hits = memory.search("Where does Ann live?", **search)  # type: ignore[arg-type]
    return {hit.note.id: hit.note.valid_to for hit in hits}


def _current(memory: Memory, question: str = "Where does Ann live?", **search: object) -> list[str]:
    """Return the ids of the notes that are not outdated, best first."""
    return [hit.note.id for hit in memory.search(question, current_only=True, **search)]  # type: ignore[arg-type]


def test_known_at_returns_the_recorded_state(memory: Memory) -> None:
    first = memory.add("The key hangs behind the door.", occurred_at="2020-01-01")
    memory.flush()
    moment = memory.get(first).recorded_at + timedelta(microseconds=1)
    _wait_past(moment)
    memory.add("The key hangs in the shed.", occurred_at="2020-01-02")
    memory.update(first, content="The lamp stands behind the door.")
    memory.flush()
    assert search_texts(memory, "Where is the key?", known_at=moment)[0] == "The key hangs behind the door."
    assert len(search_texts(memory, "Where is the key?", known_at=moment)) == 1
    assert search_texts(memory, "Where is the key?")[0] == "The key hangs in the shed."
    assert not any("lamp" in text for text in search_texts(memory, "Where is the lamp?", known_at=moment))
    assert search_texts(memory, "key", known_at="2001-01-01") == []


def test_known_at_before_a_revert_still_shows_the_change(memory: Memory) -> None:
    id = memory.add("The meeting is in the red room.")
    memory.flush()
    memory.update(id, content="The meeting is in the blue room.")
    changed = memory.history(id)[-1].recorded_at
    _wait_past(changed)
    memory.revert(id, 1)
    assert search_texts(memory, "meeting room") == ["The meeting is in the red room."]
    assert search_texts(memory, "meeting room", known_at=changed) == ["The meeting is in the blue room."]


def test_imports_carry_old_dates_and_todays_recording(memory: Memory) -> None:
    id = memory.add("We signed the lease.", occurred_at="1999-12-31T23:30:00+02:00")
    note = memory.get(id)
    assert note.occurred_at == datetime(1999, 12, 31, 21, 30, tzinfo=timezone.utc)
    assert abs(note.recorded_at - datetime.now(timezone.utc)) < timedelta(minutes=1)


def test_yesterday_counts_from_now_or_from_the_last_event(memory: Memory) -> None:
    memory.add("We baked rye bread.", occurred_at="2024-05-01T10:00Z")
    memory.add("We baked white bread.", occurred_at="2024-06-10T10:00Z")
    memory.add("We cleaned the oven.", occurred_at="2024-06-11T10:00Z")
    memory.flush()
    question = "Which bread did we bake yesterday?"
    assert search_texts(memory, question)[0] == "We baked white bread."
    assert search_texts(memory, question, now="2024-05-02T12:00Z")[0] == "We baked rye bread."


def test_today_is_in_the_time_zone_of_now(memory: Memory) -> None:
    memory.add("We baked rye bread.", occurred_at="2024-05-08T16:00Z")
    memory.add("We baked white bread.", occurred_at="2024-05-09T16:00Z")
    memory.flush()
    question = "Which bread did we bake today?"
    for now in ("2024-05-08T20:00-07:00", datetime(2024, 5, 8, 20, tzinfo=timezone(timedelta(hours=-7)))):
        assert search_texts(memory, question, now=now)[0] == "We baked rye bread."
    assert search_texts(memory, question, now="2024-05-09T03:00Z")[0] == "We baked white bread."


def test_an_invalid_time_names_its_argument(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="as_of='yesterday-ish'"):
        memory.search("x", as_of="yesterday-ish")
    for number in (2024, 20240501, 0.5, True):
        with pytest.raises(InvalidInput, match="is a number, not a time"):
            memory.add("x", occurred_at=number)
        with pytest.raises(InvalidInput, match=r"is not a time|a valid string"):  # the second over HTTP
            memory.search("x", as_of=number)
    id = memory.add("Said when the ferry left.", occurred_at=1_714_554_000)  # seconds since 1970
    assert memory.get(id).occurred_at == datetime(2024, 5, 1, 9, tzinfo=timezone.utc)


def _wait_past(moment: datetime) -> None:
    while datetime.now(timezone.utc) <= moment:
        pass
