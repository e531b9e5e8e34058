"""Names with different spellings."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.scoring.names import (
    ALIKE,
    MOST_NAMES,
    capitalised_words,
    jaro_winkler,
    likeness,
    may_be_alike,
    similar_terms,
    speakers_named,
    unknown_names,
)
from zettel.search.question import parse_question


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [("martha", "marhta", 0.9611), ("dwayne", "duane", 0.84), ("dixon", "dicksonx", 0.8133), ("abc", "xyz", 0.0)],
)
def test_jaro_winkler_has_the_published_values(first: str, second: str, expected: float) -> None:
    assert jaro_winkler(first, second) == pytest.approx(expected, abs=1e-4)
    assert jaro_winkler(second, first) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(("first", "second"), [("jon", "jonathan"), ("katherine", "catherine"), ("marhta", "martha")])
def test_spellings_of_one_name_are_alike(first: str, second: str) -> None:
    assert ALIKE <= likeness(first, second) == likeness(second, first) < 1.0


@pytest.mark.parametrize(("first", "second"), [("john", "joan"), ("jo", "jonathan"), ("tim", "tom"), ("nate", "kate")])
def test_different_names_are_not_alike(first: str, second: str) -> None:
    assert likeness(first, second) < ALIKE


@given(st.text(alphabet="abcde", min_size=1, max_size=8), st.text(alphabet="abcde", min_size=1, max_size=8))
def test_likeness_is_a_symmetric_share(first: str, second: str) -> None:
    assert 0.0 <= likeness(first, second) == likeness(second, first) <= 1.0 + 1e-9
    assert (likeness(first, second) == 1.0) == (first == second)


@given(st.text(alphabet="abcde", min_size=1, max_size=12), st.text(alphabet="abcde", min_size=1, max_size=12))
def test_may_be_alike_is_an_upper_bound(first: str, second: str) -> None:
    assert may_be_alike(first, second) == may_be_alike(second, first)
    assert may_be_alike(first, second) or likeness(first, second) < ALIKE


def test_a_pasted_document_is_compared_with_many_speakers_without_delay() -> None:
    words = [f"{first}{second}orini" for first in "BCDFGHKLMNPRSTVZ" for second in "abcdefghijklmnopqrstuvwxyz"]
    question = parse_question(" ".join(words), vector=None, today=None)
    start = process_time()
    assert not any(speakers_named(question, [f"{word[::-1]}x {word[::-1]}y" for word in words]))
    assert process_time() - start < 2  # comparing each word with each name letter by letter would take far longer
    assert len(capitalised_words(question.text)) == MOST_NAMES


@pytest.mark.parametrize(
    ("text", "speakers", "expected"),
    [
        ("What did Ann Lee buy?", ["Ann Lee", "Ann Kim", "Bob"], [1.0, 0.0, 0.0]),
        ("What did Ann buy?", ["Ann Lee", "Ann Kim", "Bob"], [1.0, 1.0, 0.0]),
        ("What did ANN buy?", ["ann", "Annabel"], [1.0, 0.0]),
        ("What did Jon buy?", ["Jonathan", "Joan"], [0.9, 0.0]),
        ("What did Catherine buy?", ["Katherine", "Bob"], [0.9259, 0.0]),
        ("Who has a car?", ["Carl", "Carmen"], [0.0, 0.0]),
        ("Who bought it?", [], []),
    ],
)
def test_named_speakers_are_found(text: str, speakers: list[str], expected: list[float]) -> None:
    question = parse_question(text, vector=None, today=None)
    assert speakers_named(question, speakers) == pytest.approx(expected, abs=1e-4)


def test_an_unknown_name_matches_similar_terms() -> None:
    question = parse_question("Where does Katherine keep her boat?", vector=None, today=None)
    df = np.array([0 if token.startswith("katherin") else 7 for token in question.tokens])
    assert capitalised_words(question.text) == ["katherine"]
    assert unknown_names(question, df) == ["katherine"]
    assert unknown_names(question, np.full(len(df), 2)) == []
    assert similar_terms(["katherine"], ["boat", "catherine", "kath", "katherine mills", "cat"]) == [1, 3]
