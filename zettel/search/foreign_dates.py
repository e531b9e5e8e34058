"""Dates in languages other than English: European ones by a table, other scripts by dateparser."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, datetime
from threading import Lock

from zettel.model import TimeRange
from zettel.text.days import DateContext, Days, whole_day, whole_month, whole_week, whole_year

_MONTHS = (
    "janvier|enero|januar|gennaio|janeiro|januari|январ|січ(?:ень|н[яі])|ιανου[άα]ρ[ιί]",
    "f[ée]vrier|febrero|februar|febbraio|fevereiro|februari|феврал|лют(?:ий|ого|ому|ім)|φεβρου[άα]ρ[ιί]",
    "mars|marzo|m[äa]rz|março|maart|март|берез(?:ень|н[яі])|μ[άα]ρτ[ιί]",
    "avril|abril|aprile|апрел|квіт(?:ень|н[яі])|απρ[ίι]λ[ιί]",
    "mai|mayo|maggio|maio|mei|ма[йяе]|трав(?:ень|н[яі])|μ[άα][ιϊΐ]",
    "juin|junio|juni|giugno|junho|июн|черв(?:ень|н[яі])|ιο[ύυ]ν[ιί]",
    "juillet|julio|juli|luglio|julho|июл|лип(?:ень|н[яі])|ιο[ύυ]λ[ιί]",
    "ao[ûu]t|agosto|augustus|август|серп(?:ень|н[яі])|α[ύυ]γο[ύυ]στ",
    "septembre|sep?tiembre|settembre|setembro|сентябр|верес(?:ень|н[яі])|σεπτ[έε]μβρ[ιί]",
    "octobre|octubre|oktober|ottobre|outubro|октябр|жовт(?:ень|н[яі])|οκτ[ώω]βρ[ιί]",
    "novembre|noviembre|novembro|ноябр|листопад|νο[έε]μβρ[ιί]",
    "d[ée]cembre|diciembre|dezember|dicembre|dezembro|декабр|груд(?:ень|н[яі])|δεκ[έε]μβρ[ιί]",
)
"""Patterns of month names. They match only next to a day or a year."""
_DATE = re.compile(
    r"(?:\b(?P<day>[12]?\d|3[01])(?:\.|º|er)?\s+(?:de\s+)?)?\b(?:"
    + "|".join(f"(?P<m{number}>{names})" for number, names in enumerate(_MONTHS, 1))
    + r")[а-яα-ω]{0,2}\b(?:\s+(?:del?\s+|του\s+)?(?P<year>(?:1[89]|20)\d\d)\b)?",
    re.IGNORECASE,
)
_LETTER = re.compile(r"[\u0370-\u1fff]")
"""A letter of a script other than Latin, Han and Kana, whose dates need no dictionary: from Greek up to punctuation."""
_NUMBER = re.compile(r"\d")
_YEARS = range(1800, 2100)
"""Plausible years. Other numbers are not years."""
_BETWEEN_LEAPS = 8
"""Longest distance between leap days, in years."""
_NO_DAY = datetime(2000, 1, 1)
"""Completes partial dates if today is unknown. Otherwise dateparser would use the clock."""
_dateparser_lock = Lock()
"""dateparser's search shares the detected language between threads."""


def foreign_dates(text: str, today: datetime | None) -> list[tuple[int, TimeRange]]:
    """Dates with their places in the text. A day without a year is the last such day."""
    context = DateContext(text, today)
    return _by_table(text, context) or _by_dateparser(text, context)


def _by_table(text: str, context: DateContext) -> list[tuple[int, TimeRange]]:
    dates = []
    for match in _DATE.finditer(text):
        try:
            days = _days_of(match, context.today)
            if days is not None:
                dates.append((match.start(), context.time_range(days, match.group())))
        except (ValueError, OverflowError):  # 31 April
            continue
    return dates


def _days_of(match: re.Match[str], today: date | None) -> Days | None:
    month = next(number for number in range(1, 13) if match[f"m{number}"])
    day = int(match["day"] or 0)
    if match["year"]:
        year = int(match["year"])
        return whole_day(date(year, month, day)) if day else whole_month(year, month)
    if not day or today is None:
        return None
    years = range(today.year, max(today.year - 1 - _BETWEEN_LEAPS, 0), -1)
    dates = (date(year, month, day) for year in years if day <= monthrange(year, month)[1])
    last = next((start for start in dates if start <= today), None)
    return whole_day(last) if last else None


def _by_dateparser(text: str, context: DateContext) -> list[tuple[int, TimeRange]]:
    """Takes tens of milliseconds, and a second the first time."""
    if not (_NUMBER.search(text) and _LETTER.search(text)):
        return []
    from dateparser import DateDataParser
    from dateparser.search import search_dates

    settings = (
        {"RELATIVE_BASE": context.anchor.replace(tzinfo=None)}
        if context.anchor
        else {"RELATIVE_BASE": _NO_DAY, "REQUIRE_PARTS": ["year"], "PARSERS": ["absolute-time"]}
    )
    with _dateparser_lock:
        phrases = [phrase for phrase, _ in search_dates(text, settings=settings) or ()]
        parsed = [DateDataParser(settings=settings).get_date_data(phrase) for phrase in phrases]
    dates = []
    place = 0
    for phrase, data in zip(phrases, parsed, strict=True):
        at = text.find(phrase, place)
        # A number alone is a year, which needs no dictionary, or not a date.
        if at < 0 or not (_NUMBER.search(phrase) and _LETTER.search(phrase)):
            continue
        place = at + len(phrase)
        if data.date_obj is not None and data.date_obj.year in _YEARS:
            dates.append((at, context.time_range(_period(data.date_obj.date(), data.period), phrase)))
    return dates


def _period(day: date, period: str) -> Days:
    """The whole year, month, week or day of which dateparser returns one day."""
    if period == "year":
        return whole_year(day.year)
    if period == "month":
        return whole_month(day.year, day.month)
    return whole_week(day) if period == "week" else whole_day(day)
