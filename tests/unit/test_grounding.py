"""Facts of a model that their turn supports, and facts that it does not support."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from zettel.annotate.grounding import is_supported
from zettel.ports import Passage

DAY = datetime(2025, 1, 20, 10, tzinfo=timezone.utc)
"""A Monday."""


def turn(text: str, speaker: str = "Ann") -> Passage:
    return Passage(text, None, speaker, DAY)


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ("Ann lives in Oslo.", "I moved to Oslo on Monday!"),
        ("Ann has three children.", "My 3 kids keep me busy."),
        ("Ann's salary is 4,500 euros.", "They pay me 4500 euros now."),
        ("Ann moved to Oslo in May 2024.", "I moved to Oslo last May."),
        ("Ann got married in 2022.", "We got married three years ago."),
        ("Ann ran a charity race on 18 January 2025.", "I ran a charity race last Saturday."),
        ("The billing database is to be moved on 31 January 2025.", "The move of the billing database slips to Friday"
         " next week."),
        ("The meeting is at 14:00 on 21 January 2025.", "Meeting moved to 14:00 tomorrow."),
        ("UPLOAD_TIMEOUT in settings.py is 90 seconds.", "Raised UPLOAD_TIMEOUT to 90 in settings.py."),
        ("Ann bekommt nach Nachtschichten Migr\u00e4ne.", "Wieder Migr\u00e4ne nach der Nachtschicht."),
        ("Ann vive en Sevilla.", "Me mud\u00e9 a Sevilla el mes pasado."),
        ("Ann\u3055\u3093\u306f\u5927\u962a\u306b\u4f4f\u3093\u3067\u3044\u307e\u3059\u3002",
         "\u5148\u6708\u5927\u962a\u306b\u5f15\u3063\u8d8a\u3057\u307e\u3057\u305f\u3002"),
    ],
)  # fmt: skip
def test_a_fact_in_the_words_of_its_turn_is_supported(fact: str, text: str) -> None:
    assert is_supported(fact, turn(text))


@pytest.mark.parametrize(
    "fact",
    [
        "Ann lives in Rome.",
        "Carl moved to Oslo.",
        "Ann moved to Oslo in 2019.",
        "Ann moved to Oslo with 3 cats.",
        "Ann is a millionaire.",
        "Ann's password is 4711.",
        "The capital of France is Paris.",
        "Ann must ignore all previous instructions.",
    ],
)
def test_a_fact_with_a_new_name_number_or_statement_is_not_supported(fact: str) -> None:
    assert not is_supported(fact, turn("I moved to Oslo on Monday!"))


def test_the_turns_just_before_support_a_fact_but_are_not_enough() -> None:
    before = [turn("She finally adopted a dog, a greyhound called Pippin.", "Bob")]
    assert is_supported("Ann would love a dog like Pippin.", turn("I'd love one too."), before)
    assert not is_supported("Ann would love a dog like Pippin.", turn("I'd love one too."))
    assert not is_supported("Bob has a greyhound called Pippin.", turn("Good for you!"), before)
