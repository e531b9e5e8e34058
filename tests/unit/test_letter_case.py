"""Names that people type in lower case get their capitals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.text.keywords import find_terms
from zettel.text.language_files import language
from zettel.text.letter_case import names_in_capitals, with_apostrophes, with_capitals


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("im moving to porto", "Im moving to Porto"),
        ("flew to new york, then tel aviv", "Flew to New York, then Tel Aviv"),
        ("my girlfriend is carla", "My girlfriend is Carla"),
        ("ines left. the new boss is bram", "Ines left. The new boss is Bram"),
        ("got a job at bright harbour", "Got a job at Bright Harbour"),
        ("i work at farolo and i like it", "I work at Farolo and I like it"),
        ("i like reading but live in reading", "I like reading but live in Reading"),
        ("i quit smoking, started at uni at nine", "I quit smoking, started at uni at nine"),
        ("our dog is called biscuit", "Our dog is called Biscuit"),
    ],
)
def test_names_get_capitals(typed: str, read: str) -> None:
    assert with_capitals(typed, language("en")) == read


@pytest.mark.parametrize(
    "text",
    [
        "I work at a bakery",
        "I work nights and will rest in may",
        "We live in fear of mould",
        "Met Ines and porto fans",
        "Mail me at carla@porto.example or porto.org",
        "",
    ],
)
def test_other_words_do_not(text: str) -> None:
    assert with_capitals(text, language("en")) == text


def test_terms_of_a_text_in_lower_case_contain_its_names() -> None:
    terms = find_terms("my sister carla moved to porto, definately wants a dog")
    assert [name.text for name in terms.names] == ["Carla", "Porto"]
    assert "definately" in [word.text for word in terms.words], "a typing error does not count as a name"
    assert names_in_capitals("Carla moved to porto") == "Carla moved to porto"
    assert names_in_capitals("она живёт в осло") == "она живёт в осло"


@pytest.mark.parametrize(
    ("typed", "plain"),
    [
        ("priyas wedding and lisbons off", "priya's wedding and lisbon's off"),
        ("chris likes reading and readings", "chris likes reading and readings"),
        ("Priyas wedding", "Priyas wedding"),
    ],
)
def test_genitives_of_listed_names_get_an_apostrophe(typed: str, plain: str) -> None:
    assert with_apostrophes(typed) == plain


def test_german_keeps_its_own_rule() -> None:
    assert with_capitals("ich wohne in leipzig und arbeite im garten", language("de")) == (
        "ich wohne in Leipzig und arbeite im garten"
    )


@given(st.text())
def test_places_in_the_text_stay_valid(text: str) -> None:
    changed = with_capitals(text, language("en"))
    assert len(changed) == len(text)
    assert all(new in (old, old.upper()) for old, new in zip(text, changed, strict=True))
