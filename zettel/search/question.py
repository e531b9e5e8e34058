"""A question taken apart: its tokens, the names and dates in it, and which day is today for it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import TYPE_CHECKING

from zettel.annotate.background import background_rarity
from zettel.annotate.dates import find_dates
from zettel.annotate.days import DAY_NAMES
from zettel.annotate.tokens import UNSPACED, phrase_key, tokenize
from zettel.model import TIME_MAX, TIME_MIN, from_micros, in_utc, to_micros
from zettel.ports import TimeRange
from zettel.query import Question

if TYPE_CHECKING:
    from zettel.query import Floats

NAME_WORDS = 8
"""Longest phrase, in words, that is looked up as a Term or a title."""
NAME_CHARACTERS = 8
"""The same for scripts without spaces, in characters."""
READ_WORDS = 256
"""Words of a question that are searched for names: beyond it a document was pasted, and it names everything."""
MAX_TOKENS = 128
"""Distinct tokens that are asked for; of a longer question the rarest count."""

_UNSPACED_RUN = re.compile(f"[{UNSPACED}]{{2,}}")
_DAY = 86_400_000_000
"""Microseconds."""
_UNIT_DAYS = {"day": 1, "week": 7, "fortnight": 14, "month": 30, "year": 365}
_COUNTS = ("a", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_BEFORE = ("before", "prior to", "earlier than", "preceding")
_UNTIL = ("until", "till", "by", "no later than")
_AFTER = ("after", "following", "later than")
_RELATION = re.compile(
    rf"\b(?:(?:(?P<count>{'|'.join(_COUNTS)}|[0-9]{{1,3}})\s+)?(?P<unit>{'|'.join(_UNIT_DAYS)})s?\s+"
    rf"|(?P<day>{'|'.join(DAY_NAMES)}|weekend)\s+)?(?P<word>{'|'.join((*_BEFORE, *_UNTIL, *_AFTER, 'since'))})"
    r"\s+(?:the\s+)?(?:(?:end|start|beginning)\s+of\s+)?$",
    re.IGNORECASE,
)
_LEADS = re.compile(rf"\s+(?:{'|'.join(_BEFORE + _AFTER)})\s+(?:the\s+)?", re.IGNORECASE)
_SHARED_YEAR = re.compile(
    r"\b(?P<start>(?:between|from)\s+)(?P<month>[a-z]{3,9})(?P<rest>\s+(?:and|to|until|till)\s+[a-z]{3,9},?\s+(?P<year>[12][0-9]{3}))\b",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\b(?:between|from)\s+(?:the\s+)?$", re.IGNORECASE)
_AND = re.compile(r"\s*(?:and|to|until|till|-|–)\s+(?:the\s+)?", re.IGNORECASE)
_FOREIGN_MONTHS = (
    "janvier|enero|januar|gennaio|janeiro|januari|январ",
    "f[ée]vrier|febrero|februar|febbraio|fevereiro|februari|феврал",
    "mars|marzo|m[äa]rz|março|maart|март",
    "avril|abril|aprile|апрел",
    "mai|mayo|maggio|maio|mei|ма[йяе]",
    "juin|junio|juni|giugno|junho|июн",
    "juillet|julio|juli|luglio|julho|июл",
    "ao[ûu]t|agosto|augustus|август",
    "septembre|sep?tiembre|settembre|setembro|сентябр",
    "octobre|octubre|oktober|ottobre|outubro|октябр",
    "novembre|noviembre|novembro|ноябр",
    "d[ée]cembre|diciembre|dezember|dicembre|dezembro|декабр",
)
"""Month names, or their beginnings, of other languages; they count only beside a day or a year."""
_FOREIGN_DATE = re.compile(
    r"(?:\b(?P<day>[12]?\d|3[01])(?:\.|º|er)?\s+(?:de\s+)?)?\b(?:"
    + "|".join(f"(?P<m{number}>{names})" for number, names in enumerate(_FOREIGN_MONTHS, 1))
    + r")[а-я]{0,2}\b(?:\s+(?:del?\s+)?(?P<year>(?:1[89]|20)\d\d)\b)?",
    re.IGNORECASE,
)
_FOREIGN_LETTER = re.compile(r"[\u0370-\u2fff]")  # neither Latin nor Han and Kana, whose dates need no dictionary
_NUMBER = re.compile(r"\d")


def parse_question(text: str, *, vector: Floats | None, today: int | None) -> Question:
    """Take ``text`` apart.

    ``vector`` is its unit row, ``today`` (microseconds; None or TIME_MIN: nobody knows) what relative dates count from.
    """
    today = None if today == TIME_MIN else today
    tokens = tuple(dict.fromkeys(tokenize(text)))
    rarity = background_rarity(tokens)
    if len(tokens) > MAX_TOKENS:
        kept = sorted(sorted(range(len(tokens)), key=lambda i: -rarity[i])[:MAX_TOKENS])
        tokens, rarity = tuple(tokens[i] for i in kept), rarity[kept]
    return Question(
        text=text,
        tokens=tokens,
        rarity=rarity,
        names=names_in(text),
        times=times_in(text, None if today is None else from_micros(today)),
        vector=vector,
        today=today,
    )


def names_in(text: str) -> tuple[str, ...]:
    """Normal forms of all phrases that may be a Term or a title.

    Names and titles go by :func:`phrase_key`, keyword Terms by their tokens, alone and in pairs.
    """
    words = phrase_key(text).split()[:READ_WORDS]
    phrases = (
        " ".join(words[start:end])
        for start in range(len(words))
        for end in range(start + 1, min(start + NAME_WORDS, len(words)) + 1)
    )
    runs = (run for word in words for run in _UNSPACED_RUN.findall(word))
    pieces = (
        run[start:end]
        for run in runs
        for start in range(min(len(run), READ_WORDS))
        for end in range(start + 2, min(start + NAME_CHARACTERS, len(run)) + 1)
    )
    tokens = tokenize(text)[:READ_WORDS]
    pairs = (f"{first} {second}" for first, second in pairwise(tokens))
    return tuple(dict.fromkeys([*phrases, *pieces, *tokens, *pairs]))


def times_in(text: str, today: datetime | None) -> tuple[tuple[int, int], ...]:
    """Stretches of time that ``text`` asks for, as microseconds, ends not included.

    "Before X" and "after X" are open stretches, "the week before X" is the one that ends with it, "between X and Y"
    holds both.
    """
    text = _SHARED_YEAR.sub(_with_year, text)
    found = _foreign_dates(text, today) or find_dates(text, today) or _learned_dates(text, today)
    times: list[tuple[int, int]] = []
    place = 0
    joined = False
    for position, time in enumerate(found):
        at = text.find(time.text, place)
        at = at if at >= 0 else place
        before, place = text[:at], at + len(time.text)
        if time.text.lower() in DAY_NAMES and position + 1 < len(found):
            leads = _LEADS.match(text, place)
            if leads and text.startswith(found[position + 1].text, leads.end()):
                continue  # "the Friday before 22 October": one date, not two
        start, end = to_micros(time.start), to_micros(time.end)
        if joined:
            times[-1] = (min(times[-1][0], start), max(times[-1][1], end))
        else:
            times.append(_related(before, start, end))
        joined = (
            not joined
            and position + 1 < len(found)
            and _BETWEEN.search(before) is not None
            and _AND.match(text, place) is not None
        )
    return tuple(dict.fromkeys(times))


def _with_year(between: re.Match[str]) -> str:
    """ "Between May and July 2023" with the year said twice, if the first word is a month."""
    month = f"{between['month']} {between['year']}"
    return between["start"] + month + between["rest"] if find_dates(month, None) else between.group()


def _related(before: str, start: int, end: int) -> tuple[int, int]:
    """The stretch that a date stands for, given the words in front of it."""
    relation = _RELATION.search(before)
    if relation is None:
        return start, end
    word = " ".join(relation["word"].lower().split())
    if relation["day"] and word in _BEFORE + _AFTER:
        return _weekday_near(relation["day"].lower(), start if word in _BEFORE else end, earlier=word in _BEFORE)
    if relation["unit"] and word in _BEFORE + _AFTER:
        count = (relation["count"] or "a").lower()
        units = _COUNTS.index(count) + 1 if count in _COUNTS else int(count)
        stretch = units * _UNIT_DAYS[relation["unit"].lower()] * _DAY
        return (start - stretch, start) if word in _BEFORE else (end, end + stretch)
    if word in _BEFORE:
        return TIME_MIN, start
    if word in _UNTIL:
        return TIME_MIN, end
    return (start, TIME_MAX) if word == "since" else (end, TIME_MAX)


def _weekday_near(name: str, edge: int, *, earlier: bool) -> tuple[int, int]:
    """The last such day or weekend that is over by ``edge``, or the first that begins no earlier."""
    days = 2 if name == "weekend" else 1
    wanted = DAY_NAMES.index("saturday" if name == "weekend" else name)
    weekday = from_micros(edge).weekday()
    shift = -days - (weekday - days - wanted) % 7 if earlier else (wanted - weekday) % 7
    return edge + shift * _DAY, edge + (shift + days) * _DAY


def _foreign_dates(text: str, today: datetime | None) -> list[TimeRange]:
    """Days and months that European languages other than English name; without a year the last such day or month."""
    found: list[TimeRange] = []
    for match in _FOREIGN_DATE.finditer(text):
        if not (match["day"] or match["year"]) or not (match["year"] or today):
            continue
        month = next(number for number in range(1, 13) if match[f"m{number}"])
        year = int(match["year"]) if match["year"] else today.year if today else 0
        try:
            start = datetime(year, month, int(match["day"] or 1), tzinfo=timezone.utc)
        except ValueError:  # 31 April
            continue
        if today and not match["year"] and start > in_utc(today):
            start = start.replace(year=year - 1)
        found.append(TimeRange(start, _end(start, "day" if match["day"] else "month"), match.group()))
    return found


def _learned_dates(text: str, today: datetime | None) -> list[TimeRange]:
    """Dates in other scripts, by dateparser: it takes tens of milliseconds, and more the first time."""
    if not (_NUMBER.search(text) and _FOREIGN_LETTER.search(text)):
        return []
    from dateparser import DateDataParser
    from dateparser.search import search_dates

    settings = {"RELATIVE_BASE": in_utc(today).replace(tzinfo=None)} if today else {"REQUIRE_PARTS": ["year"]}
    found: list[TimeRange] = []
    for phrase, _ in search_dates(text, settings=settings) or ():
        read = DateDataParser(settings=settings).get_date_data(phrase)
        if read.date_obj is not None and _NUMBER.search(phrase):
            start = read.date_obj.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=timezone.utc)
            found.append(TimeRange(start, _end(start, read.period), phrase))
    return found


def _end(start: datetime, period: str) -> datetime:
    """The end of the day, month or year that begins at ``start``."""
    if period == "year":
        return start.replace(year=start.year + 1, month=1, day=1)
    if period == "month":
        return (start.replace(day=1) + timedelta(days=31)).replace(day=1)
    return start + timedelta(days=1)
