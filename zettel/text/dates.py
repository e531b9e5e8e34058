"""Finds absolute and relative dates in a text: "5 May", "last Saturday", "two weeks ago".

English, and common numeric forms (2024-05-01, 01.05.2024, 2024年5月1日, 3. September). One regular expression finds
them, and whole days are computed in the anchor's time zone. Weeks begin on Monday, seasons are those of the northern
hemisphere, and 3/4/2024 is 4 March unless only the other order is a date. "May" alone is a month only after a word
such as "in" or "last".
"""

from __future__ import annotations

import re
from datetime import datetime
from itertools import islice

from zettel.model import TimeRange
from zettel.text.days import DAY_NAMES, RESOLVERS, DateContext
from zettel.text.stopwords import ENGLISH

MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)(?![a-z])\.?"
)
DAY_NAME = "(?:" + "|".join(DAY_NAMES) + ")"
SEASON = "(?:spring|summer|autumn|fall|winter)"
YEAR = r"(?:1[89]|20)[0-9]{2}(?![0-9])"
_DAY = r"(?:3[01]|[12][0-9]|0?[1-9])(?:st|nd|rd|th)?"
_DAY_ENDS = r"(?![\w:%]|[.,][0-9])"
_GERMAN_DOT = r"(?:\.(?=\s(?:april|august|september|november)\b))?"
"""After the day, before the months that have the same name in both languages."""
SHORT_DAY = r"(?:mon|tues?|wed(?:nes|s)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
_DAY_LEADS = rf"on|since|until|till|before|after|by|from|around|about|for|and|to|between|of|{SHORT_DAY}"
""" "On the 3rd" is a day, "the 3rd attempt" is not."""
ENDS_PHRASE = rf"(?=\s?(?:$|[^\w\s'\u2019-])|\s(?:{'|'.join(sorted(ENGLISH))}|discuss|talk|mention)\b)"
"""The end of a noun phrase: "at Christmas", but not "the Christmas tree"."""
_TO_DAY = r"(?:\s?(?:-|\u2013|to|until)\s?"
COUNT = (
    r"(?:an?\scouple(?:\sof)?|couple(?:\sof)?|a\sfew|few|several|an?|one|two|three|four|five|six|seven|eight|nine|ten"
    r"|eleven|twelve|[0-9]{1,3})"
)
"""Counts that :func:`zettel.text.days.count_of` parses."""
_UNIT = r"(?:hour|day|weekend|week|fortnight|month|year)"
_NOT_A_YEAR = (
    r"(?![-/:%]?[0-9]|\s?[\u5e74\ub144]|[.,][0-9]|%|\s(?:people|persons|dollars|euros|pounds|meters|metres|feet|miles|km|kg|mb|gb|calories"
    r"|words|steps|points|pieces|followers|members|times|hours|days|pages)\b)"
)

# Each branch begins with its possible first letters, so most words fail at once.
_DATES = re.compile(
    rf"""\b(?:(?=[0-9])(?<![0-9][-/.])(?:
    (?P<iso>(?P<iso_y>(?:1[89]|20)[0-9]{{2}})(?P<iso_s>[-/])(?P<iso_m>1[0-2]|0?[1-9])
        (?:(?P=iso_s)(?P<iso_d>3[01]|[12][0-9]|0?[1-9]))?(?![0-9]|[-/][0-9]))
  | (?P<numeric>(?P<num_a>[0-9]{{1,2}})(?P<num_s>[/.])(?P<num_b>[0-9]{{1,2}})(?P=num_s)(?P<num_y>{YEAR})(?![./][0-9]))
  | (?P<day_month>(?P<dm_d>{_DAY}){_TO_DAY}(?P<dm_e>{_DAY}))?{_GERMAN_DOT}\s?(?:of\s)?
        (?P<dm_m>{MONTH})(?:,?\s(?:of\s)?(?P<dm_y>{YEAR}))?)
  | (?P<slashed>(?P<sl_d>1[3-9]|2[0-9]|3[01])/(?P<sl_m>0[1-9]|1[0-2])(?![0-9]|[/.,%][0-9]))
  | (?P<decade>(?P<de_y>(?:1[89]|20)?[0-9]0)'?s)\b
  | (?<![-$\u20ac\u00a3\#./:,+])(?P<years>(?P<ys_a>{YEAR})(?:\s?[-\u2013]\s?(?P<ys_b>{YEAR}))?){_NOT_A_YEAR})
  | (?=[jfmasond])(?:
    (?P<month_day>(?P<md_m>{MONTH})\s(?:the\s)?(?P<md_d>{_DAY})
        {_TO_DAY}(?P<md_e>{_DAY}){_DAY_ENDS})?{_DAY_ENDS}(?:,?\s(?P<md_y>{YEAR}))?)
  | (?P<month_year>(?P<my_m>{MONTH}),?\s(?:of\s)?(?P<my_y>{YEAR})))
  | (?=[safw])(?P<season>(?P<se_n>{SEASON})\s(?:of\s|in\s)?(?P<se_y>{YEAR}))
  | (?=[lpncf])(?:
    (?P<span>(?P<sp_w>last|past|next|coming)\s(?P<sp_c>{COUNT})\s(?P<sp_u>{_UNIT})s?
        |past\s(?P<sp_p>hour|day|week|fortnight|month|year))\b
  | (?P<shift>(?P<sh_w>last|past|previous|next|coming|following)\s
        (?P<sh_u>night|weekend|week|month|year|{DAY_NAME}|{SEASON}|{MONTH}))\b)
  | (?=[0-9acfsoten])(?P<ago>(?P<ag_c>{COUNT})\s(?P<ag_u>{_UNIT}|{DAY_NAME})s?\s(?P<ag_w>ago|back|later|from\snow))\b
  | (?=[it])(?:
    (?P<current>this\s(?P<cu_u>morning|afternoon|evening|weekend|week|month|year|{DAY_NAME}|{SEASON}))\b
  | (?P<within>in\s(?P<wi_c>{COUNT})\s(?P<wi_u>{_UNIT})s?)\b(?!'|\sof))
  | (?=[dty])(?P<near>day\s(?:before\syesterday|after\stomorrow)|yesterday|today|tonight|tomorrow)\b
  | (?=[isutdbaflemr])(?:in|since|until|till|during|by|before|after|for|from|through|early|late|mid
        |(?:end|start|beginning|middle|rest)\sof)[\s-]
        (?:early\s|late\s|mid[\s-])?(?P<month>(?P<mo_m>{MONTH}))(?!,?\s(?:the\s|of\s)?[0-9])
  | (?=[osutbafmw])(?:{_DAY_LEADS}),?\sthe\s(?P<day_of_month>[0-9]{{1,2}}(?:st|nd|rd|th))
        {ENDS_PHRASE}(?!\s(?:of\b|{MONTH}|(?:to|until|till)\s(?:the\s)?[0-9]))
  | (?=[jfsond])(?P<plain_month>january|february|july|september|october|november|december)\b
  | (?=[mtwfs])(?P<weekday>{DAY_NAME})\b
    )""",
    re.VERBOSE | re.ASCII,
)
_HINTS = (
    "day week month year night tomorrow morning evening afternoon hour fall spring summer autumn winter jan feb mar apr"
    " may jun jul aug sep oct nov dec"
).split()
"""Every date contains one of these, or a digit; this check takes a tenth of the pattern's time."""
_DIGIT = re.compile("[0-9]")
MAX_DATES = 10_000
"""Dates of a text that are found."""
_IDEOGRAPHIC = re.compile(
    "(?P<ideographic>(?:(?P<y>[0-9]{4})\\s?[年년]\\s?)(?:(?P<m>1[0-2]|0?[1-9])\\s?[月월]\\s?"
    "(?:(?P<d>3[01]|[12][0-9]|0?[1-9])\\s?[日일号號])?)?"
    "|(?P<only_m>1[0-2]|0?[1-9])\\s?[月월]\\s?(?P<only_d>3[01]|[12][0-9]|0?[1-9])\\s?[日일号號])"
)
_IDEOGRAPHS = re.compile("[年년月월]")


def find_dates(text: str, anchor: datetime | None) -> list[TimeRange]:
    """Return the time ranges that ``text`` names, in order of the text; UTC, ends not included.

    ``anchor`` is the time of the text, and days are in its time zone (default UTC). Without an anchor, only dates with
    a year are found. A day or month without a year is the last or next one if the words around it indicate past or
    future (:mod:`zettel.text.direction`), else the nearest one.
    """
    return [time for _, time in placed_dates(text, anchor)]


def placed_dates(text: str, anchor: datetime | None, *, direction: int | None = None) -> list[tuple[int, TimeRange]]:
    """Return the same, each with its position in ``text``.

    ``direction`` replaces the direction by the words around each date: -1 for the past, 1 for the future, 0 for the
    nearest date.
    """
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters grow when lowered, and spans must fit the text
        lowered = text
    if not _may_name_date(lowered):
        return []
    context = DateContext(lowered, anchor, direction)
    named = [(match, match.lastgroup or "") for match in islice(_DATES.finditer(lowered), MAX_DATES)]
    if not lowered.isascii() and _IDEOGRAPHS.search(lowered):
        named += [(match, "ideographic") for match in islice(_IDEOGRAPHIC.finditer(lowered), MAX_DATES)]
        named.sort(key=lambda pair: pair[0].start())
    dates = []
    for match, group in named:
        try:
            days = RESOLVERS[group](match, context)
            if days is not None and days[0] < days[1]:
                start, end = match.span(group)
                dates.append((start, context.time_range(days, text[start:end])))
        except (ValueError, OverflowError):  # 31 April, or a day before year 1
            continue
    return dates


def _may_name_date(lowered: str) -> bool:
    for hint in _HINTS:
        if hint in lowered:
            return True
    return bool(_DIGIT.search(lowered))
