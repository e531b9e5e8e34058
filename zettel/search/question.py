"""Parses a question into tokens, names and times."""

from __future__ import annotations

import re
from datetime import datetime, timezone, tzinfo
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.model import TIME_MAX, TIME_MIN, TimeRange, from_micros, to_micros
from zettel.ports.query import Question
from zettel.search.foreign_dates import foreign_dates
from zettel.search.named_times import named_times
from zettel.search.question_kind import asks_for_many, asks_for_present, is_about_nothing_else
from zettel.search.tense import direction_of
from zettel.text.background import background_rarity
from zettel.text.dates import COUNT, find_dates, placed_dates
from zettel.text.days import DAY_NAMES, DateContext, count_of
from zettel.text.shorthand import written_out
from zettel.text.tokens import UNSPACED, phrase_key, tokenize

if TYPE_CHECKING:
    from zettel.ports.query import Floats

NAME_WORDS = 8
"""Longest phrase to look up as a term or a title, in words."""
NAME_CHARACTERS = 8
"""Longest such phrase in a script without spaces, in characters."""
READ_WORDS = 256
"""Words of a question to examine for names. A longer text is a pasted document."""
MAX_TOKENS = 128
"""Most distinct tokens; of a longer question the rarest."""
DATED_CHARACTERS = 4_000
"""Characters of a question to examine for dates."""
MAX_TIMES = 32
"""Most dates of a question."""
LOOK_BACK = 80
"""Characters before a date to examine for words such as "two weeks before the end of"."""

_UNSPACED_RUN = re.compile(f"[{UNSPACED}]{{2,}}")
_YEAR = re.compile("[0-9]{4}")
_SPACES = re.compile(r"\s+")
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
"""Rewritten as "3 to 5 May", which is one time range."""
_BEFORE_TIME = re.compile(
    r"\b(?:earlier|later|back|some\s?time|(?:morning|afternoon|evening|night|day|date|month|year))\s"
    r"(?:(?:in|on|of|at|around|about|during|as)\s)?(?:the\s)?$",
    re.IGNORECASE,
)
_AFTER_TIME = re.compile(
    r"(?:['\u2019]s)?(?:,?\s(?:(?:early|late)\s)?(?:morning|afternoon|evening|night|time)\b)?", re.IGNORECASE
)
"""Words next to a date that name the time too."""
_END_OF = re.compile(r"(?:end|close)\s", re.IGNORECASE)
_START_OF = re.compile(r"(?:beginning|start)\s", re.IGNORECASE)
_BETWEEN = re.compile(r"\b(?:between|from)\s+(?:the\s+)?$", re.IGNORECASE)
_AND = re.compile(r"\s*(?:and|to|until|till|-|–)\s+(?:the\s+)?", re.IGNORECASE)
_OPENS_QUESTION = re.compile(
    r"^\W*(?:(?:and|so|but|ok|hey|also) )?(?:what|which|who|whose|whom|when|where|why|how|is|are|am|was|were|do|does"
    r"|did|has|have|had|can|could|would|will|should)(?:'s)?\b[^.!\n]*\.?\s*$",
    re.IGNORECASE,
)
"""One sentence that begins as a question."""


def parse_question(
    text: str,
    *,
    vector: Floats | None,
    today: int | None,
    zone: tzinfo | None = None,
    valid_at: int | None = None,
) -> Question:
    """Parse a question.

    ``vector`` is its unit row. Relative dates refer to ``today`` (microseconds; None or TIME_MIN: unknown) in ``zone``
    (None: UTC). Notes must be true at ``valid_at`` (microseconds; None: ``today``).
    """
    today = None if today == TIME_MIN else today
    text = _marked(written_out(text))
    tokens = tuple(dict.fromkeys(tokenize(text)))
    rarity = background_rarity(tokens)
    if len(tokens) > MAX_TOKENS:
        rarest = sorted(sorted(range(len(tokens)), key=lambda i: -rarity[i])[:MAX_TOKENS])
        tokens, rarity = tuple(tokens[i] for i in rarest), rarity[rarest]
    named = _named(text, None if today is None else from_micros(today).astimezone(zone or timezone.utc))
    other_tokens = set(tokenize(named.rest))
    return Question(
        text=text,
        tokens=tokens,
        rarity=rarity,
        names=names_in(text),
        times=named.times,
        vector=vector,
        today=today,
        valid_at=today if valid_at is None else valid_at,
        time_tokens=np.fromiter((token not in other_tokens for token in tokens), bool, len(tokens)),
        time_only=bool(named.times) and is_about_nothing_else(named.rest),
        many=asks_for_many(text),
        present=asks_for_present(text),
    )


def _marked(text: str) -> str:
    """Return a question with its mark, which many people do not type: the scorer learned from questions with one."""
    return f"{text.rstrip(' .')}?" if "?" not in text and _OPENS_QUESTION.match(text) else text


def names_in(text: str) -> tuple[str, ...]:
    """Keys of all phrases that may be a term or a title.

    Names and titles have the key :func:`phrase_key`, keyword terms their tokens, alone and in pairs.
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


class _Named(NamedTuple):
    """The time ranges of a text, and the text without the phrases that name them."""

    times: tuple[tuple[int, int], ...]
    rest: str


def times_in(text: str, today: datetime | None) -> tuple[tuple[int, int], ...]:
    """Time ranges in ``text``, in microseconds, ends excluded.

    "Before X" and "after X" are open ranges. "The week before X" ends where X starts. "Between X and Y" includes both.
    A date without a year is the last such date, unless the verbs indicate the present or the future.
    """
    return _named(text, today).times


def _named(text: str, today: datetime | None) -> _Named:
    undated = text[DATED_CHARACTERS:]
    text = _SPACES.sub(" ", text[:DATED_CHARACTERS])
    text = _SHARED_MONTH.sub(r"\1 to ", _SHARED_YEAR.sub(_with_year, text))
    dates = _dates_in(text, today)
    zone = (today.tzinfo if today else None) or timezone.utc
    times: list[tuple[int, int]] = []
    spans: list[tuple[int, int]] = []
    joined = False
    for position, (at, time) in enumerate(dates):
        place = at + len(time.text)
        spans.append(_span(text, at, place))
        if time.text.lower() in DAY_NAMES and position + 1 < len(dates):
            leads = _LEADS.match(text, place)
            if leads and dates[position + 1][0] == leads.end():
                continue  # "the Friday before 22 October": one date, not two
        start, end = to_micros(time.start), to_micros(time.end)
        if joined:
            if start < times[-1][0] and not _YEAR.search(time.text):
                start, end = _a_year_later(start, zone), _a_year_later(end, zone)
            times[-1] = (min(times[-1][0], start), max(times[-1][1], end))
        else:
            times.append(_related(text, at, start, end, zone))
        joined = (
            not joined
            and position + 1 < len(dates)
            and _BETWEEN.search(text, max(0, at - LOOK_BACK), at) is not None
            and _AND.match(text, place) is not None
        )
    return _Named(tuple(dict.fromkeys(times)), _without_spans(text, spans) + undated)


def _a_year_later(micros: int, zone: tzinfo) -> int:
    """The end of "from August to November", if the last November is before the last August."""
    day = from_micros(micros).astimezone(zone)
    try:
        return to_micros(day.replace(year=day.year + 1))
    except ValueError:  # 29 February
        return micros + 365 * _DAY


def _dates_in(text: str, today: datetime | None) -> list[tuple[int, TimeRange]]:
    """The first dates of ``text`` with their positions."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters grow when lowered, and positions must fit the text
        lowered = text
    direction = direction_of(lowered)
    dates = placed_dates(text, today, direction=direction)
    named = named_times(lowered, DateContext(lowered, today, direction), dates)
    return _without_overlaps(named + dates + foreign_dates(text, today))[:MAX_TIMES]


def _span(text: str, start: int, end: int) -> tuple[int, int]:
    """The span of a phrase with the words around it that belong to the time: "two weeks before", "the evening of"."""
    relation = _RELATION.search(text, max(0, start - LOOK_BACK), start)
    start = relation.start() if relation else start
    before = _BEFORE_TIME.search(text, max(0, start - LOOK_BACK), start)
    after = _AFTER_TIME.match(text, end)
    return before.start() if before else start, after.end() if after else end


def _without_spans(text: str, spans: list[tuple[int, int]]) -> str:
    pieces, place = [], 0
    for start, end in spans:
        pieces.append(text[place:start])
        place = max(place, end)
    return " ".join([*pieces, text[place:]])


def _without_overlaps(dates: list[tuple[int, TimeRange]]) -> list[tuple[int, TimeRange]]:
    """Dates in textual order; of overlapping ones the longer, such as "3 mai 2023" in place of "2023"."""
    chosen: list[tuple[int, TimeRange]] = []
    for at, time in sorted(dates, key=lambda pair: pair[0]):
        if not chosen or at >= chosen[-1][0] + len(chosen[-1][1].text):
            chosen.append((at, time))
        elif len(time.text) > len(chosen[-1][1].text):
            chosen[-1] = (at, time)
    return chosen


def _with_year(between: re.Match[str]) -> str:
    """ "Between May 2023 and July 2023" for "between May and July 2023", if the first word is a month."""
    month = f"{between['month']} {between['year']}"
    return between["start"] + month + between["rest"] if find_dates(month, None) else between.group()


def _related(text: str, at: int, start: int, end: int, zone: tzinfo) -> tuple[int, int]:
    """The time range of the date at a place in ``text``, given the words before it."""
    relation = _RELATION.search(text, max(0, at - LOOK_BACK), at)
    if relation is None:
        return start, end
    word = " ".join(relation["word"].casefold().split())
    if word in _BEFORE and _END_OF.match(text, at):
        start = end  # "before the end of May" is before June
    elif word in _AFTER and _START_OF.match(text, at):
        end = start
    if relation["day"] and word in _BEFORE + _AFTER:
        edge = start if word in _BEFORE else end
        weekday = from_micros(edge).astimezone(zone).weekday()
        return _weekday_near(relation["day"].casefold(), edge, weekday, earlier=word in _BEFORE)
    if relation["unit"] and word in _BEFORE + _AFTER:
        length = sum(count_of((relation["count"] or "a").casefold())) * _UNIT_DAYS[relation["unit"].casefold()] * _DAY
        return (start - length, start) if word in _BEFORE else (end, end + length)
    if word in _BEFORE:
        return TIME_MIN, start
    if word in _UNTIL:
        return TIME_MIN, end
    return (start, TIME_MAX) if word == "since" else (end, TIME_MAX)


def _weekday_near(name: str, edge: int, weekday: int, *, earlier: bool) -> tuple[int, int]:
    """The last such day or weekend that ends by ``edge`` (if ``earlier``), or the first that starts at it or later."""
    days = 2 if name == "weekend" else 1
    wanted = DAY_NAMES.index("saturday" if name == "weekend" else name)
    shift = -days - (weekday - days - wanted) % 7 if earlier else (wanted - weekday) % 7
    return edge + shift * _DAY, edge + (shift + days) * _DAY
