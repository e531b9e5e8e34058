"""The dates of WhatsApp's text exports, which are written as the phone's language and settings had it.

``31.12.23, 21:05``, ``12/31/23, 9:05 PM``, ``2023/12/31 下午9:05`` and ``٣١/١٢/٢٠٢٣، ٩:٠٥ م`` are the same minute.
Whether day or month comes first, one line cannot tell: :class:`Order` looks at all of them.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone, tzinfo
from typing import NamedTuple

MARKS = dict.fromkeys([0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF])
"""Signs of writing direction, which stand anywhere and mean nothing; for ``str.translate``."""

_SPACES = {0x00A0: " ", 0x202F: " ", 0x2009: " "}  # fixed ones, as newer phones put before AM and PM
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
_BEGAN = 2009  # what is told to be older is of another calendar, or the numbers stand in another order
_BUDDHIST_FROM, _BUDDHIST = 2400, 543  # Thai phones count years from there, iPhones in two digits: 67 for 2567
_BUDDHIST_CENTURY = 2500


class Stamp(NamedTuple):
    """A date as it stands there: three numbers whose order is open, and the time of day."""

    numbers: tuple[int, int, int]
    hour: int
    minute: int
    second: int | None
    sign: str
    """What stands between the numbers."""
    american: bool
    """Whether it is written as in the United States: slashes, no leading zeros, AM or PM in capitals."""

    def moment(self, order: str, zone: tzinfo) -> datetime:
        """Raises ``ValueError`` if there is no such day since WhatsApp began when the numbers are, say, ``dmy``."""
        told = dict(zip(order, self.numbers, strict=True))
        year = told["y"]
        if year <= 99:
            year += _BUDDHIST_CENTURY if year >= _BEGAN + _BUDDHIST - _BUDDHIST_CENTURY else _CENTURY
        if year >= _BUDDHIST_FROM:
            year -= _BUDDHIST
        if year < _BEGAN:
            raise ValueError(f"{year} is before WhatsApp began")
        return datetime(year, told["m"], told["d"], self.hour, self.minute, self.second or 0, tzinfo=zone)


def stamp(text: str) -> Stamp | None:
    """The date that ``text`` is, or None if it is something else."""
    found = _STAMP.fullmatch(_SPACED_HALF.sub(r"\1.m", clean(text)))
    if found is None:
        return None
    hour = int(found["hour"])
    half = found["before"] or found["after"]
    if half and 1 <= hour <= 12:
        noon = half == "中午" and hour == 11
        hour = hour % 12 + (0 if noon else _HALVES[half.casefold()])
    sign, day = found["sign"], found["a"]
    american = sign == "/" and bool(half) and half.isascii() and half.isupper() and not day.startswith("0")
    second = int(found["second"]) if found["second"] else None
    numbers = int(found["a"]), int(found["b"]), int(found["c"])
    return Stamp(numbers, hour, int(found["minute"]), second, sign, american)


def clean(text: str) -> str:
    """Without signs of direction, with plain spaces."""
    return (text if text.isascii() else text.translate(_CLEAN)).strip()


class Order:
    """Which of day, month and year comes first in a file, found by seeing its dates in turn.

    That order is right under which all days exist, then under which time runs backwards least, then, where there
    are three days or more to tell from, under which the chat is the shortest: people who write on a first and a second
    of a month are more than those who write on the first of each month.
    """

    _ENOUGH_DAYS = 3

    def __init__(self) -> None:
        self._trials = {order: _Trial(order) for order in ("dmy", "mdy", "ymd")}
        self._american = 0
        self._others = 0
        self._last: tuple[int, int, int] | None = None

    def see(self, stamp: Stamp) -> None:
        if stamp.numbers == self._last:  # another hour of a day tells nothing
            return
        self._last = stamp.numbers
        for trial in self._trials.values():
            trial.see(stamp)
        if stamp.american:
            self._american += 1
        else:
            self._others += 1

    def best(self) -> str:
        """``dmy``, ``mdy`` or ``ymd``."""
        usual = "mdy" if self._american > self._others else "dmy"

        def cost(trial: _Trial) -> tuple[int, int, float, bool]:
            span = trial.days() if trial.changes + 1 >= self._ENOUGH_DAYS else 0.0
            return trial.wrong, trial.backwards, span, trial.order != usual

        return min(self._trials.values(), key=cost).order


class _Trial:
    """How a file's dates look if their numbers stand in this order."""

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
