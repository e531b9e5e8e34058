"""Reads the value of a fact, such as a place, an amount or a day, and decides whether two values exclude each other."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import NamedTuple

from zettel.evolve.frames import Frame, Language, Pattern, places
from zettel.text.tokens import tokenize


class Value(NamedTuple):
    """A value: its words, and its facets as ("weekday", "friday") or ("clock", "9:30")."""

    text: str
    facets: frozenset[tuple[str, str]]


_NUMBER = re.compile(r"\d[\d.,]*\d|\d")
_UNIT = re.compile(r"\d\s?([^\W\d]+|%)")
_CLOCK = re.compile(r"\b(\d{1,2})(?::(\d\d)\b|\s?(am|pm|uhr|o'clock)\b)|(?<=\bat )(\d{1,2})(?!\S*\d)\b", re.IGNORECASE)
_SIGNS = {"$": "usd", "\u20ac": "eur", "\u00a3": "gbp"}
_CURRENCIES = {
    "euro": "eur", "euros": "eur", "eur": "eur", "dollar": "usd", "dollars": "usd", "usd": "usd", "bucks": "usd",
    "pound": "gbp", "pounds": "gbp", "gbp": "gbp", "quid": "gbp", "pfund": "gbp",
}  # fmt: skip
_MAX_TOKENS = 8
"""The most tokens of a phrase that is a value."""


def read_value(
    frame: Frame, pattern: Pattern, groups: dict[str, str | None], speaker: str, language: Language
) -> Value | None:
    """Return the value in the groups of a match; None if it is not of the frame's kind."""
    text = (groups.get("value") or "").strip(" .,!")
    kind = frame.value.partition(":")[0]
    if kind == "polarity":
        return Value("likes" if pattern.positive else "dislikes", frozenset({(kind, str(pattern.positive))}))
    if not text:
        return Value(groups.get("subject") or "", frozenset({(frame.attribute, "")})) if kind == "phrase" else None
    if kind == "rest":
        text, kind = language.phrase_end.sub("", f"{text}.").strip(" ."), "phrase"
    reader = _READERS.get(kind)
    facets = reader(text, language) if reader else {(frame.attribute, token) for token in tokenize(text)[:_MAX_TOKENS]}
    if kind == "name" and text.lower() in language.first:
        text, facets = speaker, {("name", token) for token in tokenize(speaker)}
    if kind == "day":
        named = (language.date.search(text.lower()), language.weekday.search(text.lower()), _CLOCK.search(text))
        text = " ".join(match.group() for match in named if match)
    return Value(text, frozenset(facets)) if facets else None


def exclude(old: Value, new: Value) -> bool:
    """Return whether two values cannot both be true: they differ in a facet, and neither contains the other's words."""
    before, after = _by_kind(old), _by_kind(new)
    return any(before[kind].isdisjoint(after[kind]) for kind in before.keys() & after.keys())


def share(old: Value, new: Value) -> bool:
    """Return whether two values have a facet in common."""
    return not old.facets.isdisjoint(new.facets)


def are_known_towns(*values: Value) -> bool:
    """Return whether all values are well-known towns."""
    return all(value.text.lower().removeprefix("the ") in places() for value in values)


def _by_kind(value: Value) -> dict[str, set[str]]:
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    for kind, key in value.facets:
        kinds[kind].add(key)
    return kinds


def _name(text: str, language: Language) -> set[tuple[str, str]]:
    words = [word.strip(".").lower() for word in language.genitive.sub("", text).split()]
    tokens = {word for word in words if word not in language.common and word not in language.titles}
    return set() if not tokens or tokens & language.calendar else {("name", token) for token in tokens}


def _place(text: str, language: Language) -> set[tuple[str, str]]:
    return set() if text.lower() in language.classes else _name(text, language)  # "moved to Notion"


def _amount(text: str, language: Language) -> set[tuple[str, str]]:
    number = _NUMBER.search(text)
    if number is None:
        return set()
    words = re.findall(r"[^\W\d_]+", text.lower())
    currency = next((_SIGNS[sign] for sign in text if sign in _SIGNS), "")
    currency = currency or next((_CURRENCIES.get(word, word) for word in words if word != "k"), "")
    thousands = 1000 if "k" in words else 1
    return {(f"amount {currency}", str(_float(number.group()) * thousands))}


def _float(digits: str) -> float:
    """Return the number of "1,240", "1.240,50" or "4.20"."""
    whole, mark, rest = re.fullmatch(r"(.*?)(?:([.,])(\d{1,2}))?", digits).groups()  # type: ignore[union-attr]
    return float(re.sub(r"\D", "", whole) or "0") + (float(f"0.{rest}") if mark else 0.0)


def _number(text: str, language: Language) -> set[tuple[str, str]]:
    number = _NUMBER.search(text)
    if number is None:
        return set()
    unit = _UNIT.search(text)
    name = unit[1].lower().rstrip("s") if unit else ""
    return {(f"number {_UNITS.get(name, name)}", number.group().strip(".,").replace(",", "."))}


_UNITS = {"hr": "hour", "h": "hour", "min": "minute", "sec": "second", "": ""}


def _day(text: str, language: Language) -> set[tuple[str, str]]:
    facets: set[tuple[str, str]] = set()
    low = text.lower()
    if match := language.date.search(low):
        day, month = match["day"] or match["day2"], match["month"] or match["month2"]
        facets.add(("date", f"{int(re.sub(r'[^0-9]', '', day))} {month[:3]}"))
    facets.update(("weekday", match.group()[:3]) for match in language.weekday.finditer(low))
    for match in _CLOCK.finditer(low):
        hour = int(match[1] or match[4]) + (12 if (match[3] or "") == "pm" and int(match[1]) < 12 else 0)
        facets.add(("clock", f"{hour}:{match[2] or '00'}"))
    return facets


def _class(text: str, language: Language) -> set[tuple[str, str]]:
    low = text.lower()
    name = language.classes.get(low) or next((kind for form, kind in language.class_forms if form.fullmatch(low)), None)
    return {(name, low.removesuffix("s"))} if name else set()


def _organisation(text: str, language: Language) -> set[tuple[str, str]]:
    low = text.lower().split()
    if low[0] in language.determiners and not text[len(low[0]) :].strip()[:1].isupper():
        tokens = tokenize(" ".join(low[1:]))
        return {("name", token) for token in tokens} if len(low) > 2 else set()  # "the bank" may be any
    return _place(text, language)


def _code(text: str, language: Language) -> set[tuple[str, str]]:
    return {("code", re.sub(r"[\s()/-]", "", text).lower())}


def _sentence(text: str, language: Language) -> set[tuple[str, str]]:
    return {("sentence", token) for token in tokenize(text)}


_READERS = {
    "place": _place, "name": _name, "amount": _amount, "number": _number, "day": _day, "class": _class,
    "organisation": _organisation, "sentence": _sentence, "code": _code,
}  # fmt: skip
