"""Parser for the dates of WhatsApp's exports, which depend on the phone's language and settings.

``31.12.23, 21:05``, ``12/31/23, 9:05 PM``, ``2023/12/31 下午9:05`` and ``٣١/١٢/٢٠٢٣، ٩:٠٥ م`` are the same minute.
One date does not show whether day or month comes first: :class:`DateOrder` compares all dates of a file.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone, tzinfo
from typing import NamedTuple

MARKS = dict.fromkeys([0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF])
"""A table for ``str.translate`` that removes marks of writing direction."""

_SPACES = {0x00A0: " ", 0x202F: " ", 0x2009: " "}  # newer phones write fixed spaces before AM and PM
_CLEAN = {**MARKS, **_SPACES}

_MORNING = (
    """am a.m. a.m ص π.μ. πμ öö sa पूर्वाह्न vorm. fm f.m. de. pg pd 上午 午前 오전 凌晨 清晨 早上 пр.об. przedpoł."""
)
_EVENING = (
    """pm p.m. p.m م μ.μ. μμ ös ch अपराह्न nachm. em e.m. du. ptg md 下午 午後 오후 中午 傍晚 晚上 сл.об. popoł."""
)
_HALVES = dict.fromkeys(_MORNING.split(), 0) | dict.fromkeys(_EVENING.split(), 12)

_HALF = "|".join(re.escape(half) for half in sorted(_HALVES, key=len, reverse=True))
_STAMP = re.compile(
    rf"""
    (?P<a>\d{{1,4}}) \s? (?P<sign>[./-]|年|년) \s? (?P<b>\d{{1,2}}) \s? (?:[./-]|月|월) \s? (?P<c>\d{{1,4}}) \s?
    (?:日|일|г\.|\.)? (?: [,،] \s* | \s+ )
    (?: (?:klo|kl\.?|um|at|om|à|às) \s )?
    (?: (?P<before>{_HALF}) \s? )?
    (?P<hour>\d{{1,2}}) [:.] (?P<minute>\d\d) (?: [:.] (?P<second>\d\d) )?
    (?: \s? (?P<after>{_HALF}) )? (?: \s? (?:uhr|ч\.?|h) )?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SPACED_HALF = re.compile(r"\b([ap])\. m\b")  # as in Spanish
_CENTURY = 2000
_BEGAN = 2009  # earlier years are of another calendar, or the numbers have another order
_BUDDHIST_FROM, _BUDDHIST = 2400, 543  # Thai phones use Buddhist years, iPhones with two digits: 67 for 2567
_BUDDHIST_CENTURY = 2500


class Stamp(NamedTuple):
    """A date of three numbers whose order is unknown, and the time of day."""

    numbers: tuple[int, int, int]
    hour: int
    minute: int
    second: int | None
    sign: str
    """The separator of the numbers."""
    american: bool
    """Whether the form is American: slashes, no leading zeros, AM or PM in capitals."""

    def moment(self, order: str, zone: tzinfo) -> datetime:
        """Return the time with the numbers in an order such as ``dmy``.

        Raises ``ValueError`` for a day that does not exist or is before WhatsApp began.
        """
        by_letter = dict(zip(order, self.numbers, strict=True))
        year = by_letter["y"]
        if year <= 99:
            year += _BUDDHIST_CENTURY if year >= _BEGAN + _BUDDHIST - _BUDDHIST_CENTURY else _CENTURY
        if year >= _BUDDHIST_FROM:
            year -= _BUDDHIST
        if year < _BEGAN:
            raise ValueError(f"{year} is before WhatsApp began")
        return datetime(year, by_letter["m"], by_letter["d"], self.hour, self.minute, self.second or 0, tzinfo=zone)


def stamp(text: str) -> Stamp | None:
    """Parse a date; None for any other text."""
    match = _STAMP.fullmatch(_SPACED_HALF.sub(r"\1.m", clean(text)))
    if match is None:
        return None
    hour = int(match["hour"])
    half = match["before"] or match["after"]
    if half and 1 <= hour <= 12:
        noon = half == "中午" and hour == 11
        hour = hour % 12 + (0 if noon else _HALVES[half.casefold()])
    sign, day = match["sign"], match["a"]
    american = sign == "/" and bool(half) and half.isascii() and half.isupper() and not day.startswith("0")
    second = int(match["second"]) if match["second"] else None
    numbers = int(match["a"]), int(match["b"]), int(match["c"])
    return Stamp(numbers, hour, int(match["minute"]), second, sign, american)


def clean(text: str) -> str:
    """Return a text without marks of direction, with plain spaces."""
    return (text if text.isascii() else text.translate(_CLEAN)).strip()


class DateOrder:
    """Finds the order of day, month and year in a file from its dates in turn.

    In the best order all days exist, then time runs backwards least often. Then, from three days on, the chat is the
    shortest, because chats on successive days are more common than chats on the first of each month.
    """

    _ENOUGH_DAYS = 3

    def __init__(self) -> None:
        self._trials = [_Trial(order) for order in ("dmy", "mdy", "ymd")]
        self._american = 0  # American dates minus the others
        self._last: tuple[int, int, int] | None = None

    def see(self, stamp: Stamp) -> None:
        if stamp.numbers == self._last:
            return
        self._last = stamp.numbers
        for trial in self._trials:
            trial.see(stamp)
        self._american += 1 if stamp.american else -1

    def best(self) -> str:
        """Return ``dmy``, ``mdy`` or ``ymd``."""
        usual = "mdy" if self._american > 0 else "dmy"

        def cost(trial: _Trial) -> tuple[int, int, float, bool]:
            span = trial.days() if trial.changes + 1 >= self._ENOUGH_DAYS else 0.0
            return trial.wrong, trial.backwards, span, trial.order != usual

        return min(self._trials, key=cost).order


class _Trial:
    """The errors and the span of a file's dates in one order."""

    def __init__(self, order: str) -> None:
        self.order = order
        self.wrong = 0
        self.backwards = 0
        self.changes = 0
        self._first: datetime | None = None
        self._last: datetime | None = None
        self._latest: datetime | None = None

    def see(self, stamp: Stamp) -> None:
        year = stamp.numbers[self.order.index("y")]
        others = [number for number in stamp.numbers if number > 99]
        if others and year <= 99:
            self.wrong += 1
            return
        try:
            moment = stamp.moment(self.order, timezone.utc)
        except ValueError:
            self.wrong += 1
            return
        if self._last is not None:
            self.backwards += moment < self._last
            self.changes += moment.date() != self._last.date()
        self._first = min(self._first or moment, moment)
        self._latest = max(self._latest or moment, moment)
        self._last = moment

    def days(self) -> float:
        if self._first is None or self._latest is None:
            return 0.0
        return float((self._latest - self._first).days)
