"""Parsing of questions."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.model import TIME_MAX, TIME_MIN, to_micros
from zettel.search.question import (
    DATED_CHARACTERS,
    LOOK_BACK,
    MAX_TIMES,
    MAX_TOKENS,
    NAME_WORDS,
    names_in,
    parse_question,
    times_in,
)

FRIDAY = datetime(2024, 5, 10, 12, tzinfo=timezone.utc)


def micros(year: int, month: int, day: int) -> int:
    return to_micros(datetime(year, month, day, tzinfo=timezone.utc))


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("What did Ann do on 5 May 2024?", micros(2024, 5, 5), micros(2024, 5, 6)),
        ("What did Ann do before 5 May 2024?", TIME_MIN, micros(2024, 5, 5)),
        ("What has Ann done since 5 May 2024?", micros(2024, 5, 5), TIME_MAX),
        ("Where did Ann go after May 2024?", micros(2024, 6, 1), TIME_MAX),
        ("Where was Ann the week before 21 January 2022?", micros(2022, 1, 14), micros(2022, 1, 21)),
        ("What happened between 5 May 2024 and 9 May 2024?", micros(2024, 5, 5), micros(2024, 5, 10)),
        ("What did Ann do before June 2023?", TIME_MIN, micros(2023, 6, 1)),
        ("What did Ann do prior to June 2023?", TIME_MIN, micros(2023, 6, 1)),
        ("What had Ann done by June 2023?", TIME_MIN, micros(2023, 7, 1)),
        ("What did Ann do later than 2022?", micros(2023, 1, 1), TIME_MAX),
        ("Where was Ann two weeks before 21 January 2022?", micros(2022, 1, 7), micros(2022, 1, 21)),
        ("Where was Ann 3 days after 21 January 2022?", micros(2022, 1, 22), micros(2022, 1, 25)),
        ("Where was Ann a few days before 3 May?", micros(2024, 4, 29), micros(2024, 5, 3)),
        ("Where was Ann a couple of weeks after 3 May 2023?", micros(2023, 5, 4), micros(2023, 5, 25)),
        ("What happened between 3 and 5 May?", micros(2024, 5, 3), micros(2024, 5, 6)),
        ("What happened between the 3rd and the 5th of May 2023?", micros(2023, 5, 3), micros(2023, 5, 6)),
        ("What happened between May 3 and 5, 2023?", micros(2023, 5, 3), micros(2023, 5, 6)),
        ("Who called the Friday before 22 October 2023?", micros(2023, 10, 20), micros(2023, 10, 21)),
        ("Who called on the Sunday before 22 October 2023?", micros(2023, 10, 15), micros(2023, 10, 16)),
        ("Who called the Monday after 22 October 2023?", micros(2023, 10, 23), micros(2023, 10, 24)),
        ("Where was Ann the weekend before 17 July 2023?", micros(2023, 7, 15), micros(2023, 7, 17)),
        ("What happened between May and July 2023?", micros(2023, 5, 1), micros(2023, 8, 1)),
        ("What did Ann do in March?", micros(2024, 3, 1), micros(2024, 4, 1)),
        ("What did Ann do last month?", micros(2024, 4, 1), micros(2024, 5, 1)),
        ("What did Ann do last week?", micros(2024, 4, 29), micros(2024, 5, 6)),
        ("What did Ann do on Monday?", micros(2024, 5, 6), micros(2024, 5, 7)),
        ("What did Ann do three days ago?", micros(2024, 5, 7), micros(2024, 5, 8)),
        ("Where did Ann go last summer?", micros(2023, 6, 1), micros(2023, 9, 1)),
        ("What did Ann do yesterday?", micros(2024, 5, 9), micros(2024, 5, 10)),
        ("Was hat Ann am 3. März 2024 gemacht?", micros(2024, 3, 3), micros(2024, 3, 4)),
        ("¿Qué hizo Ann el 3 de enero de 2022?", micros(2022, 1, 3), micros(2022, 1, 4)),
        ("Что Анна делала в марте 2023?", micros(2023, 3, 1), micros(2023, 4, 1)),
        ("Was hat Ann am 3. September 2023 gemacht?", micros(2023, 9, 3), micros(2023, 9, 4)),
        ("Que s'est-il passé le 29 février ?", micros(2024, 2, 29), micros(2024, 3, 1)),
        ("Що Анна робила у травні 2023?", micros(2023, 5, 1), micros(2023, 6, 1)),
        ("Τι έκανε η Άννα τον Μάιο του 2023;", micros(2023, 5, 1), micros(2023, 6, 1)),
        ("Τι έκανε η Άννα στις 3 Μαΐου 2023;", micros(2023, 5, 3), micros(2023, 5, 4)),
        ("ماذا فعلت آنا في مايو 2023؟", micros(2023, 5, 1), micros(2023, 6, 1)),
        ("ماذا فعلت آنا في ٢٠٢٣ وأين", micros(2023, 1, 1), micros(2024, 1, 1)),
        ("מה אנה עשתה במאי 2023?", micros(2023, 5, 1), micros(2023, 6, 1)),
        ("मई 2023 में ऐन ने क्या किया?", micros(2023, 5, 1), micros(2023, 6, 1)),
        ("Что было 2 недели назад?", micros(2024, 4, 22), micros(2024, 4, 29)),
    ],
)
def test_dates_are_resolved(text: str, start: int, end: int) -> None:
    assert times_in(text, FRIDAY) == ((start, end),)


@pytest.mark.parametrize("text", ["Que s'est-il passé le 29 février ?", "¿Qué pasó el 29 de febrero?"])
def test_a_leap_day_resolves_to_the_last_leap_year(text: str) -> None:
    assert times_in(text, datetime(2024, 2, 10, tzinfo=timezone.utc)) == ((micros(2020, 2, 29), micros(2020, 3, 1)),)
    assert times_in(text, datetime(1904, 2, 10, tzinfo=timezone.utc)) == ((micros(1896, 2, 29), micros(1896, 3, 1)),)
    assert times_in(text, datetime(3, 2, 10, tzinfo=timezone.utc)) == ()
    assert times_in("le 31 avril", FRIDAY) == ()


def test_dates_of_two_languages_are_in_textual_order() -> None:
    march, june = (micros(2020, 3, 1), micros(2020, 4, 1)), (micros(2021, 6, 1), micros(2021, 7, 1))
    assert times_in("Did the Mars 2020 rover land before it was June 2021?", FRIDAY) == (march, june)
    assert times_in("In June 2021, or mars 2020, or 2024年5月1日 on 3 May 2023?", FRIDAY) == (
        june, march, (micros(2024, 5, 1), micros(2024, 5, 2)), (micros(2023, 5, 3), micros(2023, 5, 4)),
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "Who was born first, Ann or Bob?",
        "What is Mission to Mars about?",
        "Route 66?",
        "I’m 12, what’s on the second floor?",
        "What’s Ann’s phone number, 555 0192?",
        "Is “Suite 7” – the €12 one – free…?",
        "Η Άννα είναι 12;",
    ],
)
def test_other_phrases_are_not_dates(text: str) -> None:
    assert times_in(text, FRIDAY) == ()


@pytest.mark.parametrize("text", ["Что было 5 дней назад?", "Άννα, 12", "ماذا فعلت آنا في ٣ مايو؟"])
def test_dates_never_depend_on_the_system_clock(text: str) -> None:
    assert times_in(text, None) == ()


def test_without_today_relative_dates_are_ignored() -> None:
    assert parse_question("What did Ann do yesterday?", vector=None, today=TIME_MIN).times == ()
    assert parse_question("What did Ann do in 2021?", vector=None, today=None).times == (
        (micros(2021, 1, 1), micros(2022, 1, 1)),
    )


@pytest.mark.parametrize("hours", [-7, 0, 9])
@pytest.mark.parametrize(
    ("text", "first", "days"),
    [
        ("What did Ann do today?", (2024, 5, 8), 1),
        ("What did Ann do in April?", (2024, 4, 1), 30),
        ("Who called the Monday before 8 May?", (2024, 5, 6), 1),
        ("Qui a appelé le 8 mai ?", (2024, 5, 8), 1),
        ("Что было 3 дня назад?", (2024, 5, 5), 1),
    ],
)
def test_days_are_in_the_time_zone_of_the_question(
    hours: int, text: str, first: tuple[int, int, int], days: int
) -> None:
    zone = timezone(timedelta(hours=hours))
    now, start = datetime(2024, 5, 8, 20 if hours < 0 else 4, tzinfo=zone), datetime(*first, tzinfo=zone)
    question = parse_question(text, vector=None, today=to_micros(now), zone=zone)
    assert question.times == ((to_micros(start), to_micros(start + timedelta(days=days))),)


def test_names_are_keys_of_phrases() -> None:
    names = names_in("Who wrote Ann's Winter-Almanac?")
    assert {"ann", "winter almanac", "ann winter almanac"} <= set(names)
    assert max(len(name.split()) for name in names) <= NAME_WORDS


def test_names_contain_keyword_terms_and_parts_of_unspaced_text() -> None:
    assert "violin lesson" in names_in("violin lessons")
    assert "東京" in names_in("昨日東京で何をした")


def test_tokens_are_unique_with_their_rarity() -> None:
    question = parse_question("cello, cello and the bassoon", vector=None, today=None)
    assert question.tokens == ("cello", "bassoon")
    assert len(question.rarity) == 2
    assert 0.3 < question.rarity.min() <= question.rarity.max() <= 1.0


@given(st.text(max_size=400))
def test_any_text_is_a_question(text: str) -> None:
    question = parse_question(text, vector=None, today=to_micros(FRIDAY))
    assert len(question.tokens) == len(question.rarity) == len(set(question.tokens)) <= MAX_TOKENS
    assert all(start < end for start, end in question.times)


def test_a_pasted_document_yields_its_first_dates_quickly() -> None:
    lines = [f"The week before {1 + i % 28} May {1900 + i % 100} we met." for i in range(10_000)]
    start = perf_counter()
    times = times_in("\n".join(lines), FRIDAY)
    assert perf_counter() - start < 1  # a quadratic parser would take far longer
    assert len(times) == MAX_TIMES
    assert times[1] == (micros(1901, 4, 25), micros(1901, 5, 2))
    assert times_in("No date. " * DATED_CHARACTERS + "On 5 May 2024?", FRIDAY) == ()


@pytest.mark.parametrize("text", ["ſix days before 9 May 2024", "the ſunday before 9 May 2024", "ſince 9 May 2024"])
def test_case_folding_of_unusual_letters_does_not_fail(text: str) -> None:
    assert len(times_in(text, FRIDAY)) == 1


def test_a_relation_is_directly_before_its_date() -> None:
    assert times_in("x" * 100 + " before 5 May 2024", FRIDAY) == ((TIME_MIN, micros(2024, 5, 5)),)
    relation = "three fortnights earlier than the beginning of "
    assert len(relation) <= LOOK_BACK
    assert times_in("Ann, " * 30 + relation + "May 2024", FRIDAY) == ((micros(2024, 3, 20), micros(2024, 5, 1)),)


def test_a_pasted_document_keeps_its_rarest_tokens() -> None:
    words = [f"word{i}" for i in range(500)]
    question = parse_question(" ".join(words), vector=None, today=None)
    assert len(question.tokens) == MAX_TOKENS
    assert len(question.names) < 5_000
