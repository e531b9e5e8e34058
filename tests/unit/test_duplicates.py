"""Detection of duplicates: case, punctuation and pleasantries do not matter; words, numbers, days and people do."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.evolve.duplicates import duplicate_key
from zettel.model import Kind, Note
from zettel.text.wording import normalized

DAY = datetime(2024, 5, 1, 9, tzinfo=timezone.utc)


def note(content: str, **fields: Any) -> Note:
    fixed: dict[str, Any] = {"id": "n_1", "event_ids": ("e_1",), "seq": 1, "recorded_at": DAY, "speaker": "Ann",
                             "occurred_at": DAY}  # fmt: skip
    return Note(content=content, **fixed | fields)


def same(first: Note, second: Note) -> bool:
    key = duplicate_key(first)
    return key is not None and key == duplicate_key(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I keep two hens in the garden.", "i keep two hens in the garden"),
        ("I keep two hens in the garden.", "Well, I keep two hens in the garden! Thanks."),
        ("I'm painting the boat, it's green.", "I am painting the boat; it is green"),
        ("I don’t eat fish at all.", "I do not eat fish at all."),
        ("The barn has a new roof.", "Hey there! The barn really has a new roof"),
        ("Ida  paid\n12.50 for seeds.", "Ida paid 12.50 for seeds"),
        ("It is \u20135 degrees in the barn.", "It is -5 degrees in the barn."),
        ("The fest is on May 3\u20135 \u2013 in Oslo.", "The fest is on May 3-5, in Oslo."),
        ("我们在花园里养了两只母鸡。", "我们在花园里养了两只母鸡！"),
    ],
)
def test_small_differences_are_duplicates(first: str, second: str) -> None:
    assert same(note(first), note(second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I keep two hens in the garden.", "I keep three hens in the garden."),
        ("I keep two hens in the garden.", "I keep two ducks in the garden."),
        ("I keep two hens in the garden.", "I kept two hens in the garden."),
        ("I moved from Oslo to Bergen.", "I moved from Bergen to Oslo."),
        ("I do eat fish at home.", "I don't eat fish at home."),
        ("It is a job for Ida.", "It is not just a job for Ida."),
        ("Ida paid 12.50 for the seeds.", "Ida paid 12,50 for the seeds."),
        ("Ida paid $12 for the seeds.", "Ida paid €12 for the seeds."),
        ("It was -5 in the barn.", "It was 5 in the barn."),
        ("It is \u20135 degrees in the barn.", "It is 5 degrees in the barn."),
        ("The fest is on 3 May.", "The fest is on 4 May."),
        ("I have few friends in Oslo.", "I have a few friends in Oslo."),
        ("The plan for the barn is 👍", "The plan for the barn is 👎"),
        ("She told him about the hens.", "He told her about the hens."),
    ],
)
def test_a_word_a_number_or_a_name_makes_it_another_statement(first: str, second: str) -> None:
    assert duplicate_key(note(first)) is not None
    assert not same(note(first), note(second))


@pytest.mark.parametrize(
    "fields",
    [
        {"speaker": "Bob"}, {"occurred_at": DAY.replace(day=2)}, {"occurred_at": None}, {"title": "Hens"},
        {"kind": Kind.SEMANTIC}, {"metadata": {"mood": "fine"}}, {"session": "another"},
    ],
)  # fmt: skip
def test_speaker_time_and_kind_matter(fields: dict[str, Any]) -> None:
    text = "I fed two hens in the garden."
    assert not same(note(text), note(text, **fields))
    assert same(note(text), note(text, occurred_at=DAY.replace(hour=15)))


@pytest.mark.parametrize("text", ["I keep two hens in the garden.", "I'm vegan.", "Call me Bo.", "I'm a nurse!"])
def test_a_state_is_the_same_on_every_day_and_in_every_session(text: str) -> None:
    for fields in ({"occurred_at": DAY.replace(day=2)}, {"occurred_at": None}, {"session": "another"}):
        assert same(note(text), note(text, **fields))
    for fields in ({"speaker": "Bob"}, {"metadata": {"mood": "fine"}}, {"role": "assistant"}):
        assert not same(note(text), note(text, **fields))
    assert not same(note(text, role="tool"), note(text, role="tool", session="another"))
    assert not same(note(text, speaker=None), note(text, speaker=None, session="another"))


@pytest.mark.parametrize("text", ["Thanks a lot!", "In Oslo.", "Yes, I do.", "Where are the two hens now?", "🎉", ""])
def test_small_talk_answers_and_questions_are_not_merged(text: str) -> None:
    assert duplicate_key(note(text)) is None


@pytest.mark.parametrize(
    "fields", [{"archived": True}, {"part": 1, "parts": 3}, {"kind": Kind.INSIGHT}, {"valid_to": DAY}]
)
def test_archived_superseded_and_partial_notes_are_not_merged(fields: dict[str, Any]) -> None:
    assert duplicate_key(note("I keep two hens in the garden.", **fields)) is None


@given(st.text(), st.sampled_from(["{}", "Well, {}", "{} \n Thanks!", "hey! {}"]))
def test_pleasantries_are_removed_before_comparison(text: str, template: str) -> None:
    text = f"Ann {text} Oslo"
    assert normalized(template.format(text + ".")) == normalized(text + ".")
