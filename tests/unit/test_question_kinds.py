"""Questions about a time alone, and questions for several things."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from zettel.model import to_micros
from zettel.ports.query import Question
from zettel.search.question import DATED_CHARACTERS, parse_question

QUESTIONS = Path(__file__).parents[1] / "data" / "questions"
WEDNESDAY = to_micros(datetime(2024, 10, 16, 15, tzinfo=timezone.utc))


def lines(name: str) -> list[str]:
    return (QUESTIONS / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def parsed(text: str, today: int | None = WEDNESDAY) -> Question:
    return parse_question(text, vector=None, today=today)


def time_tokens(text: str) -> set[str]:
    question = parsed(text)
    assert len(question.time_tokens) == len(question.tokens)
    return {token for token, is_time in zip(question.tokens, question.time_tokens, strict=True) if is_time}


@pytest.mark.parametrize("text", lines("time_only"))
def test_a_question_about_a_time_alone(text: str) -> None:
    question = parsed(text)
    assert question.times
    assert question.time_only


@pytest.mark.parametrize("text", lines("not_time_only"))
def test_a_question_about_something_else(text: str) -> None:
    assert not parsed(text).time_only


@pytest.mark.parametrize("text", lines("many"))
def test_a_question_for_several_things(text: str) -> None:
    assert parsed(text).many


@pytest.mark.parametrize("text", lines("not_many"))
def test_a_question_for_one_thing(text: str) -> None:
    assert not parsed(text).many


def test_there_are_enough_examples_of_each_kind() -> None:
    counts = {name: len(set(lines(name))) for name in ("time_only", "not_time_only", "many", "not_many")}
    assert min(counts["time_only"], counts["not_time_only"]) >= 60
    assert min(counts["many"], counts["not_many"]) >= 40


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("What did Ann plant in the first week of May?", {"first", "week", "may"}),
        ("What did Ann plant on Monday 7 October?", {"monday", "7", "octob"}),
        ("What did Ann plant a couple of weeks ago?", {"coupl", "week", "ago"}),
        ("What did Ann plant two weeks before the end of May?", {"two", "week", "end", "may"}),
        ("What did Ann plant the Friday before 4 October?", {"friday", "4", "octob"}),
        ("What did Ann plant on the evening of 5 May 2024?", {"evening", "5", "may", "2024"}),
        ("What did Ann plant on Monday morning?", {"monday", "morn"}),
        ("What did Ann plant between May and July 2023?", {"may", "juli", "2023"}),
        ("What did Ann's first week of school cost?", set()),
        ("Did Monday's band play on Monday?", {"monday"}),
        ("Which week was the first week of May?", {"first", "may"}),
        ("Was hat Ann am 3. März 2024 gepflanzt?", {"3", "marz", "2024"}),
        ("What did Ann plant?", set()),
        ("", set()),
    ],
)
def test_time_tokens_occur_only_in_phrases_that_name_a_time(text: str, tokens: set[str]) -> None:
    assert time_tokens(text) == tokens


def test_a_time_that_is_unknown_without_today_has_no_tokens() -> None:
    question = parsed("What did we discuss last week?", None)
    assert not question.time_only
    assert not question.time_tokens.any()
    assert parsed("What did we discuss on 5 May 2024?", None).time_only


def test_a_token_of_the_unread_rest_is_not_a_time_token() -> None:
    assert time_tokens("On 5 May 2024? " + "x " * DATED_CHARACTERS + "5 may") == {"2024"}


def test_names_that_are_function_words_are_subjects() -> None:
    assert not parsed("What did Will say yesterday?").time_only
    assert parsed("What will I say tomorrow?").time_only
