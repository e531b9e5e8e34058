"""Dates that a question names in other languages than English: of Europe by a table, of other scripts by dateparser."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, datetime
from threading import Lock

from zettel.annotate.days import Days, Reading, whole_day, whole_month, whole_week, whole_year
from zettel.ports import TimeRange

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
"""Month names, or their beginnings; they count only beside a day or a year."""
_DATE = re.compile(
    r"(?:\b(?P<day>[12]?\d|3[01])(?:\.|º|er)?\s+(?:de\s+)?)?\b(?:"
    + "|".join(f"(?P<m{number}>{names})" for number, names in enumerate(_MONTHS, 1))
    + r")[а-яα-ω]{0,2}\b(?:\s+(?:del?\s+|του\s+)?(?P<year>(?:1[89]|20)\d\d)\b)?",
    re.IGNORECASE,
)
_LETTER = re.compile(r"[\u0370-\u1fff]")
"""Of a script other than Latin, Han and Kana, whose dates need no dictionary: from Greek on, before the punctuation."""
_NUMBER = re.compile(r"\d")
_YEARS = range(1800, 2100)
"""Years that people ask for: others were a number of something else."""
_BETWEEN_LEAPS = 8
"""Most years from one 29 February to the next."""
_NO_DAY = datetime(2000, 1, 1)
"""Fills what a date leaves out where nobody knows what day it is, so that this machine's clock does not."""
_one_by_one = Lock()
"""dateparser's search keeps the language that it found in one place for all threads."""


def foreign_dates(text: str, today: datetime | None) -> list[tuple[int, TimeRange]]:
    """Dates with the places where they begin; a day without a year is the last such day."""
    reading = Reading(text, today)
    return _named(text, reading) or _looked_up(text, reading)


def _named(text: str, reading: Reading) -> list[tuple[int, TimeRange]]:
    found = []
    for match in _DATE.finditer(text):
        try:
            days = _days_of(match, reading.today)
            if days is not None:
                found.append((match.start(), reading.stretch(days, match.group())))
        except (ValueError, OverflowError):  # 31 April
            continue
    return found


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


def _looked_up(text: str, reading: Reading) -> list[tuple[int, TimeRange]]:
    """By dateparser: it takes tens of milliseconds, and a second the first time."""
    if not (_NUMBER.search(text) and _LETTER.search(text)):
        return []
    from dateparser import DateDataParser
    from dateparser.search import search_dates

    settings = (
        {"RELATIVE_BASE": reading.anchor.replace(tzinfo=None)}
        if reading.anchor
        else {"RELATIVE_BASE": _NO_DAY, "REQUIRE_PARTS": ["year"], "PARSERS": ["absolute-time"]}
    )
    with _one_by_one:
        phrases = [phrase for phrase, _ in search_dates(text, settings=settings) or ()]
        read = [DateDataParser(settings=settings).get_date_data(phrase) for phrase in phrases]
    found = []
    place = 0
    for phrase, told in zip(phrases, read, strict=True):
        at = text.find(phrase, place)
        # A number alone is a year, which needs no dictionary, or no date.
        if at < 0 or not (_NUMBER.search(phrase) and _LETTER.search(phrase)):
            continue
        place = at + len(phrase)
        if told.date_obj is not None and told.date_obj.year in _YEARS:
            found.append((at, reading.stretch(_whole(told.date_obj.date(), told.period), phrase)))
    return found


def _whole(day: date, period: str) -> Days:
    """All of the year, month, week or day that dateparser found, of which it gives one day."""
    if period == "year":
        return whole_year(day.year)
    if period == "month":
        return whole_month(day.year, day.month)
    return whole_week(day) if period == "week" else whole_day(day)
