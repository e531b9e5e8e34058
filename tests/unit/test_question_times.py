"""Times that questions name."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zettel.model import TIME_MAX, TIME_MIN, from_micros
from zettel.search.named_times import easter_sunday
from zettel.search.question import DATED_CHARACTERS, times_in
from zettel.search.question_kind import asks_for_many

WEDNESDAY = datetime(2024, 10, 16, 15, tzinfo=timezone.utc)


def days_in(text: str, today: datetime | None = WEDNESDAY) -> list[tuple[str, str]]:
    """Return the first and last day of each time range, "…" for an open end."""
    return [
        (
            "…" if start == TIME_MIN else f"{from_micros(start):%Y-%m-%d}",
            "…" if end == TIME_MAX else f"{from_micros(end) - timedelta(days=1):%Y-%m-%d}",
        )
        for start, end in times_in(text, today)
    ]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        # Weeks, weekends and days of a month
        ("What did I ask in the first week of May?", "2024-05-01", "2024-05-07"),
        ("What did I ask in the second week of May 2023?", "2023-05-08", "2023-05-14"),
        ("the third week of May", "2024-05-15", "2024-05-21"),
        ("during the last week of June", "2024-06-24", "2024-06-30"),
        ("the last week of February", "2024-02-23", "2024-02-29"),
        ("the first week of this month", "2024-10-01", "2024-10-07"),
        ("the first three weeks of July", "2024-07-01", "2024-07-21"),
        ("the first days of June", "2024-06-01", "2024-06-05"),
        ("the last days of April", "2024-04-26", "2024-04-30"),
        ("the last two days of April", "2024-04-29", "2024-04-30"),
        ("the second weekend of September", "2024-09-14", "2024-09-15"),
        ("the first Monday of September", "2024-09-02", "2024-09-02"),
        ("the last Friday in June", "2024-06-28", "2024-06-28"),
        ("on the first of October", "2024-10-01", "2024-10-01"),
        ("the twenty-first of September 2023", "2023-09-21", "2023-09-21"),
        ("the month of May", "2024-05-01", "2024-05-31"),
        # Parts
        ("early February", "2024-02-01", "2024-02-12"),
        ("What did Ann start in 2023?", "2023-01-01", "2023-12-31"),
        ("Why was Ann late in December?", "2023-12-01", "2023-12-31"),
        ("from spring to autumn", "2024-03-01", "2024-11-30"),
        ("at the beginning of August", "2024-08-01", "2024-08-12"),
        ("at the start of August 2022", "2022-08-01", "2022-08-12"),
        ("in mid-June", "2024-06-08", "2024-06-23"),
        ("in the middle of August", "2024-08-08", "2024-08-23"),
        ("late June", "2024-06-18", "2024-06-30"),
        ("at the end of August", "2024-08-18", "2024-08-31"),
        ("the end of last month", "2024-09-18", "2024-09-30"),
        ("early last week", "2024-10-07", "2024-10-09"),
        ("late 2023", "2023-07-26", "2023-12-31"),
        ("the first half of May", "2024-05-01", "2024-05-15"),
        ("the second half of February", "2024-02-15", "2024-02-29"),
        # Days with their weekday, and weeks of a day
        ("on Monday 7 October", "2024-10-07", "2024-10-07"),
        ("on Monday, October 7, 2019", "2019-10-07", "2019-10-07"),
        ("Tuesday the 14th of May", "2024-05-14", "2024-05-14"),
        ("Sat 5 Oct", "2024-10-05", "2024-10-05"),
        ("on Saturday 7 October", "2023-10-07", "2023-10-07"),
        ("Wednesday 29 February", "2024-02-29", "2024-02-29"),
        ("the weekend of 4 May", "2024-05-04", "2024-05-05"),
        ("the weekend of the 1st of May", "2024-05-04", "2024-05-05"),
        ("the week of 6 March", "2024-03-04", "2024-03-10"),
        ("the week starting 6 March", "2024-03-06", "2024-03-12"),
        ("the week of Christmas", "2023-12-25", "2023-12-31"),
        ("anything on the 3rd?", "2024-10-03", "2024-10-03"),
        ("anything on the 30th?", "2024-09-30", "2024-09-30"),
        ("on the 3rd of last month", "2024-09-03", "2024-09-03"),
        ("between the 3rd and the 5th", "2024-10-03", "2024-10-05"),
        # Seasons and feasts
        ("in spring", "2024-03-01", "2024-05-31"),
        ("over the summer", "2024-06-01", "2024-08-31"),
        ("in autumn 2023", "2023-09-01", "2023-11-30"),
        ("in the fall", "2024-09-01", "2024-11-30"),
        ("in winter", "2023-12-01", "2024-02-29"),
        ("late summer", "2024-07-23", "2024-08-31"),
        ("What did we do this summer?", "2024-06-01", "2024-08-31"),
        ("at Christmas", "2023-12-24", "2023-12-26"),
        ("Christmas 2021", "2021-12-24", "2021-12-26"),
        ("last Christmas", "2023-12-24", "2023-12-26"),
        ("on Christmas Eve", "2023-12-24", "2023-12-24"),
        ("on New Year's Eve", "2023-12-31", "2023-12-31"),
        ("on New Year’s Day", "2024-01-01", "2024-01-01"),
        ("around Easter", "2024-03-29", "2024-04-01"),
        ("Easter 2023", "2023-04-07", "2023-04-10"),
        ("on Good Friday", "2024-03-29", "2024-03-29"),
        ("Halloween?", "2023-10-31", "2023-10-31"),
        ("Thanksgiving 2023", "2023-11-23", "2023-11-23"),
        # Relative to today
        ("the week before last", "2024-09-30", "2024-10-06"),
        ("the weekend before last", "2024-10-05", "2024-10-06"),
        ("the month before last", "2024-08-01", "2024-08-31"),
        ("a few days ago", "2024-10-12", "2024-10-14"),
        ("a couple of weeks ago", "2024-09-23", "2024-10-13"),
        ("the other day", "2024-10-09", "2024-10-15"),
        ("over the last two weeks", "2024-10-02", "2024-10-16"),
        ("over the past two weeks", "2024-10-02", "2024-10-16"),
        ("over the last week", "2024-10-09", "2024-10-16"),
        ("last month", "2024-09-01", "2024-09-30"),
        ("this year", "2024-01-01", "2024-12-31"),
        ("What did we do this Monday?", "2024-10-14", "2024-10-14"),
        # Relations
        ("since the start of August", "2024-08-01", "…"),
        ("before the end of May", "…", "2024-05-31"),
        ("by the end of September", "…", "2024-09-30"),
        ("after the beginning of May", "2024-05-01", "…"),
        ("the week before Easter", "2024-03-22", "2024-03-28"),
        ("two weeks before the end of May 2024", "2024-05-18", "2024-05-31"),
        ("between Christmas and New Year", "2023-12-24", "2024-01-01"),
        ("between early May and late June", "2024-05-01", "2024-06-30"),
        ("between May and July", "2024-05-01", "2024-07-31"),
        ("from August to November", "2024-08-01", "2024-11-30"),
        ("from Monday 7 October to Friday 11 October", "2024-10-07", "2024-10-11"),
    ],
)
def test_a_phrase_names_its_days(text: str, first: str, last: str) -> None:
    assert days_in(text) == [(first, last)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        # The last one, also if it contains today
        ("What did we do in December?", "2023-12-01"),
        ("What happened in October?", "2024-10-01"),
        ("anything from 20 October?", "2023-10-20"),
        ("Tell me about Friday", "2024-10-11"),
        ("What is the book Ann bought on Friday?", "2024-10-11"),
        ("What do you know about late November?", "2023-11-18"),
        ("What did I mention about plans in early February?", "2024-02-01"),
        ("What have I been doing since December?", "2023-12-01"),
        # The next one
        ("What do I have on 14 June?", "2025-06-14"),
        ("When is the concert in June?", "2025-06-01"),
        ("What will we do at Easter?", "2025-04-18"),
        ("What is planned for next Christmas?", "2024-12-24"),
        ("What is due on the 3rd?", "2024-11-03"),
        ("Does Ann have a recital on Saturday?", "2024-10-19"),
        ("Anything in the coming winter?", "2024-12-01"),
        ("Am I busy on Monday 20 October?", "2025-10-20"),
        # The nearest one
        ("What is on this Friday?", "2024-10-18"),
        ("Is the fair in December?", "2024-12-01"),
        ("What did we plan for December?", "2024-12-01"),
    ],
)
def test_the_tense_chooses_among_years(text: str, first: str) -> None:
    assert [start for start, _ in days_in(text)] == [first]


def test_several_times_are_in_textual_order() -> None:
    assert days_in("In early May, at Easter, on Monday 7 October, or in March or April?") == [
        ("2024-05-01", "2024-05-12"), ("2024-03-29", "2024-04-01"), ("2024-10-07", "2024-10-07"),
        ("2024-03-01", "2024-03-31"), ("2024-04-01", "2024-04-30"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "Who wrote A Christmas Carol?",
        "Where is Easter Island?",
        "What Halloween costume does Ann own?",
        "the first week of the festival",
        "on the 3rd attempt",
        "on the 2nd floor",
        "in the second half of the match",
        "Did Ann fall?",
        "in spring cleaning mode",
        "on the other hand",
        "at the end of the road",
        "Merry Christmas!",
    ],
)
def test_other_phrases_are_not_times(text: str) -> None:
    assert days_in(text) == []


def test_without_today_only_times_with_a_year_are_found() -> None:
    assert days_in("early May, Easter, the other day, on the 3rd, this summer, the week before last", None) == []
    assert days_in("in the first week of May 2023 and at Easter 2022", None) == [
        ("2023-05-01", "2023-05-07"), ("2022-04-15", "2022-04-18"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("year", "month", "day"),
    [(1818, 3, 22), (1943, 4, 25), (1961, 4, 2), (2000, 4, 23), (2019, 4, 21), (2024, 3, 31), (2038, 4, 25)],
)
def test_easter(year: int, month: int, day: int) -> None:
    assert (easter_sunday(year).month, easter_sunday(year).day) == (month, day)


def test_days_are_in_the_time_zone_of_today() -> None:
    tokyo = timezone(timedelta(hours=9))
    ((start, end),) = times_in("on Monday 7 October", WEDNESDAY.astimezone(tokyo))
    assert from_micros(start) == datetime(2024, 10, 7, tzinfo=tokyo)
    assert from_micros(end) == datetime(2024, 10, 8, tzinfo=tokyo)


_PIECES = (
    "the first second last final week weeks weekend day days of in on early mid late end beginning half Monday Tuesday"
    " May June february 7 29 30 31 3rd 14th 31st 99th 2023 1999 Christmas Easter New Year's Eve summer winter fall this"
    " next before after since between and to ago few couple other year month over past , - ? . ' İ"
).split()
_TODAY = st.none() | st.datetimes(timezones=st.sampled_from([timezone.utc, timezone(timedelta(hours=-11))]))


@given(st.lists(st.sampled_from(_PIECES), max_size=16).map(" ".join) | st.text(max_size=200), _TODAY)
def test_every_range_begins_before_it_ends(text: str, today: datetime | None) -> None:
    assert all(start < end for start, end in times_in(text, today))


@pytest.mark.parametrize(
    "piece",
    (
        "the first week of |the end of the start of |early mid late |monday, the |on the 3rd |the week of the "
        "|christmas |9 |between the 3rd and |new year's |last last |twenty-|summer in the |have i got |plan a for "
        "|may 5-|1 may |a few days |two weeks before the |the other |week before |a| |'s |list |all all |which a-"
        "|which s |what are the a's "
    ).split("|"),
)
def test_a_long_question_is_fast(piece: str) -> None:
    text = (piece * DATED_CHARACTERS)[:DATED_CHARACTERS]
    durations = []
    for _ in range(5):
        start = process_time()
        times_in(text, WEDNESDAY)
        asks_for_many(text)
        durations.append(process_time() - start)
    assert min(durations) < 0.05
