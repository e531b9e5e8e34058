"""Dates in a text, resolved from the time of the statement."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.text.dates import find_dates, placed_dates

WEDNESDAY = datetime(2024, 5, 1, 9, 30, tzinfo=timezone.utc)


def _days(text: str, anchor: datetime | None = WEDNESDAY) -> list[tuple[str, str]]:
    """Return the first and last day of each date range."""
    return [(f"{date.start:%Y-%m-%d}", f"{date.end - timedelta(days=1):%Y-%m-%d}") for date in find_dates(text, anchor)]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("yesterday", "2024-04-30", "2024-04-30"),
        ("the day before yesterday", "2024-04-29", "2024-04-29"),
        ("Tonight!", "2024-05-01", "2024-05-01"),
        ("last night", "2024-04-30", "2024-04-30"),
        ("last Saturday", "2024-04-27", "2024-04-27"),
        ("last Wednesday", "2024-04-24", "2024-04-24"),
        ("next Wednesday", "2024-05-08", "2024-05-08"),
        ("this Friday", "2024-05-03", "2024-05-03"),
        ("We met on Friday", "2024-04-26", "2024-04-26"),
        ("We will meet on Friday", "2024-05-03", "2024-05-03"),
        ("last week", "2024-04-22", "2024-04-28"),
        ("this past weekend", "2024-04-27", "2024-04-28"),
        ("this weekend", "2024-05-04", "2024-05-05"),
        ("next month", "2024-06-01", "2024-06-30"),
        ("last year", "2023-01-01", "2023-12-31"),
        ("last summer", "2023-06-01", "2023-08-31"),
        ("last May", "2023-05-01", "2023-05-31"),
        ("next June", "2024-06-01", "2024-06-30"),
        ("3 days ago", "2024-04-28", "2024-04-28"),
        ("two weeks ago", "2024-04-15", "2024-04-21"),
        ("a few days ago", "2024-04-27", "2024-04-29"),
        ("two Sundays ago", "2024-04-21", "2024-04-21"),
        ("a month ago", "2024-04-01", "2024-04-30"),
        ("five months ago", "2023-12-01", "2023-12-31"),
        ("ten years ago", "2014-01-01", "2014-12-31"),
        ("the exam is in two weeks", "2024-05-13", "2024-05-19"),
        ("over the past week", "2024-04-24", "2024-05-01"),
        ("in the past month", "2024-04-01", "2024-05-01"),
        ("in the past year", "2023-05-02", "2024-05-01"),
        ("the past weekend", "2024-04-27", "2024-04-28"),
        ("What do I need to bring on Tuesday?", "2024-05-07", "2024-05-07"),
        ("What do I need for Tuesday?", "2024-05-07", "2024-05-07"),
        ("What is scheduled for Tuesday?", "2024-05-07", "2024-05-07"),
        ("What am I supposed to do on Tuesday?", "2024-05-07", "2024-05-07"),
        ("What’s planned for Tuesday?", "2024-05-07", "2024-05-07"),
        ("I’ll call on Tuesday", "2024-05-07", "2024-05-07"),
        ("What is planned for December?", "2024-12-01", "2024-12-31"),
        ("Who is invited for Friday?", "2024-05-03", "2024-05-03"),
        ("Is it a hundred guests on Friday?", "2024-05-03", "2024-05-03"),
        ("What is it Ann planned on Friday?", "2024-04-26", "2024-04-26"),
        ("Who is the guest that called on Friday?", "2024-04-26", "2024-04-26"),
        ("I needed it on Friday", "2024-04-26", "2024-04-26"),
        ("for the past two weeks", "2024-04-17", "2024-05-01"),
        ("on 5 May", "2024-05-05", "2024-05-05"),
        ("the 5th of May 2023", "2023-05-05", "2023-05-05"),
        ("May 5th, 2023", "2023-05-05", "2023-05-05"),
        ("May 5-7, 2023", "2023-05-05", "2023-05-07"),
        ("by December 30", "2023-12-30", "2023-12-30"),
        ("in May", "2024-05-01", "2024-05-31"),
        ("Is the fair in June?", "2024-06-01", "2024-06-30"),
        ("What is planned for June?", "2024-06-01", "2024-06-30"),
        ("What did Ann plant in June?", "2023-06-01", "2023-06-30"),
        ("early March 2020", "2020-03-01", "2020-03-31"),
        ("Sept. 2022", "2022-09-01", "2022-09-30"),
        ("in 2019", "2019-01-01", "2019-12-31"),
        ("2019-2021", "2019-01-01", "2021-12-31"),
        ("in the 1990s", "1990-01-01", "1999-12-31"),
        ("the summer of 2022", "2022-06-01", "2022-08-31"),
        ("2024-02-29T10:00:00Z", "2024-02-29", "2024-02-29"),
        ("2023/12", "2023-12-01", "2023-12-31"),
        ("01.05.2024", "2024-05-01", "2024-05-01"),
        ("3/4/2024", "2024-03-04", "2024-03-04"),
        ("25/12/2023", "2023-12-25", "2023-12-25"),
        ("2024年5月1日に", "2024-05-01", "2024-05-01"),
        ("2024年5月1号", "2024-05-01", "2024-05-01"),
        ("5月1號", "2024-05-01", "2024-05-01"),
        ("am 3. September 2023", "2023-09-03", "2023-09-03"),
        ("am 12. November 2023", "2023-11-12", "2023-11-12"),
        ("am 5. August", "2024-08-05", "2024-08-05"),
        ("2024년 5월", "2024-05-01", "2024-05-31"),
        ("29 February", "2024-02-29", "2024-02-29"),
    ],
)
def test_a_phrase_names_its_days(text: str, first: str, last: str) -> None:
    assert _days(text) == [(first, last)]


@pytest.mark.parametrize(
    "text",
    [
        "I may go, and this may be late",
        "they march on",
        "2000 people paid $1999",
        "version 2.2019 and 10.12.1.5",
        "31 April",
        "we came 3. May I go",
        "13/13/2023",
        "May 10:30",
        "I learned it in two weeks",
        "call 555-2019-11",
        "",
    ],
)
def test_other_numbers_are_not_dates(text: str) -> None:
    assert find_dates(text, WEDNESDAY) == []


@pytest.mark.parametrize(("name", "floor"), [("fit", 1.0), ("held-out", 0.93)])
def test_a_date_without_a_year_is_past_or_future_by_its_verbs(name: str, floor: float) -> None:
    lines = (Path(__file__).parents[1] / f"data/dates/{name}.jsonl").read_text().splitlines()
    cases = [json.loads(line) for line in lines]
    right = sum(_dates_at(case) == [case["date"]] for case in cases)
    assert len(cases) == 100
    assert right / len(cases) >= floor


@pytest.mark.parametrize(
    ("text", "month"),
    [
        ("were moving to porto in july!", "2024-07"),  # we're
        ("booked the azores, 22 october", "2024-10"),
        ("got tickets for the gig in november", "2024-11"),
        ("we booked it on 22 october", "2023-10"),
        ("the kids were playing in july", "2023-07"),
    ],
)
def test_plans_in_a_hurry_are_in_the_future(text: str, month: str) -> None:
    assert [f"{found.start:%Y-%m}" for found in find_dates(text, WEDNESDAY)] == [month]


def _dates_at(case: dict[str, str]) -> list[str]:
    """Return the dates found within the mention of a case, as its ``date`` is written."""
    said_at = datetime.fromisoformat(case["said_at"]).replace(hour=12, tzinfo=timezone.utc)
    start = case["text"].index(case["mention"])
    end = start + len(case["mention"])
    found = placed_dates(case["text"], said_at)
    return [
        time.start.date().isoformat()[: len(case["date"])]
        for at, time in found
        if at < end and start < at + len(time.text)
    ]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("The exhibition was on until 14 June.", "2023-06-14"),
        ("On 14 June we're flying to Japan.", "2024-06-14"),
        ("On 14 June I sold the bike.", "2023-06-14"),
        ("They moved the exam to 12 October.", "2024-10-12"),
        ("We moved to Leeds on 12 October.", "2023-10-12"),
        ("The 12 October invoice is still unpaid.", "2023-10-12"),
        ("My sister's having her knee done on 12 October.", "2024-10-12"),
        ("What did I order on 12 October?", "2023-10-12"),
        ("The plumber came on the 2nd.", "2024-04-02"),
        ("The plumber comes on the 2nd.", "2024-05-02"),
        ("28/03 ERROR disk full", "2024-03-28"),
    ],
)
def test_the_nearest_verb_decides(text: str, first: str) -> None:
    assert _days(text) == [(first, first)]


def test_a_long_text_with_many_dates_is_read_without_delay() -> None:
    start = process_time()
    assert len(find_dates("14 June, rain; " * 4000, WEDNESDAY)) == 4000
    assert process_time() - start < 3


def test_several_dates_are_in_textual_order_with_their_phrases() -> None:
    text = "Yesterday Ann called; they met in May 2019 and meet again next Monday."
    assert [phrase.text for phrase in find_dates(text, WEDNESDAY)] == ["Yesterday", "May 2019", "next Monday"]


def test_without_an_anchor_only_full_dates_are_resolved() -> None:
    assert _days("yesterday, on 5 May, last week, and on 5 May 2023", None) == [("2023-05-05", "2023-05-05")]


def test_days_are_in_the_time_zone_of_the_speaker() -> None:
    tokyo = timezone(timedelta(hours=9))
    (today,) = find_dates("today", datetime(2024, 5, 1, 1, 0, tzinfo=tokyo))
    assert today.start == datetime(2024, 4, 30, 15, tzinfo=timezone.utc)
    assert today.end - today.start == timedelta(days=1)


_PIECES = st.sampled_from(
    "last next this past in on by early a an the few couple of two 3 99 999 day days week weekend month year years"
    " hours ago later from now May Feb feb 29 30 31 2023 1900 2024-02-30 0 5th 31st - , . / ' summer winter Friday"
    " Sundays tomorrow 年 月 日 2024年 13月 1990s 90s İ".split()
)


@given(
    st.lists(_PIECES, max_size=12).map(" ".join) | st.text(),
    st.none() | st.datetimes(timezones=st.just(timezone.utc)),
)
def test_every_range_begins_before_it_ends(text: str, anchor: datetime | None) -> None:
    for phrase in find_dates(text, anchor):
        assert phrase.start < phrase.end
        assert phrase.start.utcoffset() == phrase.end.utcoffset() == timedelta(0)
        assert phrase.text in text
