"""Times that questions name and notes rarely do: "the first week of May", "late June", "around Easter", "the 3rd".

``_NAMED_TIMES`` lists all patterns with their names. Each pattern matches text in lower case with single spaces, and
its resolver returns whole days, or None if the text is not a time. Times that contain a date, such as "Monday 7
October" or "the week of 4 March", are built from the dates of :mod:`zettel.text.dates`.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta
from typing import TypeAlias

from zettel.model import TimeRange
from zettel.text.dates import COUNT, DAY_NAME, ENDS_PHRASE, MONTH, SEASON, SHORT_DAY, YEAR
from zettel.text.days import (
    DAY_NAMES,
    SEASON_STARTS,
    DateContext,
    Days,
    count_of,
    days_of_month,
    month_near,
    month_number,
    nearest,
    stretch,
    whole_day,
    whole_month,
    whole_week,
    whole_weekend,
    whole_year,
)

PlacedDate: TypeAlias = tuple[int, TimeRange]
"""A time range with its position in the text."""
_Match: TypeAlias = re.Match[str]

# ------------------------------------------------------------------------------------------------------------- patterns

_NO_DAY = r"(?!,?\s(?:the\s|of\s)?[0-9])"
_PERIOD = rf"""(?:the\s(?:month|year)\sof\s)?(?:
    (?P<month>{MONTH})(?:,?\s(?:of\s|in\s)?(?P<month_year>{YEAR})|{_NO_DAY})(?!\s(?:be|have|not)\b)
  | (?P<season_the>the\s)?(?P<season>{SEASON})\b(?:\s(?:of\s|in\s)?(?P<season_year>{YEAR}))?
  | (?P<year>{YEAR})(?!'?s\b|[-/.][0-9])
  | (?P<relative>the|this|current|last|past|previous|next|coming)\s(?P<unit>week|month|year|{SEASON}|{MONTH}))(?!\w)"""
"""A week, month, season or year that another phrase divides."""

_THIRDS = {
    "early": "first", "beginning": "first", "start": "first",
    "mid": "middle", "middle": "middle",
    "late": "last", "end": "last", "close": "last",
}  # fmt: skip
_THIRD_OF_MONTH = {"first": (1, 12), "middle": (8, 23), "last": (18, 31)}
"""First and last day: a little more than a third, because people remember dates roughly."""
_MONTH_DAYS = 30

_FIRST_TO_NINTH = "first second third fourth fifth sixth seventh eighth ninth".split()
_ORDINAL_WORDS = [
    *_FIRST_TO_NINTH,
    *"tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth".split(),
    "twentieth",
    *(f"twenty-{word}" for word in _FIRST_TO_NINTH),
    "thirtieth",
    "thirty-first",
]
_ORDINALS = {word: number for number, word in enumerate(_ORDINAL_WORDS, 1)}
_ORDINAL = f"(?:{'|'.join(sorted(_ORDINALS, key=len, reverse=True)).replace('-', '[- ]')})"
_NTH = r"(?:first|second|third|fourth|fifth|1st|2nd|3rd|4th|5th|last|final)"
_LAST = ("last", "final")
_SOME_DAYS = 5
""" "The first days of June", in days."""


_FEASTS: dict[str, Callable[[int], Days]] = {
    r"christmas\seve": lambda year: whole_day(date(year, 12, 24)),
    r"christmas\sday": lambda year: whole_day(date(year, 12, 25)),
    r"boxing\sday": lambda year: whole_day(date(year, 12, 26)),
    r"christmas\s(?:holidays?|break|vacation)": lambda year: whole_day(date(year, 12, 24), 9),
    r"christmas\sweek": lambda year: whole_week(date(year, 12, 25)),
    r"(?:christmas|xmas)(?:[\s-]?time)?": lambda year: whole_day(date(year, 12, 24), 3),
    r"new\syear(?:['\u2019]?s)?\seve": lambda year: whole_day(date(year, 12, 31)),
    r"new\syear(?:['\u2019]?s)?\sday": lambda year: whole_day(date(year, 1, 1)),
    r"new\syear(?:['\u2019]?s)?": lambda year: whole_day(date(year - 1, 12, 31), 2),
    r"good\sfriday": lambda year: whole_day(easter_sunday(year) - timedelta(days=2)),
    r"easter\ssunday": lambda year: whole_day(easter_sunday(year)),
    r"easter\smonday": lambda year: whole_day(easter_sunday(year) + timedelta(days=1)),
    r"easter\sweek": lambda year: whole_day(easter_sunday(year) - timedelta(days=6), 8),
    r"easter(?:[\s-](?:time|weekend))?": lambda year: whole_day(easter_sunday(year) - timedelta(days=2), 4),
    r"hallowe['\u2019]?en": lambda year: whole_day(date(year, 10, 31)),
    r"valentine['\u2019]?s(?:\sday)?": lambda year: whole_day(date(year, 2, 14)),
    r"thanksgiving(?:\sday)?": lambda year: whole_day(_nth_days(whole_month(year, 11), "thursday", 4)[0]),
}
"""Patterns of feasts, longer ones first, and their days in a year."""
_FEAST = "|".join(f"(?P<feast{number}>{pattern})" for number, pattern in enumerate(_FEASTS))
_FEAST_DAYS = list(_FEASTS.values())

_DAY_NUMBER = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)"
_OTHER_DAYS = {"day": 7, "night": 7, "morning": 7, "afternoon": 7, "evening": 7, "week": 28, "weekend": 28, "month": 92}
""" "The other day" is one of the last seven days."""


def easter_sunday(year: int) -> date:
    """Return Easter Sunday of a Gregorian year (the anonymous algorithm; Meeus: Astronomical Algorithms, 1991)."""
    golden, century, of_century = year % 19, year // 100, year % 100
    epact = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    to_sunday = (32 + 2 * (century % 4) + 2 * (of_century // 4) - epact - of_century % 4) % 7
    correction = (golden + 11 * epact + 22 * to_sunday) // 451
    month, day = divmod(epact + to_sunday - 7 * correction + 114, 31)
    return date(year, month, day + 1)


# ------------------------------------------------------------------------------------------------------------ resolvers


def _period(match: _Match, context: DateContext) -> Days | None:
    """The days of the part ``_PERIOD`` of a match."""
    if match["month"]:
        return _month(match["month"], match["month_year"], context)
    if match["season"]:
        return _season_days(match["season"], match["season_year"], context)
    if match["year"]:
        return whole_year(int(match["year"]))
    return _relative(match["relative"], match["unit"], context)


def _month(name: str, year: str | None, context: DateContext) -> Days | None:
    return whole_month(int(year), month_number(name)) if year else month_near(name, context)


def _season_days(name: str, year: str | None, context: DateContext) -> Days | None:
    if year:
        return whole_month(int(year), SEASON_STARTS[name], 3)
    return _of_years(lambda number: whole_month(number, SEASON_STARTS[name], 3), context)


def _of_years(days_in: Callable[[int], Days], context: DateContext) -> Days | None:
    today = context.today
    return nearest([days_in(today.year + years) for years in (-2, -1, 0, 1)], context) if today else None


def _relative(word: str, unit: str, context: DateContext) -> Days | None:
    if word in ("the", "this", "current"):
        return _this(unit, context)
    return stretch(unit, 1 if word in ("next", "coming") else -1, context)


def _this(unit: str, context: DateContext) -> Days | None:
    """This week, month or year, or the month or season of this name in the current year."""
    today = context.today
    if today is None or unit in ("week", "month", "year"):
        return stretch(unit, 0, context)
    if unit == "winter":
        return whole_month(today.year - (today.month < 3), 12, 3)
    return (
        whole_month(today.year, SEASON_STARTS[unit], 3)
        if unit in SEASON_STARTS
        else whole_month(today.year, month_number(unit))
    )


def _third(match: _Match, context: DateContext) -> Days | None:
    days = _period(match, context)
    if days is None:
        return None
    first, last = _THIRD_OF_MONTH[_THIRDS[match["third"]]]
    length = (days[1] - days[0]).days
    if length > 31 or length < 28:  # not a month
        first, last = 1 + (first - 1) * length // _MONTH_DAYS, -(-last * length // _MONTH_DAYS)
    return days[0] + timedelta(days=first - 1), min(days[0] + timedelta(days=last), days[1])


def _half(match: _Match, context: DateContext) -> Days | None:
    days = _period(match, context)
    if days is None:
        return None
    length = (days[1] - days[0]).days
    middle = days[0] + timedelta(days=length // 2)
    return (days[0], middle) if match["half"] in ("first", "1st") else (middle, days[1])


def _nth_part(match: _Match, context: DateContext) -> Days | None:
    days = _period(match, context)
    if days is None:
        return None
    is_last = match["nth"] in _LAST
    position = 1 if is_last else _ORDINALS[match["nth"]] if match["nth"] in _ORDINALS else int(match["nth"][0])
    unit, count_text, is_plural = match["part"], match["count"], bool(match["plural"])
    if unit == "weekend" or unit in DAY_NAMES:
        return _nth_days(days, unit, -1 if is_last else position)
    length = 7 if unit == "week" else 1
    if count_text:
        length *= sum(count_of(count_text))
    elif is_plural:
        length = _SOME_DAYS if unit == "day" else 2 * length
    if is_last:
        return max(days[0], days[1] - timedelta(days=length)), days[1]
    first = days[0] + timedelta(days=0 if count_text or is_plural else (position - 1) * length)
    return first, min(first + timedelta(days=length), days[1])


def _nth_days(days: Days, name: str, position: int) -> Days:
    """The n-th weekend or weekday that begins in a period, -1: the last."""
    wanted = DAY_NAMES.index("saturday" if name == "weekend" else name)
    if position < 0:
        last = days[1] - timedelta(days=1)
        first = last - timedelta(days=(last.weekday() - wanted) % 7)
    else:
        first = days[0] + timedelta(days=(wanted - days[0].weekday()) % 7 + 7 * (position - 1))
    if first >= days[1]:
        raise ValueError(f"the period has no {name} number {position}")
    return whole_day(first, 2 if name == "weekend" else 1)


def _ordinal_day(match: _Match, context: DateContext) -> Days | None:
    """ "The first of October"."""
    month = _month(match["month"], match["month_year"], context)
    return whole_day(month[0].replace(day=_ORDINALS[match["ordinal"].replace(" ", "-")])) if month else None


def _days_of_month(match: _Match, context: DateContext) -> Days | None:
    return days_of_month(int(match["day"]), int(match["last"]), context)


def _day_of_relative_month(match: _Match, context: DateContext) -> Days | None:
    month = _relative(match["relative"], match["unit"], context)
    return whole_day(month[0].replace(day=int(match["day"]))) if month else None


def _whole_month(match: _Match, context: DateContext) -> Days | None:
    return _month(match["month"], match["month_year"], context)


def _season(match: _Match, context: DateContext) -> Days | None:
    return _season_days(match["season"], None, context)


def _this_season(match: _Match, context: DateContext) -> Days | None:
    return _this(match["unit"], context) if context.today else None


def _this_weekday(match: _Match, context: DateContext) -> Days | None:
    """ "This Monday" in the past tense is the last Monday, today included."""
    if context.today is None or context.tense >= 0:
        return None
    back = (context.today.weekday() - DAY_NAMES.index(match["weekday"])) % 7
    return whole_day(context.today - timedelta(days=back))


def _before_last(match: _Match, context: DateContext) -> Days | None:
    today, unit, way = context.today, match["unit"], -1 if match["way"].startswith("before") else 1
    if today is None:
        return None
    if unit in ("week", "weekend"):
        return (whole_week if unit == "week" else whole_weekend)(today, 2 * way)
    if unit == "night":
        return whole_day(today + timedelta(days=2 * way))
    if unit == "month":
        return whole_month(today.year, today.month + 2 * way)
    if unit == "year":
        return whole_year(today.year + 2 * way)
    near = stretch(unit, way, context)
    if near is None:
        return None
    if unit in DAY_NAMES:
        return near[0] + timedelta(days=7 * way), near[1] + timedelta(days=7 * way)
    return whole_month(near[0].year + way, near[0].month, 3)


def _other_day(match: _Match, context: DateContext) -> Days | None:
    today = context.today
    return (today - timedelta(days=_OTHER_DAYS[match["unit"]]), today) if today else None


def _rolling(match: _Match, context: DateContext) -> Days | None:
    """ "Over the last week": up to and including today."""
    if context.today is None:
        return None
    length = {"day": 1, "week": 7, "fortnight": 14, "month": 30, "year": 365}[match["unit"]]
    return context.today - timedelta(days=length), context.today + timedelta(days=1)


def _feast(match: _Match, context: DateContext) -> Days | None:
    days_in = next(days for number, days in enumerate(_FEAST_DAYS) if match[f"feast{number}"])
    if match["feast_year"]:
        return days_in(int(match["feast_year"]))
    today, word = context.today, match["which"]
    if today is None or word is None:
        return _of_years(days_in, context)
    options = [days_in(today.year + years) for years in (-2, -1, 0, 1, 2)]
    if word in ("last", "past", "previous"):
        return [days for days in options if days[1] <= today][-1]
    if word in ("next", "coming"):
        return next(days for days in options if days[0] > today)
    return days_in(today.year)


_NAMED_TIMES: dict[str, tuple[str, Callable[[_Match, DateContext], Days | None]]] = {
    "early_mid_late": (rf"(?P<time>(?P<third>early|late|mid)[\s-](?:of\s)?{_PERIOD})", _third),
    "beginning_middle_end": (
        rf"(?P<time>(?P<third>beginning|start|middle|end|close)\sof\s{_PERIOD})",
        _third,
    ),
    "half": (rf"(?P<time>(?P<half>first|1st|second|2nd|other|latter|last)\shalf\s(?:of|in)\s{_PERIOD})", _half),
    "nth_part": (
        rf"(?P<time>(?P<nth>{_NTH})\s(?:(?:full|whole)\s)?(?:(?P<count>{COUNT})\s)?(?P<part>weekend|week|day|{DAY_NAME})(?P<plural>s)?"
        rf"\s(?:of|in)\s{_PERIOD})",
        _nth_part,
    ),
    "ordinal_day": (
        rf"(?P<time>(?P<ordinal>{_ORDINAL})\s(?:day\s)?of\s(?P<month>{MONTH})(?:,?\s(?:of\s)?(?P<month_year>{YEAR}))?)",
        _ordinal_day,
    ),
    "day_of_this_month": (
        rf"(?P<time>{_DAY_NUMBER}\sof\s(?P<relative>the|this|last|next)\s(?P<unit>month))\b",
        _day_of_relative_month,
    ),
    "days_of_month": (
        rf"(?:between|from)\sthe\s(?P<time>{_DAY_NUMBER}\s(?:and|to|until|till)\s(?:the\s)?(?P<last>[0-9]{{1,2}})(?:st|nd|rd|th))"
        rf"{ENDS_PHRASE}(?!\sof\b)",
        _days_of_month,
    ),
    "month": (
        rf"(?:of|around|throughout|between)\s(?P<time>(?P<month>{MONTH})(?:,?\s(?P<month_year>{YEAR})|{_NO_DAY}))",
        _whole_month,
    ),
    "second_month": (
        rf"(?:in|since|during|of|between|from|around|early|late|mid)[\s-]{MONTH}(?:\s{YEAR})?\s"
        r"(?:and|or|to|until|till|through)\s"
        rf"(?P<time>(?P<month>{MONTH})(?:,?\s(?P<month_year>{YEAR})|{_NO_DAY}))",
        _whole_month,
    ),
    "season": (
        r"(?:in|during|over|since|until|till|before|for|from|through|throughout|by|around|this\spast|to)\s(?:the\s)?"
        rf"(?P<time>(?P<season>{SEASON})){ENDS_PHRASE}(?!\s(?:of|in)\s(?:1[89]|20)[0-9])",
        _season,
    ),
    "this_season": (rf"(?P<time>this\s(?P<unit>{SEASON}|(?!may|mar){MONTH})){_NO_DAY}", _this_season),
    "this_weekday": (rf"(?P<time>this\s(?P<weekday>{DAY_NAME}))\b", _this_weekday),
    "before_last": (
        rf"(?P<time>(?P<unit>weekend|week|month|year|night|{DAY_NAME}|{SEASON})\s(?P<way>before\slast|after\snext))\b"
        rf"(?!\s(?:weekend|week|month|year|night|{DAY_NAME}|{SEASON}|{MONTH}|christmas|easter|new\syear))",
        _before_last,
    ),
    "other_day": (rf"(?P<time>the\sother\s(?P<unit>{'|'.join(_OTHER_DAYS)}))\b(?!\sof\b)", _other_day),
    "rolling": (
        r"(?:over|in|within|during|for)\sthe\s(?P<time>last\s(?P<unit>day|week|fortnight|month|year))\b(?!\s(?:of|in)\b)",
        _rolling,
    ),
    "feast": (
        rf"(?<!merry\s)(?<!happy\s)(?P<time>(?:(?P<which>last|past|previous|this|next|coming)\s)?(?:{_FEAST})"
        rf"(?:,?\s(?:of\s|in\s)?(?P<feast_year>{YEAR}))?){ENDS_PHRASE}",
        _feast,
    ),
}
"""Name, pattern and resolver. The group ``time`` is the phrase itself, without the words before it."""
_COMPILED = [
    (re.compile(rf"\b(?:{pattern})", re.VERBOSE | re.ASCII), resolver) for pattern, resolver in _NAMED_TIMES.values()
]
_WEEKDAY_OF_DATE = re.compile(rf"\b(?P<weekday>{SHORT_DAY})[.,]?\s(?:the\s)?", re.ASCII)
""" "Monday 7 October": one date, not two."""
_WEEK_OF_DATE = re.compile(
    r"\b(?P<unit>weekend|week)\s(?P<way>of|around|beginning|starting|commencing|from)\s(?:the\s)?", re.ASCII
)
""" "The weekend of 4 May"."""
_MAX_DAYS = 4
"""Longest date, in days, that a week or a weekend can be named after: Easter."""
_NEAR_YEARS = 6
"""After at most six years, a date falls on each weekday again, unless a leap day skips it."""


def named_times(text: str, context: DateContext, dates: list[PlacedDate]) -> list[PlacedDate]:
    """Return the named times of ``text`` with their positions.

    ``text`` is in lower case with single spaces; ``dates`` are those that :func:`placed_dates` finds in it.
    """
    times: list[PlacedDate] = []
    for pattern, resolve in _COMPILED:
        for match in pattern.finditer(text):
            try:
                days = resolve(match, context)
                if days is not None and days[0] < days[1]:
                    times.append((match.start("time"), context.time_range(days, match["time"])))
            except (ValueError, OverflowError, IndexError):  # 31 April, a fifth Monday, a day before year 1
                continue
    at_place = {at: time for at, time in sorted([*dates, *times], key=lambda pair: len(pair[1].text))}
    for compose, pattern in ((_with_weekday, _WEEKDAY_OF_DATE), (_week_of, _WEEK_OF_DATE)):
        for match in pattern.finditer(text):
            time = at_place.get(match.end())
            try:
                days = compose(match, time, context) if time else None
                if time and days:
                    phrase = text[match.start() : match.end() + len(time.text)]
                    at_place[match.start()] = context.time_range(days, phrase)
                    times.append((match.start(), at_place[match.start()]))
            except (ValueError, OverflowError):
                continue
    return times


def _days_of(time: TimeRange, context: DateContext) -> Days:
    return time.start.astimezone(context.zone).date(), time.end.astimezone(context.zone).date()


def _with_weekday(match: _Match, time: TimeRange, context: DateContext) -> Days | None:
    """The date, if it is a day. Without a year: in the last (or next) year in which it is this weekday."""
    days = _days_of(time, context)
    if not any(char.isdigit() for char in time.text) or days[1] - days[0] != timedelta(days=1):
        return None
    wanted = next(number for number, name in enumerate(DAY_NAMES) if name[:3] == match["weekday"][:3])
    if re.search("[0-9]{4}", time.text) or not re.search("[a-z]{3}", time.text):
        return days
    step = 1 if context.direction > 0 else -1
    for year in range(days[0].year, days[0].year + step * (_NEAR_YEARS + 1), step):
        if days[0].day > monthrange(year, days[0].month)[1]:
            continue  # 29 February
        day = days[0].replace(year=year)
        if day.weekday() == wanted:
            return whole_day(day)
    return days


def _week_of(match: _Match, time: TimeRange, context: DateContext) -> Days | None:
    days = _days_of(time, context)
    if (days[1] - days[0]).days > _MAX_DAYS:
        return None
    middle = days[0] + (days[1] - days[0]) // 2
    if match["unit"] == "weekend":
        return whole_weekend(middle)
    return whole_week(middle) if match["way"] in ("of", "around") else whole_day(days[0], 7)
