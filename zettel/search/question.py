"""A question taken apart: its tokens, the names and dates in it, and which day is today for it."""

from __future__ import annotations

import re
from datetime import datetime, timezone, tzinfo
from itertools import pairwise
from typing import TYPE_CHECKING

from zettel.annotate.background import background_rarity
from zettel.annotate.dates import COUNT, find_dates, placed_dates
from zettel.annotate.days import DAY_NAMES, count_of
from zettel.annotate.tokens import UNSPACED, phrase_key, tokenize
from zettel.model import TIME_MAX, TIME_MIN, from_micros, to_micros
from zettel.ports import TimeRange
from zettel.query import Question
from zettel.search.foreign import foreign_dates

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
DATED_CHARACTERS = 4_000
"""Beginning of a question that is searched for dates."""
MAX_TIMES = 32
"""Dates of a question that are asked for."""
LOOK_BACK = 80
"""Characters in front of a date that may hold "two weeks before the end of"."""

_UNSPACED_RUN = re.compile(f"[{UNSPACED}]{{2,}}")
_DAY = 86_400_000_000
"""Microseconds."""
_UNIT_DAYS = {"day": 1, "week": 7, "fortnight": 14, "month": 30, "year": 365}
_BEFORE = ("before", "prior to", "earlier than", "preceding")
_UNTIL = ("until", "till", "by", "no later than")
_AFTER = ("after", "following", "later than")
_RELATION = re.compile(
    rf"\b(?:(?:(?P<count>{COUNT})\s+)?(?P<unit>{'|'.join(_UNIT_DAYS)})s?\s+"
    rf"|(?P<day>{'|'.join(DAY_NAMES)}|weekend)\s+)?(?P<word>{'|'.join((*_BEFORE, *_UNTIL, *_AFTER, 'since'))})"
    r"\s+(?:the\s+)?(?:(?:end|start|beginning)\s+of\s+)?$",
    re.IGNORECASE,
)
_LEADS = re.compile(rf"\s+(?:{'|'.join(_BEFORE + _AFTER)})\s+(?:the\s+)?", re.IGNORECASE)
_SHARED_YEAR = re.compile(
    r"\b(?P<start>(?:between|from)\s+)(?P<month>[a-z]{3,9})(?P<rest>\s+(?:and|to|until|till)\s+[a-z]{3,9},?\s+(?P<year>[12][0-9]{3}))\b",
    re.IGNORECASE,
)
_SHARED_MONTH = re.compile(
    r"\b(between\s(?:the\s|[a-z]{3,9}\s)?[0-9]{1,2}(?:st|nd|rd|th)?)\sand\s(?:the\s)?(?=[0-9]{1,2}(?:st|nd|rd|th)?\b)",
    re.IGNORECASE,
)
"""Read as "3 to 5 May", which is one stretch."""
_BETWEEN = re.compile(r"\b(?:between|from)\s+(?:the\s+)?$", re.IGNORECASE)
_AND = re.compile(r"\s*(?:and|to|until|till|-|–)\s+(?:the\s+)?", re.IGNORECASE)


def parse_question(text: str, *, vector: Floats | None, today: int | None, zone: tzinfo | None = None) -> Question:
    """Take ``text`` apart.

    ``vector`` is its unit row, ``today`` (microseconds; None or TIME_MIN: nobody knows) what relative dates count from,
    in days of ``zone`` (None: UTC).
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
        times=times_in(text, None if today is None else from_micros(today).astimezone(zone or timezone.utc)),
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
    text = _SHARED_MONTH.sub(r"\1 to ", _SHARED_YEAR.sub(_with_year, text[:DATED_CHARACTERS]))
    found = _apart(placed_dates(text, today) + foreign_dates(text, today))[:MAX_TIMES]
    zone = (today.tzinfo if today else None) or timezone.utc
    times: list[tuple[int, int]] = []
    joined = False
    for position, (at, time) in enumerate(found):
        place = at + len(time.text)
        if time.text.lower() in DAY_NAMES and position + 1 < len(found):
            leads = _LEADS.match(text, place)
            if leads and found[position + 1][0] == leads.end():
                continue  # "the Friday before 22 October": one date, not two
        start, end = to_micros(time.start), to_micros(time.end)
        if joined:
            times[-1] = (min(times[-1][0], start), max(times[-1][1], end))
        else:
            times.append(_related(text, at, start, end, zone))
        joined = (
            not joined
            and position + 1 < len(found)
            and _BETWEEN.search(text, max(0, at - LOOK_BACK), at) is not None
            and _AND.match(text, place) is not None
        )
    return tuple(dict.fromkeys(times))


def _apart(found: list[tuple[int, TimeRange]]) -> list[tuple[int, TimeRange]]:
    """In the order of their naming; of those that overlap the longer one: "3 mai 2023" and not its year alone."""
    apart: list[tuple[int, TimeRange]] = []
    for at, time in sorted(found, key=lambda one: one[0]):
        if not apart or at >= apart[-1][0] + len(apart[-1][1].text):
            apart.append((at, time))
        elif len(time.text) > len(apart[-1][1].text):
            apart[-1] = (at, time)
    return apart


def _with_year(between: re.Match[str]) -> str:
    """ "Between May and July 2023" with the year said twice, if the first word is a month."""
    month = f"{between['month']} {between['year']}"
    return between["start"] + month + between["rest"] if find_dates(month, None) else between.group()


def _related(text: str, at: int, start: int, end: int, zone: tzinfo) -> tuple[int, int]:
    """The stretch that the date at a place in ``text`` stands for, given the words in front of it."""
    relation = _RELATION.search(text, max(0, at - LOOK_BACK), at)
    if relation is None:
        return start, end
    word = " ".join(relation["word"].casefold().split())
    if relation["day"] and word in _BEFORE + _AFTER:
        edge = start if word in _BEFORE else end
        weekday = from_micros(edge).astimezone(zone).weekday()
        return _weekday_near(relation["day"].casefold(), edge, weekday, earlier=word in _BEFORE)
    if relation["unit"] and word in _BEFORE + _AFTER:
        stretch = sum(count_of((relation["count"] or "a").casefold())) * _UNIT_DAYS[relation["unit"].casefold()] * _DAY
        return (start - stretch, start) if word in _BEFORE else (end, end + stretch)
    if word in _BEFORE:
        return TIME_MIN, start
    if word in _UNTIL:
        return TIME_MIN, end
    return (start, TIME_MAX) if word == "since" else (end, TIME_MAX)


def _weekday_near(name: str, edge: int, weekday: int, *, earlier: bool) -> tuple[int, int]:
    """The last such day or weekend that is over by ``edge``, on that weekday, or the first that begins no earlier."""
    days = 2 if name == "weekend" else 1
    wanted = DAY_NAMES.index("saturday" if name == "weekend" else name)
    shift = -days - (weekday - days - wanted) % 7 if earlier else (wanted - weekday) % 7
    return edge + shift * _DAY, edge + (shift + days) * _DAY
