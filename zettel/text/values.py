"""Reads the value of a fact, such as a place, an amount or a day, and decides whether two values exclude each other."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import NamedTuple

from zettel.text.frames import Language
from zettel.text.name_lists import regions, towns
from zettel.text.tokens import tokenize


class Value(NamedTuple):
    """A value: its words, its facets as ("weekday", "5") or ("clock", "9:30"), and its scale as ("currency", "eur").

    Only values of one scale are compared: 12 euros an hour and 400 euros a week may both be true.
    """

    text: str
    facets: frozenset[tuple[str, str]]
    scale: frozenset[tuple[str, str]] = frozenset()

    @property
    def words(self) -> frozenset[str]:
        """The words and tokens of its facets."""
        return frozenset(token for _, key in self.facets for token in (key, *tokenize(key)))


_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORD = re.compile(r"[^\W\d_]+|%")
_SIGNS = {"$": "usd", "\u20ac": "eur", "\u00a3": "gbp"}
_MULTIPLES = {
    "second": ("time", 1.0), "minute": ("time", 60.0), "hour": ("time", 3600.0),
    "day": ("days", 1.0), "week": ("days", 7.0), "month": ("days", 30.0), "year": ("days", 365.0),
    "microgram": ("mass", 0.001), "milligram": ("mass", 1.0), "gram": ("mass", 1e3), "kilogram": ("mass", 1e6),
    "megabyte": ("bytes", 1.0), "gigabyte": ("bytes", 1024.0), "terabyte": ("bytes", 1048576.0),
}  # fmt: skip
"""Units of one quantity. Hours are none of days: a course of two hours may take eight weeks."""
_TIMES = ("date", "day", "weekday", "clock")
_MEASURES = ("amount", "number", "version", "polarity")
_MAX_TOKENS = 8
"""The most tokens of a phrase that is a value."""


def liking(is_positive: bool) -> Value:
    """Return the value of "I love …" or "I hate …"."""
    return Value("likes" if is_positive else "dislikes", frozenset({("polarity", str(is_positive))}))


def read_value(kind: str, text: str, attribute: str, speaker: str, language: Language) -> Value | None:
    """Return the value in a text; None if the text is not of the kind, which is the name of a pattern's group."""
    text = text.strip(" .,!")
    if kind == "rest":
        text = language.phrase_end.sub("", f"{text}.").strip(" .")
    if not text or (kind not in ("sentence", "class") and not language.negators.isdisjoint(text.lower().split())):
        return None
    if kind in ("amount", "number"):
        return _quantity(kind, text, language)
    if kind == "holder" and text.lower() in language.first | language.mine:
        text = speaker
    if kind == "day":
        text = text[: day_end(text, language)].strip()
    reader = _READERS.get(kind)
    facets = reader(text, language) if reader else {(attribute, token) for token in tokenize(text)[:_MAX_TOKENS]}
    return Value(text, frozenset(facets)) if facets else None


def exclude(old: Value, new: Value) -> bool:
    """Return whether two values of one scale cannot both be true: they differ in a kind of facets."""
    if _differ(old.scale, new.scale):
        return False
    return _differ(old.facets, new.facets)


def is_named(value: Value, phrase: Value) -> bool:
    """Return whether a phrase consists of words of a value; False for numbers and times."""
    if is_time(value) or any(kind.partition(" ")[0] in _MEASURES for kind, _ in value.facets):
        return False
    return bool(phrase.facets) and {key for _, key in phrase.facets} <= value.words


def is_time(value: Value) -> bool:
    """Return whether a value is a day or time of day."""
    return any(kind in _TIMES for kind, _ in value.facets)


def is_town(value: Value) -> bool:
    """Return whether a value is a well-known town."""
    return value.text.lower() in towns()


def day_end(text: str, language: Language) -> int:
    """Return where the last date, weekday or time of day in a text ends."""
    expressions = (language.date, language.weekday, language.clock, _MONTH_DAY)
    return max((match.end() for expression in expressions for match in expression.finditer(text)), default=0)


def _differ(old: frozenset[tuple[str, str]], new: frozenset[tuple[str, str]]) -> bool:
    before, after = _by_kind(old), _by_kind(new)
    return any(before[kind].isdisjoint(after[kind]) for kind in before.keys() & after.keys())


def _by_kind(facets: frozenset[tuple[str, str]]) -> dict[str, set[str]]:
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    for kind, key in facets:
        kinds[kind].add(key)
    return kinds


def _name(text: str, language: Language) -> set[tuple[str, str]]:
    words = [word.strip(".").lower() for word in language.genitive.sub("", text).split()]
    tokens = {word for word in words if word not in language.common | language.first and word not in language.titles}
    is_time = not tokens.isdisjoint(language.months.keys() | language.weekdays.keys())
    return set() if is_time else {("name", token) for token in tokens}


def _full_name(text: str, language: Language) -> set[tuple[str, str]]:
    words = [word for _, word in sorted(_name(text, language), key=lambda facet: text.lower().find(facet[1]))]
    names = {("first", word) for word in words[:1]} | {("last", word) for word in words[1:][-1:]}
    return names if words else set()


def _place(text: str, language: Language) -> set[tuple[str, str]]:
    words = text.split()
    bare = " ".join(words[1:] if words[0].lower() in language.articles else words)
    if bare.lower() in regions():
        return {("region", bare.lower())}
    return set() if _class(text, language) else _name(bare, language)  # "moved to Notion"


def _town(text: str, language: Language) -> set[tuple[str, str]]:
    return _name(text, language) if text.lower() in towns() else set()


def _organisation(text: str, language: Language) -> set[tuple[str, str]]:
    words = text.split()
    if words[0].lower() not in language.determiners:
        return _name(text, language)
    if len(words) > 1 and ((words[1][:1].isupper() and not language.capital_nouns) or len(words) > 2):
        return {("name", token) for token in tokenize(" ".join(words[1:]))}
    return set()  # "the bank" may be any


def _quantity(kind: str, text: str, language: Language) -> Value | None:
    """Return an amount of money, or a number with its unit."""
    low = text.lower()
    digits = _NUMBER.search(low)
    words = _WORD.findall(low[digits.end() :] if digits else low)
    if digits:
        number, key = _float(digits.group()), digits.group().replace(",", ".")
    elif words and words[0] in language.numbers:
        number, key = language.numbers[words[0]], str(language.numbers[words[0]])
        words = words[1:]
    else:
        return None
    unit = language.units.get(words[0], "") if words else ""
    if kind == "amount":
        signs = [_SIGNS[sign] for sign in text if sign in _SIGNS]
        signs += [language.currencies[word] for word in words if word in language.currencies]
        scale = [("currency", sign) for sign in signs[:1]] + _per(words, language)
        thousands = 1000 if words[:1] == ["k"] else 1
        return Value(text, frozenset({("amount", str(float(number * thousands)))}), frozenset(scale))
    if unit:
        quantity, factor = _MULTIPLES.get(unit, (unit, 1.0))
        facet = (f"number {quantity}", str(round(number * factor, 6)))
        return Value(text, frozenset({facet}), frozenset(_per(words[1:], language)))
    return Value(text, frozenset({("number", key)}), frozenset(_per(words, language)))


def _per(words: list[str], language: Language) -> list[tuple[str, str]]:
    return [("per", language.units[word]) for word in words if word in language.units][:1]


def _float(digits: str) -> float:
    """Return the number of "1,240", "1.240,50" or "4.20"."""
    whole, mark, rest = re.fullmatch(r"(.*?)(?:([.,])(\d{1,2}))?", digits).groups()  # type: ignore[union-attr]
    return float(re.sub(r"\D", "", whole) or "0") + (float(f"0.{rest}") if mark else 0.0)


def _day(text: str, language: Language) -> set[tuple[str, str]]:
    """Return the date, day of the month, weekdays and times of day in a text."""
    low = text.lower()
    facets: set[tuple[str, str]] = set()
    for match in language.date.finditer(low):
        named = {name.rstrip("234"): found for name, found in match.groupdict().items() if found}
        day = int(re.sub(r"\D", "", named["day"]))
        month = language.months.get(named["month"]) or int(named["month"])
        facets |= {("date", f"{day}.{month}."), ("day", str(day))}
    facets |= {("day", match[1]) for match in _MONTH_DAY.finditer(low)}
    facets |= {("weekday", str(language.weekdays[match.group()])) for match in language.weekday.finditer(low)}
    for match in language.clock.finditer(low):
        named = {name.rstrip("0123456789"): found for name, found in match.groupdict().items() if found}
        word = named.get("hour") or named.get("halfpast") or named["halfto"]
        hour = (language.numbers.get(word) or int(word)) - ("halfto" in named)
        minute = named.get("minute", "00" if "hour" in named else "30")
        facets.add(("clock", f"{hour % 12}:{minute}"))  # "at 4" may be 16:00
    return facets


def _class(text: str, language: Language) -> set[tuple[str, str]]:
    low = text.lower()
    return {(name, member) for name, member, forms in language.classes if forms.fullmatch(low)}


def _code(text: str, language: Language) -> set[tuple[str, str]]:
    return {("code", re.sub(r"[\s()/-]", "", text).lower())}


def _title(text: str, language: Language) -> set[tuple[str, str]]:
    if text.split()[0].lower() in language.determiners:
        return set()  # "Phil is my manager"
    return {("title", " ".join(tokenize(text)))}  # as a whole: a payroll assistant becomes a payroll manager


def _version(text: str, language: Language) -> set[tuple[str, str]]:
    parts = text.lower().removeprefix("v").split(".")
    return {(f"version {place}", part) for place, part in enumerate(parts)}  # 3.11 contains 3.11.4


_MONTH_DAY = re.compile(r"(?:\bthe |^)(\d{1,2})(?:st|nd|rd|th)\b", re.IGNORECASE)
_READERS = {
    "place": _place, "town": _town, "name": _name, "holder": _name, "fullname": _full_name,
    "organisation": _organisation, "day": _day, "class": _class, "code": _code, "email": _code, "version": _version,
    "title": _title,
}  # fmt: skip
