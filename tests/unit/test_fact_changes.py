"""Detecting changes of fact: which statements supersede which."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.link.fact_changes import FactChange, change_links, change_of, in_time
from zettel.model import REPLACING, Kind, LinkType, Note

DATA = Path(__file__).parents[1] / "data" / "changes"
PAIRS = sorted((DATA / "pairs").glob("*.jsonl"))
START = datetime(2024, 3, 1, 10, tzinfo=timezone.utc)


def _note(seq: int, content: str, *, speaker: str | None = "user", day: int | None = None, **fields: object) -> Note:
    when = None if day is None else START + timedelta(days=day)
    defaults: dict[str, object] = {
        "id": f"n_{seq}", "event_ids": (f"e_{seq}",), "seq": seq, "recorded_at": START, "content": content,
        "speaker": speaker, "occurred_at": when, "valid_from": when, "session": f"s_{seq}",
    }  # fmt: skip
    return Note.model_validate(defaults | fields)


def _change(before: str, after: str, *, dated: bool = True, speaker: str | None = "user") -> FactChange | None:
    days = (0, 120) if dated else (None, None)
    old, new = _note(1, before, day=days[0]), _note(2, after, speaker=speaker, day=days[1])
    return change_of(old, new, dated)


def _pairs(file: str) -> list[tuple[str, str]]:
    lines = (DATA / "statements" / f"{file}.txt").read_text(encoding="utf-8").splitlines()
    return [(before, after) for before, _, after in (line.partition(" => ") for line in lines)]


REPLACED = _pairs("replaced-en") + _pairs("replaced-lower-en")
UNCHANGED = _pairs("unchanged-en") + _pairs("unchanged-lower-en")
RESTATED = _pairs("restated-en")
REPLACED_GERMAN = _pairs("replaced-de")
UNCHANGED_GERMAN = _pairs("unchanged-de")


@pytest.mark.parametrize(
    ("before", "after", "type"),
    [
        ("I live in Porto.", "We moved to Braga.", LinkType.SUPERSEDES),
        ("I live in Porto, ten minutes from the station.", "We moved to Braga.", LinkType.SUPERSEDES),
        ("I live in Porto and work at Apple.", "We moved to Braga.", LinkType.UPDATES),
        ("I live in Porto with my wife Ana.", "We moved to Braga.", LinkType.UPDATES),
        ("I live in Porto. My sister has three cats.", "We moved to Braga.", LinkType.UPDATES),
        ("I live in Porto and work at Apple.", "We moved to Braga, and I work at Meta now.", LinkType.SUPERSEDES),
        ("Ich wohne in Porto mit meiner Frau Ana.", "Wir sind nach Braga gezogen.", LinkType.UPDATES),
    ],
)
def test_a_note_that_states_more_is_updated(before: str, after: str, type: LinkType) -> None:
    change = _change(before, after)
    assert change is not None
    assert change.type is type


@pytest.mark.parametrize(("before", "after"), REPLACED + REPLACED_GERMAN)
def test_a_change_supersedes_the_old_statement(before: str, after: str) -> None:
    change = _change(before, after)
    assert change is not None
    assert change.type in REPLACING
    assert change.reason.startswith("says that ")


@pytest.mark.parametrize(("before", "after"), UNCHANGED + RESTATED + UNCHANGED_GERMAN)
def test_a_statement_without_change_has_no_link(before: str, after: str) -> None:
    assert _change(before, after) is None


def test_there_are_many_restatements_with_a_further_number() -> None:
    assert len(RESTATED) >= 36


@pytest.mark.parametrize(
    ("after", "fields", "type"),
    [
        ("The rent is 900 euros.", {}, LinkType.CONTRADICTS),
        ("The rent is 900 euros now.", {}, LinkType.SUPERSEDES),
        ("Sorry, I was wrong. Correction: the rent is 900 euros.", {}, LinkType.SUPERSEDES),
        ("The rent is 900 euros.", {"session": "later"}, LinkType.SUPERSEDES),
    ],
)
def test_in_one_session_only_explicit_changes_supersede(after: str, fields: dict[str, object], type: LinkType) -> None:
    soon = {"occurred_at": START + timedelta(minutes=5), "session": "s_1"}
    change = change_of(_note(1, "The rent is 800 euros.", day=0), _note(2, after, **(soon | fields)), True)
    assert change is not None
    assert change.type is type


def test_the_reason_contains_the_old_and_the_new_value() -> None:
    change = _change("I live in Bergen.", "I live in Oslo.")
    assert change == (LinkType.SUPERSEDES, "says that User's home changed: Bergen \u2192 Oslo", None)


def test_an_announced_change_has_the_time_from_which_it_is_true() -> None:
    october = datetime(2024, 10, 5, tzinfo=timezone.utc)
    new = _note(2, "The rent goes up to 1,240 euros from January.", occurred_at=october)
    change = change_of(_note(1, "The rent is 1,150 euros.", day=0), new, True)
    assert change is not None
    assert change.type is LinkType.SUPERSEDES
    assert change.effective == datetime(2025, 1, 1, tzinfo=timezone.utc)
    german = _note(2, "Die Miete steigt ab dem 1. Januar auf 950 Euro.", occurred_at=october)
    change = change_of(_note(1, "Die Miete beträgt 900 Euro.", day=0), german, True)
    assert change is not None
    assert change.effective == datetime(2025, 1, 1, tzinfo=timezone.utc)


def test_a_plan_without_a_date_changes_nothing() -> None:
    assert _change("The rent is 900 euros.", "The rent will go up to 950 euros.") is None
    assert _change("I live in Leeds.", "We're moving to York.") is None


def test_without_dates_only_an_explicit_change_supersedes() -> None:
    undecided = _change("The rent is 900 euros.", "The rent is 950 euros.", dated=False)
    assert undecided is not None
    assert undecided.type is LinkType.CONTRADICTS
    marked = _change("Ann lives in Bergen.", "Ann lives in Oslo now.", dated=False)
    assert marked is not None
    assert marked.type is LinkType.SUPERSEDES


def test_the_subject_may_be_the_speaker_or_a_third_person() -> None:
    old = _note(1, "I live in Bergen.", speaker="Ann", day=0)
    assert change_of(old, _note(2, "Ann lives in Oslo now.", speaker="Ben", day=9), True)
    assert not change_of(old, _note(2, "I live in Oslo now.", speaker="Ben", day=9), True)


@pytest.mark.parametrize("role", ["tool", "assistant", "document", "system"])
def test_only_statements_of_persons_change_facts(role: str) -> None:
    old = _note(1, "The vault code is 1234.", day=0)
    new = _note(2, "The vault code is 9999 now.", speaker=None, day=9, role=role)
    assert change_of(old, new, True) is None
    assert change_of(old, new.model_copy(update={"role": "user"}), True)


def test_facts_of_a_model_change_facts_but_notes_of_one_event_do_not() -> None:
    old = _note(1, "Ann lives in Bergen.", speaker=None, day=0, kind=Kind.SEMANTIC)
    new = _note(2, "Ann lives in Oslo now.", speaker=None, day=9, kind=Kind.SEMANTIC)
    assert change_of(old, new, True)
    assert not change_of(old, new.model_copy(update={"event_ids": old.event_ids}), True)
    assert not change_of(old, new.model_copy(update={"kind": Kind.INSIGHT}), True)


def test_late_arrivals_are_superseded_by_the_next_statement_in_time() -> None:
    late = _note(9, "I live in Turku.", day=30)
    towns = (("Bergen", 0), ("Oslo", 90), ("Graz", 60))
    others = [_note(seq, f"I live in {town}.", day=day) for seq, (town, day) in enumerate(towns, 1)]
    links = {(link.source, link.target) for link in change_links(late, others, START)}
    assert links == {("n_9", "n_1"), ("n_3", "n_9")}


TEXTS = st.sampled_from([text for pair in (*REPLACED, *UNCHANGED) for text in pair])
SPEAKERS = st.sampled_from(["user", "Ben", None])
NOTES = st.lists(st.tuples(TEXTS, SPEAKERS, st.none() | st.integers(0, 9)), min_size=2, max_size=6)


@given(NOTES, st.randoms())
def test_candidate_order_does_not_matter(
    statements: list[tuple[str, str | None, int | None]], chance: Random
) -> None:
    *others, note = (_note(seq, text, speaker=speaker, day=day) for seq, (text, speaker, day) in enumerate(statements))
    mixed = others[:]
    chance.shuffle(mixed)
    first = {(link.source, link.type, link.target) for link in change_links(note, others, START)}
    shuffled_links = {(link.source, link.type, link.target) for link in change_links(note, mixed, START)}
    ended = {target for _, _, target in first ^ shuffled_links}
    assert ended <= {note.id}, "of two that follow late news at the same time either may be taken"
    for source, kind, target in first:
        assert note.id in (source, target)
        assert source != target
        assert kind in (LinkType.SUPERSEDES, LinkType.CONTRADICTS)


@given(st.tuples(st.none() | st.integers(0, 3), st.none() | st.integers(0, 3)))
def test_earlier_note_is_symmetric(days: tuple[int | None, int | None]) -> None:
    first, second = _note(1, "a", day=days[0]), _note(2, "b", day=days[1])
    assert in_time(first, second) == in_time(second, first)


@pytest.mark.parametrize(
    ("path", "least_recall"),
    [pytest.param(*each, id=each[0].stem) for each in zip(PAIRS, (0.22, 0.06, 0.1), strict=True)],
)
def test_precision_and_recall_on_written_pairs(path: Path, least_recall: float) -> None:
    right = wrong = changes = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        pair = json.loads(line)
        first, second = (
            _note(seq, turn["content"], speaker=turn["speaker"], occurred_at=f"{turn['occurred_at']}:00Z")
            for seq, turn in enumerate((pair["first"], pair["second"]))
        )
        change = change_of(first, second, True)
        is_found = change is not None and change.type in REPLACING
        is_change = pair["change"] != "no"
        changes += is_change
        right += is_found and is_change
        wrong += is_found and not is_change
    assert right / max(right + wrong, 1) >= 0.98
    assert right / changes >= least_recall
