"""The mood of a sentence: claimed, doubted or supposed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.text.mood import Mood, mood_of
from zettel.text.statements import parse_sentences

CLAIMED = """
I live in Bergen, above a bakery.
If you need a plumber, ask Tove, she is one.
I'd choose rye bread over any other.
Almost every morning Ole swims in the lake.
We tried the new oven and it bakes well.
She finally got the permit, although nobody had believed it would come.
""".strip().splitlines()
DOUBTED = """
It might rain on the day of the fair.
Somebody should paint the shed.
Everyone says that Ole owns the mill.
We are considering a second boat.
""".strip().splitlines()
SUPPOSED = """
If I lived in Turku, I would sail every day.
Imagine Ole as the head of the choir.
What if the ferry cost twelve euros?
I nearly bought the red boat.
Perhaps Tove will run the bakery one day.
We wanted to rent the old mill, but the owner refused.
The meeting was going to be on Friday, and then it was called off.
Ole offered to keep the books; the others said no.
In theory the lamp could be moved to the hall.
""".strip().splitlines()


@pytest.mark.parametrize(
    ("text", "mood"),
    [*((text, Mood.CLAIMED) for text in CLAIMED), *((text, Mood.DOUBTED) for text in DOUBTED),
     *((text, Mood.SUPPOSED) for text in SUPPOSED)],
)  # fmt: skip
def test_a_sentence_has_the_expected_mood(text: str, mood: Mood) -> None:
    assert mood_of(text.lower()) is mood


@given(st.text(max_size=300))
def test_any_text_has_a_mood(text: str) -> None:
    for sentence in parse_sentences(text):
        assert sentence.mood in Mood
        assert sentence.numbers.isdisjoint(sentence.days)
        assert isinstance(sentence.kin, str)
        assert sentence.posts >= sentence.located


def test_different_values_are_distinguished() -> None:
    (text,) = parse_sentences("On 14 May Ann paid 12.50 euros for seat H-31.")
    assert [set(kind) for kind in (text.days, text.amounts, text.numbers)] == [{"14 may"}, {"12.50 euros"}, {"h-31"}]


def test_the_subject_of_a_sentence_is_found() -> None:
    assert parse_sentences("My parents live in Rome.")[0].kin == "parents"
    assert parse_sentences("My dentist appointment is on Friday.")[0].kin == ""
    assert parse_sentences("I live in Rome.")[0].is_first_person
    assert parse_sentences("Dr Holm's assistant works at Nordlys.")[0].whom >= {"holm", "nordlys"}
    assert parse_sentences("We talked about the ferry for an hour.")[0].stated == {"talk"}
