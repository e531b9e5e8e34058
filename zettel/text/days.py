"""Resolves matches of :mod:`zettel.text.dates` to the first day and the day after the last.

Each resolver takes the match of one branch of the pattern, and the context of the text. It returns None if the text
alone does not determine the date, and raises ValueError or OverflowError for days outside the calendar.
"""

from __future__ import annotations

import re
from calendar import isleap
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from functools import cached_property
from typing import TypeAlias

from zettel.model import TimeRange
from zettel.text.direction import direction_at

Days: TypeAlias = tuple[date, date]
"""First day, and the day after the last."""

_MONTH_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday".split()
SEASON_STARTS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_COUNTS = {
    word: count
    for count, row in enumerate("a,an,one two three four five six seven eight nine ten eleven twelve".split(), 1)
    for word in row.split(",")
}
MAX_DIRECTIONS = 20
"""Dates of a text whose direction is read from the words around them; it takes a tenth of a millisecond each."""

_VAGUE = {"couple": 2, "few": 3, "several": 4}
"""Counts that may be off by one."""

_BE = r"(?:\b(?:(?:what|it|that|there)['\u2019]s|is|are|am)|['\u2019](?:m|re))\s"
_DUE = rf"{_BE}(?:planned|(?:\w+\s){{0,2}}(?:supposed|scheduled|expected|due))\b"
"""Forms of the future: "is planned", "am I supposed"."""
_FUTURE = re.compile(
    r"\b(?:will|going\sto|gonna|plan(?:s|ning)?|upcoming|soon|next|tomorrow|shall|needs?\s(?:to|for))\b"
    rf"|['\u2019]ll\b|{_DUE}"
)
_PRESENT = re.compile(
    rf"{_DUE}|{_BE}(?:(?:not|still|already|also)\s)?[a-z]{{2,}}ed\b"
    r"|\b(?:need|indeed|hundred|speed|seed|feed|breed|proceed|exceed|succeed|sacred|naked)\b"
)
"""Forms that only look like the past: "is called", "need"."""
_PAST = re.compile(r"\b(?:was|were|did|had|went|got|took|made|met|saw|came|ago|last|yesterday|[a-z]{2,}ed)\b")


class DateContext:
    """The context of dates in a text: the text, the day it was written, its time zone, and the tense of its verbs.

    ``direction`` chooses among dates without a year: -1 the last one, 1 the next, 0 the nearest. None: the tense.
    """

    def __init__(self, text: str, anchor: datetime | None, direction: int | None = None) -> None:
        self.text = text
        self.zone: tzinfo = (anchor.tzinfo if anchor else None) or timezone.utc
        self.today: date | None = anchor.date() if anchor else None
        self.anchor = anchor
        self._direction = direction
        self._directions = 0

    def midnight(self, day: date) -> datetime:
        return datetime.combine(day, time(), self.zone).astimezone(timezone.utc)

    def time_range(self, days: Days, text: str) -> TimeRange:
        """Return the days named by ``text`` as a range, in the zone of the anchor."""
        return TimeRange(self.midnight(days[0]), self.midnight(days[1]), text)

    @cached_property
    def tense(self) -> int:
        """-1 for the past, 1 for the future, 0 if neither or both."""
        return has_future(self.text) - has_past(self.text)

    @property
    def direction(self) -> int:
        return self.tense if self._direction is None else self._direction

    def direction_of(self, match: re.Match[str]) -> int:
        """Return the direction of the date of a match, by the words around it; after many dates, by all verbs."""
        self._directions += 1
        if self._direction is not None or self._directions > MAX_DIRECTIONS:
            return self.direction
        return direction_at(self.text, *match.span(match.lastgroup or 0))


def has_future(text: str) -> bool:
    """Return whether a text in lower case contains a form of the future."""
    return bool(_FUTURE.search(text))


def has_past(text: str) -> bool:
    """Return whether a text in lower case contains a form of the past."""
    return bool(_PAST.search(_PRESENT.sub(" ", text)))


# ------------------------------------------------------------------------------------------------------ calendar pieces


def whole_day(day: date, days: int = 1) -> Days:
    return day, day + timedelta(days=days)


def whole_month(year: int, month: int, months: int = 1) -> Days:
    """``month`` may lie outside 1..12: month 0 is December of the year before."""
    first, last = year * 12 + month - 1, year * 12 + month - 1 + months
    return date(first // 12, first % 12 + 1, 1), date(last // 12, last % 12 + 1, 1)


def whole_year(year: int, years: int = 1) -> Days:
    return date(year, 1, 1), date(year + years, 1, 1)


def whole_week(day: date, weeks: int = 0) -> Days:
    return whole_day(day - timedelta(days=day.weekday()) + timedelta(weeks=weeks), 7)


def whole_weekend(day: date, weeks: int = 0) -> Days:
    """Return the Saturday and Sunday of the week of a day."""
    return whole_day(whole_week(day, weeks)[0] + timedelta(days=5), 2)


def month_number(name: str) -> int:
    return _MONTH_NAMES.index(name[:3]) + 1


def _number(text: str) -> int:
    return int(text.rstrip("stndrh"))


def count_of(text: str) -> tuple[int, int]:
    """Return the count, and its possible error."""
    for word, count in _VAGUE.items():
        if word in text:
            return count, 1
    return (int(text) if text.isdecimal() else _COUNTS[text]), 0


def nearest(options: list[Days], context: DateContext, match: re.Match[str] | None = None) -> Days | None:
    """Choose the last, next or nearest of several years, months or weeks (in order), by the direction.

    The words around the date of ``match`` decide the direction; without a match, all verbs of the text.
    """
    today = context.today
    if today is None:
        return None
    direction = context.direction if match is None else context.direction_of(match)
    if direction < 0:
        options = [days for days in options if days[0] <= today] or options
    elif direction > 0:
        options = [days for days in options if days[1] > today] or options
    return min(options, key=lambda days: abs((days[0] - today).days))


# ------------------------------------------------------------------------------------------------------------ resolvers


def _iso(match: re.Match[str], context: DateContext) -> Days:
    year, month = int(match["iso_y"]), int(match["iso_m"])
    return whole_day(date(year, month, int(match["iso_d"]))) if match["iso_d"] else whole_month(year, month)


def _numeric(match: re.Match[str], context: DateContext) -> Days:
    first, second, year = int(match["num_a"]), int(match["num_b"]), int(match["num_y"])
    day_first = match["num_s"] == "." or first > 12
    return whole_day(date(year, second, first) if day_first else date(year, first, second))


def _ideographic(match: re.Match[str], context: DateContext) -> Days | None:
    if match["only_m"]:
        return day_of(match, int(match["only_m"]), int(match["only_d"]), None, None, context)
    if match["d"]:
        return whole_day(date(int(match["y"]), int(match["m"]), int(match["d"])))
    return whole_month(int(match["y"]), int(match["m"])) if match["m"] else whole_year(int(match["y"]))


def _day_month(match: re.Match[str], context: DateContext) -> Days | None:
    return _named_day(match, "dm", context)


def _month_day(match: re.Match[str], context: DateContext) -> Days | None:
    return _named_day(match, "md", context)


def _named_day(match: re.Match[str], prefix: str, context: DateContext) -> Days | None:
    month, day, last, year = (match[f"{prefix}_{part}"] for part in "mdey")
    numbers = _number(day), _number(last) if last else None, int(year) if year else None
    return day_of(match, month_number(month), *numbers, context)


def _slashed(match: re.Match[str], context: DateContext) -> Days | None:
    return day_of(match, int(match["sl_m"]), int(match["sl_d"]), None, None, context)


def _day_of_month(match: re.Match[str], context: DateContext) -> Days | None:
    """ "On the 3rd"."""
    day = _number(match["day_of_month"])
    return days_of_month(day, day, context, match)


def days_of_month(first: int, last: int, context: DateContext, match: re.Match[str] | None = None) -> Days | None:
    """Return the last, next or nearest days with these numbers."""
    today = context.today
    if today is None or not 1 <= first <= last <= 31:
        return None
    months = [whole_month(today.year, today.month + shift) for shift in (-2, -1, 0, 1, 2)]
    options = [
        (start + timedelta(days=first - 1), start + timedelta(days=last))
        for start, end in months
        if last <= (end - start).days
    ]
    return nearest(options, context, match)


def day_of(
    match: re.Match[str], month: int, day: int, last: int | None, year: int | None, context: DateContext
) -> Days | None:
    def in_year(number: int) -> Days:
        return date(number, month, day), date(number, month, last or day) + timedelta(days=1)

    if year is not None:
        return in_year(year)
    if context.today is None:
        return None
    near = range(context.today.year - 1, context.today.year + 2)
    options = [in_year(number) for number in near if (month, day) != (2, 29) or isleap(number)]
    return nearest(options, context, match) if options else None


def _month_year(match: re.Match[str], context: DateContext) -> Days:
    return whole_month(int(match["my_y"]), month_number(match["my_m"]))


def _month(match: re.Match[str], context: DateContext) -> Days | None:
    return month_near(match["mo_m"], context, match)


def _plain_month(match: re.Match[str], context: DateContext) -> Days | None:
    return month_near(match["plain_month"], context, match)


def month_near(name: str, context: DateContext, match: re.Match[str] | None = None) -> Days | None:
    """Return the last, next or nearest month of a name."""
    if context.today is None:
        return None
    number, year = month_number(name), context.today.year
    return nearest([whole_month(near, number) for near in (year - 1, year, year + 1)], context, match)


def _season(match: re.Match[str], context: DateContext) -> Days:
    return whole_month(int(match["se_y"]), SEASON_STARTS[match["se_n"]], 3)


def _decade(match: re.Match[str], context: DateContext) -> Days | None:
    digits = match["de_y"]
    if len(digits) == 4:
        return whole_year(int(digits), 10)
    return whole_year(1900 + int(digits), 10) if int(digits) >= 20 else None  # "the 10s" may be anything


def _years(match: re.Match[str], context: DateContext) -> Days:
    first = int(match["ys_a"])
    return whole_year(first, int(match["ys_b"]) - first + 1 if match["ys_b"] else 1)


def _near_day(match: re.Match[str], context: DateContext) -> Days | None:
    if context.today is None:
        return None
    words = match["near"]
    distance = 2 if "day " in words else 1
    sign = -1 if "yesterday" in words else 1 if "tomorrow" in words else 0
    return whole_day(context.today + timedelta(days=sign * distance))


def _weekday(match: re.Match[str], context: DateContext) -> Days | None:
    if context.today is None:
        return None
    ahead = (DAY_NAMES.index(match["weekday"]) - context.today.weekday()) % 7
    return nearest([whole_day(context.today + timedelta(days=ahead + week)) for week in (-7, 0)], context, match)


def _current(match: re.Match[str], context: DateContext) -> Days | None:
    return stretch(match["cu_u"], 0, context)


def _shift(match: re.Match[str], context: DateContext) -> Days | None:
    return stretch(match["sh_u"], 1 if match["sh_w"] in ("next", "coming", "following") else -1, context)


def stretch(unit: str, way: int, context: DateContext) -> Days | None:
    """The last (``way`` -1), this (0) or the next (1) week, weekend, month, year, weekday, season or named month."""
    today = context.today
    if today is None:
        return None
    if unit in ("night", "morning", "afternoon", "evening"):
        return whole_day(today + timedelta(days=way))
    if unit in ("week", "weekend"):
        return (whole_week if unit == "week" else whole_weekend)(today, way)
    if unit == "month":
        return whole_month(today.year, today.month + way)
    if unit == "year":
        return whole_year(today.year + way)
    if unit in DAY_NAMES:
        ahead = (DAY_NAMES.index(unit) - today.weekday()) % 7
        days = (ahead or 7) if way > 0 else ahead if way == 0 else ahead - 7
        return whole_day(today + timedelta(days=days))
    months = 3 if unit in SEASON_STARTS else 1
    number = SEASON_STARTS[unit] if months == 3 else month_number(unit)
    options = [whole_month(year, number, months) for year in range(today.year - 2, today.year + 3)]
    if way < 0:
        return [days for days in options if days[1] <= today][-1]
    if way > 0:
        return next(days for days in options if days[0] > today)
    return next(days for days in options if days[1] > today)


def _ago(match: re.Match[str], context: DateContext) -> Days | None:
    way = -1 if match["ag_w"] in ("ago", "back") else 1
    return _away(match["ag_c"], match["ag_u"], way, context)


def _within(match: re.Match[str], context: DateContext) -> Days | None:
    # "learned it in two weeks" is a duration
    return None if context.tense < 0 else _away(match["wi_c"], match["wi_u"], 1, context)


def _away(count_text: str, unit: str, way: int, context: DateContext) -> Days | None:
    """Return the day, week, month or year that is a count of units before or after."""
    if context.today is None or context.anchor is None:
        return None
    count, slack = count_of(count_text)
    if unit == "hour":
        return whole_day((context.anchor + timedelta(hours=way * count)).date())
    if unit in DAY_NAMES:
        ahead = (DAY_NAMES.index(unit) - context.today.weekday()) % 7
        first = ahead - 7 if way < 0 else (ahead or 7)
        return whole_day(context.today + timedelta(days=first + 7 * way * (count - 1)))
    near, far = _units_away(unit, way * (count - slack), context), _units_away(unit, way * (count + slack), context)
    return min(near[0], far[0]), max(near[1], far[1])


def _units_away(unit: str, count: int, context: DateContext) -> Days:
    today = context.today
    assert today is not None
    if unit == "day":
        return whole_day(today + timedelta(days=count))
    if unit in ("week", "fortnight"):
        return whole_week(today, count if unit == "week" else 2 * count)
    if unit == "weekend":
        return whole_weekend(today, count)
    if unit == "month":
        return whole_month(today.year, today.month + count)
    return whole_year(today.year + count)


def _span(match: re.Match[str], context: DateContext) -> Days | None:
    """Parse "the last three months" or "the past month": up to and including today."""
    today = context.today
    if today is None:
        return None
    way = 1 if match["sp_w"] in ("next", "coming") else -1
    count, slack = count_of(match["sp_c"] or "a")
    count += slack
    unit = match["sp_u"] or match["sp_p"]
    days = {"hour": 1 / 24, "day": 1, "week": 7, "weekend": 7, "fortnight": 14, "month": 365.25 / 12, "year": 365.25}
    other = today + way * timedelta(days=round(count * days[unit]))
    return min(today, other), max(today, other) + timedelta(days=1)


RESOLVERS: dict[str, Callable[[re.Match[str], DateContext], Days | None]] = {
    "ideographic": _ideographic,
    "iso": _iso,
    "numeric": _numeric,
    "day_month": _day_month,
    "month_day": _month_day,
    "slashed": _slashed,
    "day_of_month": _day_of_month,
    "month_year": _month_year,
    "season": _season,
    "span": _span,
    "shift": _shift,
    "current": _current,
    "ago": _ago,
    "within": _within,
    "near": _near_day,
    "month": _month,
    "plain_month": _plain_month,
    "weekday": _weekday,
    "decade": _decade,
    "years": _years,
}
