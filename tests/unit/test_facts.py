"""Extracting facts from statements, and comparing values."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.evolve.same_matter import concern_same_matter
from zettel.model import Kind, Note
from zettel.text.asserted import MAX_CHARS
from zettel.text.facts import Fact, belongings, facts, facts_are_read
from zettel.text.language_files import language
from zettel.text.values import Value, exclude, read_value

NOON = datetime(2024, 10, 5, 12, tzinfo=timezone.utc)


def _note(content: str, **fields: object) -> Note:
    defaults: dict[str, object] = {
        "id": "n_1", "event_ids": ("e_1",), "seq": 1, "recorded_at": NOON, "content": content, "speaker": "Ann",
        "occurred_at": NOON,
    }  # fmt: skip
    return Note.model_validate(defaults | fields)


def _facts(content: str) -> tuple[Fact, ...]:
    return facts(_note(content))


def _only(content: str) -> Fact:
    (fact,) = _facts(content)
    return fact


@pytest.mark.parametrize(
    ("text", "person", "path", "value"),
    [
        ("I live in Porto.", "ann", (), "Porto"),
        ("i live in porto.", "ann", (), "Porto"),
        ("Ben lives in Porto.", "ben", (), "Porto"),
        ("My wife lives in Porto.", "ann", ("wife",), "Porto"),
        ("My wife's boss lives in Porto.", "ann", ("wife", "boss"), "Porto"),
        ("Ben's sister lives in Porto.", "ben", ("sister",), "Porto"),
        ("My son Alfie lives in Porto.", "alfie", (), "Porto"),
        ("Well, since May I've been living in Porto.", "ann", (), "Porto"),
        ("Ben has left, he lives in Porto.", "ben", (), "Porto"),
        ("Moved to Porto yesterday.", "ann", (), "Porto"),
        ("We got the keys to the flat in Porto on Friday.", "ann", (), "Porto"),
    ],
)
def test_whose_home(text: str, person: str, path: tuple[str, ...], value: str) -> None:
    fact = _only(text)
    assert (fact.attribute, fact.value.text) == ("home", value)
    assert (fact.owner.person, fact.owner.path) == (frozenset({person}), path)


@pytest.mark.parametrize(
    ("text", "person", "thing"),
    [
        ("The fee is 90 euros.", "", "fee"),
        ("The fee of the garage is 90 euros.", "", "garag"),
        ("My phone contract costs 90 euros.", "ann", "contract phone"),
        ("Ben's phone contract costs 90 euros.", "ben", "contract phone"),
        ("They moved Ben's recital to Friday.", "ben", "recit"),
        ("Ben rescheduled his recital for Friday.", "ben", "recit"),
    ],
)
def test_whose_thing(text: str, person: str, thing: str) -> None:
    fact = _only(text)
    assert " ".join(fact.owner.person) == person
    assert " ".join(sorted(fact.thing)) == thing


@pytest.mark.parametrize(
    "text",
    [
        "Do I live in Porto?",
        "If I lived in Porto, I'd swim.",
        "I might live in Porto.",
        "I used to live in Porto.",
        "I don't live in Porto.",
        "Ben does not live in Porto.",
        "Ben claims he lives in Porto.",
        "Everyone thinks I live in Porto.",
        '"I live in Porto", it read.',
        "> I live in Porto.",
        "```\nI live in Porto.\n```",
        "- I live in Porto.",
        "Translate this: I live in Porto.",
        "Dear Ben,\nI live in Porto.",
        "His share is 13%.",
        "Sounds like rain.",
        "Take care!",
        "My niece Bianca, Chiara's daughter, turns 10.",
    ],
)
def test_no_facts_of_the_speaker(text: str) -> None:
    assert [fact for fact in _facts(text) if fact.attribute != "family"] == []


@pytest.mark.parametrize(
    ("text", "sense", "is_marked", "is_temporary", "adds"),
    [
        ("I live in Porto.", "states", False, False, False),
        ("I live in Porto now.", "states", True, False, False),
        ("We've moved to Porto.", "changes", True, False, False),
        ("Since May I don't live in Porto any more.", "ends", True, False, False),
        ("I don't live in Porto any more.", "ends", True, False, False),
        ("I'm living in Porto for two weeks.", "states", False, True, False),
        ("This week only, the course is on Monday.", "states", False, True, False),
        ("The course is on Monday at 9 today.", "states", False, True, False),
        ("I also live in Porto.", "states", False, False, True),
    ],
)
def test_how_a_fact_is_stated(text: str, sense: str, is_marked: bool, is_temporary: bool, adds: bool) -> None:
    fact = _only(text)
    assert (fact.sense, fact.marked, fact.temporary, fact.adds) == (sense, is_marked, is_temporary, adds)


def test_times_of_facts() -> None:
    fact = _only("The rent goes up to 1,240 euros from January.")
    assert fact.effective == datetime(2025, 1, 1, tzinfo=timezone.utc)
    assert _only("The rent is 1,150 euros.").effective is None
    exam = _only("My exam is on 14 November.")
    assert exam.effective is None, "the day is the value"
    assert exam.expires == datetime(2024, 11, 15, tzinfo=timezone.utc)
    assert _facts("We're moving to Porto.") == (), "a plan without a date"


def test_statements_of_persons_and_facts_of_models_are_read() -> None:
    text = "I live in Porto."
    assert facts_are_read(_note(text))
    assert facts_are_read(_note(text, speaker=None, role="user"))
    assert facts_are_read(_note("Ann lives in Porto.", speaker=None, kind=Kind.SEMANTIC))
    for fields in ({"speaker": "assistant"}, {"speaker": "tool"}, {"role": "document"}, {"kind": Kind.INSIGHT}):
        assert facts(_note(text, **fields)) == ()
    assert facts(_note(text + " " * MAX_CHARS)) == ()


def _value(kind: str, text: str, code: str = "en") -> Value | None:
    return read_value(kind, text, "value", "ann", language(code))


@pytest.mark.parametrize(
    ("kind", "text", "facet"),
    [
        ("amount", "1,240 euros", ("amount", "1240.0")),
        ("amount", "\u00a311.95 an hour", ("amount", "11.95")),
        ("amount", "72k", ("amount", "72000.0")),
        ("number", "2 minutes", ("number time", "120.0")),
        ("number", "four", ("number", "4")),
        ("day", "Tuesday, 14 May at 9:30", ("clock", "9:30")),
        ("day", "the 19th", ("day", "19")),
        ("day", "at half past six", ("clock", "6:30")),
        ("version", "v3.11", ("version 1", "11")),
        ("class", "visual studio code", ("editor", "vs code")),
        ("place", "Portugal", ("region", "portugal")),
        ("name", "Dr. Lomax", ("name", "lomax")),
        ("fullname", "Katie Dunn", ("last", "dunn")),
    ],
)
def test_facets_of_values(kind: str, text: str, facet: tuple[str, str]) -> None:
    value = _value(kind, text)
    assert value is not None
    assert facet in value.facets


def test_german_values() -> None:
    for kind, text, facet in (
        ("amount", "1.240,50 Euro", ("amount", "1240.5")),
        ("day", "14. Juni um 9 Uhr", ("date", "14.6.")),
        ("day", "um halb zehn", ("clock", "9:30")),
        ("number", "zwei Stunden", ("number time", "7200.0")),
    ):
        value = _value(kind, text, "de")
        assert value is not None
        assert facet in value.facets


@pytest.mark.parametrize(
    ("kind", "old", "new", "expected"),
    [
        ("amount", "900 euros", "950 euros", True),
        ("amount", "900 euros", "900.00 euros", False),
        ("amount", "12 euros an hour", "400 euros a week", False),
        ("amount", "900 euros", "1000 dollars", False),
        ("number", "30 seconds", "2 minutes", True),
        ("number", "60 seconds", "1 minute", False),
        ("number", "2 hours", "8 weeks", False),
        ("day", "Mondays at 9:30", "Mondays", False),
        ("day", "at 4", "16:00", False),
        ("day", "3 May", "the 3rd", False),
        ("day", "3 May", "the 6th", True),
        ("version", "3.11", "3.11.4", False),
        ("version", "3.11", "3.12", True),
        ("place", "Portugal", "Porto", False),
        ("name", "Helen", "Helen Barlow", False),
        ("fullname", "Katie Dunn", "Katie Whitworth", True),
    ],
)
def test_values_that_exclude_each_other(kind: str, old: str, new: str, expected: bool) -> None:
    before, after = _value(kind, old), _value(kind, new)
    assert before is not None
    assert after is not None
    assert exclude(before, after) is exclude(after, before) is expected


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    for fact in facts(_note(text or "a", occurred_at=NOON + timedelta(days=1))):
        assert fact.attribute


def test_facts_on_one_subject_are_candidates_for_a_model() -> None:
    texts = ("Ann lives in Oslo.", "Ann lives in Bergen.", "Ben plays chess.", "The ferry costs 9 euros.",
            "The ferry costs 8 euros.")  # fmt: skip
    notes = [_note(text, id=f"n_{number}", speaker=None, kind=Kind.SEMANTIC) for number, text in enumerate(texts)]
    assert concern_same_matter(notes[0], notes[1])
    assert concern_same_matter(notes[3], notes[4])
    assert not concern_same_matter(notes[0], notes[2])
    assert not concern_same_matter(notes[0], notes[3])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("I'm vegetarian, any ideas for lunch?", ["vegetarian"]),
        ("I live in Porto and my rent is 900 euros, so is that too much?", ["Porto", "900 euros"]),
        ("Do I live in Porto, or in Braga?", []),
        ("Am I vegetarian, or vegan?", []),
        ("If I was vegan, what would I eat?", []),
    ],
)
def test_what_is_stated_before_a_question_counts(text: str, values: list[str]) -> None:
    assert [fact.value.text for fact in facts(_note(text))] == values


def test_questions_presuppose_what_somebody_has() -> None:
    assert [fact.value.text for fact in belongings(_note("Can you write to my dentist Dr. Okafor?"))] == [
        "dentist Dr. Okafor"
    ]
