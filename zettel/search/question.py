"""A question taken apart: its tokens, the names and dates in it, and which day is today for it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import TYPE_CHECKING

from zettel.annotate.background import background_rarity
from zettel.annotate.dates import find_dates
from zettel.annotate.tokens import UNSPACED, phrase_key, tokenize
from zettel.model import TIME_MAX, TIME_MIN, from_micros, to_micros
from zettel.ports import Question

if TYPE_CHECKING:
    from zettel.ports import Floats, TimeRange

NAME_WORDS = 8
"""Longest phrase, in words, that is looked up as a Term or a title."""
NAME_CHARACTERS = 8
"""The same for scripts without spaces, in characters."""
READ_WORDS = 256
"""Words of a question that are searched for names: beyond it a document was pasted, and it names everything."""
MAX_TOKENS = 128
"""Distinct tokens that are asked for; of a longer question the rarest count."""

_UNSPACED_RUN = re.compile(f"[{UNSPACED}]{{2,}}")
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_RELATION = re.compile(
    r"(?:\b(?:an?\s+|the\s+)?(?P<unit>day|week|month|year)\s+)?\b(?P<word>before|after|since|until|till)"
    r"\s+(?:the\s+)?(?:(?:end|start|beginning)\s+of\s+)?$",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\b(?:between|from)\s+(?:the\s+)?$", re.IGNORECASE)
_AND = re.compile(r"\s*(?:and|to|until|till|-|–)\s+(?:the\s+)?", re.IGNORECASE)
# Month names of other languages: a question with one of them and a number is worth the slow and learned reading.
_FOREIGN_MONTH = re.compile(
    r"\b(?:janvier|f[ée]vrier|mars|avril|juin|juillet|ao[ûu]t|d[ée]cembre|enero|febrero|marzo|abril|mayo|junio|julio"
    r"|agosto|se[p]?tiembre|octubre|noviembre|diciembre|januar|februar|m[äa]rz|mai|juni|juli|oktober|dezember|gennaio"
    r"|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|novembre|dicembre|janeiro|fevereiro|mar[çc]o|maio|junho"
    r"|julho|setembro|outubro|novembro|dezembro|maart|mei|augustus|январ|феврал|март|апрел|ма[яйе]\b|июн|июл|август"
    r"|сентябр|октябр|ноябр|декабр)",
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
    found = (_read_learnedly(text, today) if _is_foreign(text) else []) or find_dates(text, today)
    times: list[tuple[int, int]] = []
    place = 0
    joined = False
    for position, time in enumerate(found):
        at = text.find(time.text, place)
        at = at if at >= 0 else place
        before, place = text[:at], at + len(time.text)
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


def _related(before: str, start: int, end: int) -> tuple[int, int]:
    """The stretch that a date stands for, given the words in front of it."""
    relation = _RELATION.search(before)
    if relation is None:
        return start, end
    word = relation["word"].lower()
    if relation["unit"]:
        unit = _UNIT_DAYS[relation["unit"].lower()] * 86_400_000_000
        return (start - unit, start) if word == "before" else (end, end + unit)
    return {
        "before": (TIME_MIN, start),
        "until": (TIME_MIN, end),
        "till": (TIME_MIN, end),
        "since": (start, TIME_MAX),
        "after": (end, TIME_MAX),
    }[word]


def _is_foreign(text: str) -> bool:
    """Whether it may name a date in another language: dateparser takes tens of milliseconds to find out."""
    return bool(_NUMBER.search(text)) and bool(_FOREIGN_MONTH.search(text) or _FOREIGN_LETTER.search(text))


def _read_learnedly(text: str, today: datetime | None) -> list[TimeRange]:
    """Dates in other languages, by dateparser."""
    from dateparser import DateDataParser
    from dateparser.search import search_dates

    from zettel.ports import TimeRange

    settings = {"RELATIVE_BASE": today.replace(tzinfo=None)} if today else {"REQUIRE_PARTS": ["year"]}
    found: list[TimeRange] = []
    for phrase, _ in search_dates(text, settings=settings) or ():
        read = DateDataParser(settings=settings).get_date_data(phrase)
        if read.date_obj is None or (not _NUMBER.search(phrase) and not _FOREIGN_MONTH.search(phrase)):
            continue
        start = read.date_obj.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=timezone.utc)
        if read.period == "year":
            start = start.replace(month=1, day=1)
            end = start.replace(year=start.year + 1)
        elif read.period == "month":
            start = start.replace(day=1)
            end = (start + timedelta(days=31)).replace(day=1)
        else:
            end = start + timedelta(days=1)
        found.append(TimeRange(start, end, phrase))
    return found
