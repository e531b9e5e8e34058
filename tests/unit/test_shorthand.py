"""Shorthand in questions is written out, and a missing question mark is added."""

from __future__ import annotations

import pytest

from zettel.search.question import parse_question
from zettel.text.extraction import asks
from zettel.text.shorthand import written_out


@pytest.mark.parametrize(
    ("typed", "plain"),
    [
        ("whats ur tip", "what's your tip"),
        ("did u say i dont need it", "did you say i don't need it"),
        ("Whos coming", "who's coming"),
        ("im vegan and hes not", "I'm vegan and he's not"),
        ("im Garten", "im Garten"),
        ("its the bus we were on", "its the bus we were on"),
        ("menu, U2 and urn", "menu, U2 and urn"),
    ],
)
def test_shorthand_is_written_out(typed: str, plain: str) -> None:
    assert written_out(typed) == plain


@pytest.mark.parametrize(
    ("typed", "plain"),
    [
        ("where do i live", "where do i live?"),
        ("whens my dentist appointment", "when's my dentist appointment?"),
        ("am i vegan.", "am i vegan?"),
        ("where do i live?", "where do i live?"),
        ("the dentist", "the dentist"),
        ("How we met. A story.", "How we met. A story."),
    ],
)
def test_a_missing_question_mark_is_added(typed: str, plain: str) -> None:
    assert parse_question(typed, vector=None, today=None).text == plain


@pytest.mark.parametrize(
    ("sentence", "is_question"),
    [
        ("how do i tell my boss i want 4 days a week", True),
        ("which chair should i get, my back..", True),
        ("pixel threw up 3x since yesterday, should i worry", False),  # most of it is a statement
        ("When I was young I lived in Rome.", False),
        ("where i live there are no trees", False),
        ("What a day!", False),
    ],
)
def test_questions_need_no_mark(sentence: str, is_question: bool) -> None:
    assert asks(sentence) is is_question
