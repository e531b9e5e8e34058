"""Loads the frames of a language: patterns of statements about home, work, diet, prices, deadlines and so on.

``languages/`` has one JSON file per language, so a new language needs no code. Each frame names an attribute, the
patterns of clauses that state it, and when two of its values exclude each other. A pattern is a regular expression in
which ``_`` stands for spaces, and a name in braces for a part of the fact, such as ``{subject}`` or ``{place}``. It
matches a clause from its first word, without adverbs ("now") and opening words ("well", "since May").
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple, TypeAlias

from zettel.text.tokens import tokenize

Exclusive: TypeAlias = Literal["always", "dated", "marked", "known", "never"]
"""When different values of an attribute exclude each other.

``always``; ``dated``: if their times give the order; ``marked``: if the later one reports a change; ``known``: as
``marked``, and for two well-known towns; ``never``: a person may have several.
"""
Sense: TypeAlias = Literal["states", "changes", "ends"]
"""A pattern states a value, reports a change to it, or its end."""
_FOLDER, _PLACES = "languages", "places.json"
_NAME = r"(?-i:[A-Z\u00c0-\u00de][\w'.-]*(?:\s(?:(?:de|da|van|von|der|of|and|&)\s)?[A-Z\u00c0-\u00de][\w'-]*){0,3})"
_WORD = r"[\w'./+&#-]+"
_PARTS: dict[str, str] = {
    "subject": rf"(?P<subject>(?:{_WORD}\s+){{0,4}}?{_WORD})",
    "thing": rf"(?P<thing>(?:{_WORD}\s+){{0,7}}?{_WORD})",
    "person": rf"(?P<person>{_NAME})",
    "name": rf"(?P<value>(?:(?:Dr|Mr|Mrs|Ms|Prof)\.?\s)?{_NAME})",
    "place": rf"(?P<value>(?:the\s)?{_NAME})",
    "organisation": rf"(?P<value>(?:the\s)?{_NAME}|the\s(?:[a-z-]+\s){{0,2}}[a-z-]+)",
    "former": rf"(?P<former>(?:{_WORD}\s+){{0,4}}?{_WORD})",
    "words": rf"(?:{_WORD}\s+){{0,3}}?{_WORD}",
    "rest": r"(?P<value>.+)",
    "number": r"(?P<value>(?:v|version\s)?\d[\d.,:/]*(?:\s?(?:{units})\b)?)",
    "version": r"(?P<value>v?\d+(?:\.\d+)*)",
    "product": r"(?P<thing>(?-i:[A-Z][\w.+#-]*(?:\s[A-Z][\w.+#-]*)?)|[a-z][\w.+#-]{2,})",
    "code": r"(?P<value>(?:\+?\d[\d\s()/-]{2,}\d|[A-Z]{0,3}-?\d[\w-]*|\S+@\S+\.\w+|\S*\d\S*))",
    "model": rf"(?P<value>(?:{_WORD}\s){{0,3}}?(?-i:[A-Z])[\w-]*(?:\s[\w-]*\d[\w-]*)?)",
}
"""Parts of a fact in patterns that need no words of the language."""


class Pattern(NamedTuple):
    """A compiled pattern, and its sense. ``positive`` is None but for likings."""

    regex: re.Pattern[str]
    sense: Sense
    positive: bool | None = None


@dataclass(frozen=True)
class Frame:
    """An attribute of a person or thing, with its patterns. ``value`` and ``thing`` are kinds of parts."""

    attribute: str
    owner: Literal["person", "thing", "none"]
    value: str
    thing: str
    exclusive: Exclusive
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True)
class Language:
    """The words and frames of one language. The expressions ignore case."""

    code: str
    common: frozenset[str]
    me: str
    """"I", for a clause without a subject."""
    first: frozenset[str]
    mine: frozenset[str]
    determiners: frozenset[str]
    descriptions: frozenset[str]
    owned_by: frozenset[str]
    qualifying: frozenset[str]
    genitive: re.Pattern[str]
    contractions: tuple[tuple[re.Pattern[str], str], ...]
    opening: re.Pattern[str]
    adverb: re.Pattern[str]
    breaks: re.Pattern[str]
    phrase_end: re.Pattern[str]
    neutral: frozenset[str]
    """Tokens that do not tell things apart: "deadline" in "the report's deadline"."""
    future: re.Pattern[str]
    now: re.Pattern[str]
    adds: re.Pattern[str]
    temporary: re.Pattern[str]
    unasserted: re.Pattern[str]
    reported: re.Pattern[str]
    former: re.Pattern[str]
    theirs: frozenset[str]
    denies: re.Pattern[str]
    corrects: re.Pattern[str]
    quotes: re.Pattern[str]
    effective: re.Pattern[str]
    calendar: frozenset[str]
    titles: frozenset[str]
    weekday: re.Pattern[str]
    date: re.Pattern[str]
    classes: dict[str, str]
    """The class of each member: {"vim": "editor"}."""
    class_forms: tuple[tuple[re.Pattern[str], str], ...]
    """Classes of members that are patterns: "iphone 15"."""
    frames: tuple[Frame, ...]
    about: tuple[tuple[re.Pattern[str], float], ...]
    """Cues of a sentence about the person who says it, with their weights (:mod:`zettel.evolve.about`)."""
    about_numbers: tuple[float, ...]
    about_bias: float


@lru_cache(maxsize=1)
def languages() -> tuple[Language, ...]:
    """Return all languages. Compiling their patterns takes some 50 ms, once."""
    folder = files("zettel.evolve").joinpath(_FOLDER)
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".json"))
    read = (json.loads(folder.joinpath(name).read_text("utf-8")) for name in names if name != _PLACES)
    return tuple(map(_language, read))


def language_of(text: str) -> Language | None:
    """Return the language with the most common words in ``text``; None without any."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = [(sum(word in language.common for word in words), language) for language in languages()]
    count, best = max(counts, key=lambda counted: counted[0])
    return best if count else None


@lru_cache(maxsize=1)
def places() -> frozenset[str]:
    """Return well-known towns, in lower case: two of them are two homes. Regions are not among them."""
    content = files("zettel.evolve").joinpath(_FOLDER).joinpath(_PLACES).read_text("utf-8")
    return frozenset(name.lower() for name in json.loads(content)["towns"])


def _language(data: dict[str, Any]) -> Language:
    def ignoring_case(name: str) -> re.Pattern[str]:
        return re.compile(data[name], re.IGNORECASE)

    def words(name: str) -> frozenset[str]:
        return frozenset(data[name].split("|"))

    members = [(value, name) for name, values in data["classes"].items() for value in values.split("|")]
    classes = {value.lower(): name for value, name in members if "\\" not in value}
    forms = tuple((re.compile(value), name) for value, name in members if "\\" in value)
    numbers = data.get("about_numbers", {})
    months, weekdays = data["months"], data["weekdays"]
    day = r"\d{1,2}(?:st|nd|rd|th|\.)?"
    return Language(
        code=data["language"],
        common=frozenset(data["common"].split()),
        me=data["first"].partition("|")[0],
        first=words("first"),
        mine=words("mine"),
        determiners=words("determiners"),
        descriptions=words("descriptions"),
        owned_by=words("owned_by"),
        qualifying=words("of"),
        genitive=re.compile(rf"(?:{data['genitive']})$"),
        contractions=tuple((re.compile(old, re.IGNORECASE), new) for old, new in data["contractions"]),
        opening=re.compile(rf"^\W*(?:(?:{data['lead']})\b[\s,]*)*", re.IGNORECASE),
        adverb=re.compile(rf"\s*\b(?:{data['adverb']})\b(?=\s|$)", re.IGNORECASE),
        breaks=ignoring_case("breaks"),
        phrase_end=re.compile(rf"\s(?:{data['phrase_end']})\b.*|[.!?,;].*", re.IGNORECASE | re.DOTALL),
        neutral=frozenset(token for word in data["neutral"].split("|") for token in tokenize(word)),
        future=ignoring_case("future"),
        now=ignoring_case("now"),
        adds=ignoring_case("adds"),
        temporary=ignoring_case("temporary"),
        unasserted=ignoring_case("unasserted"),
        reported=ignoring_case("reported"),
        former=ignoring_case("former"),
        theirs=words("theirs"),
        denies=ignoring_case("denies"),
        corrects=ignoring_case("corrects"),
        quotes=ignoring_case("quotes"),
        effective=ignoring_case("effective"),
        calendar=frozenset([*months.split("|"), *weekdays.split("|")]),
        titles=words("titles"),
        weekday=re.compile(rf"\b(?:{weekdays})\b"),
        date=re.compile(
            rf"\b(?P<day>{day})\s(?:of\s)?(?P<month>{months})\b|\b(?P<month2>{months})\s(?:the\s)?(?P<day2>{day})\b"
        ),
        classes=classes,
        class_forms=forms,
        frames=tuple(_frame(frame, data) for frame in data["frames"]),
        about=tuple((re.compile(cue, re.IGNORECASE), weight) for cue, weight in data.get("about", ())),
        about_numbers=tuple(numbers[name] for name in ("length", "follows", "sentences")) if numbers else (),
        about_bias=numbers.get("bias", 0.0),
    )


def _amount(data: dict[str, Any]) -> str:
    number = r"\d[\d.,]*(?<=\d)(?:\s?k\b)?"
    return rf"[$\u20ac\u00a3]\s?{number}|{number}\s?(?:(?:{data['currencies']})\b|[\u20ac$\u00a3])"


def _frame(frame: dict[str, Any], data: dict[str, Any]) -> Frame:
    kind = frame["value"]
    classes = data["classes"]
    chosen = classes[kind.partition(":")[2]] if ":" in kind else "|".join(classes.values())
    first = rf"(?P<subject>{data['first']})"
    end = rf"(?=\s(?:{data['phrase_end']})\b|\s*[.!?,;]|\s*$)"
    parts = _PARTS | {
        "class": rf"(?P<value>(?:{chosen}))\b",
        "first": first,
        "mine": rf"(?P<subject>(?:{data['mine']}))",
        "owner": rf"(?P<subject>(?:{data['mine']})|{_NAME}(?:{data['genitive']}))",
        "role": rf"(?P<thing>(?:{_WORD}\s){{0,2}}?(?:{data['roles']}))",
        "name_or_me": rf"(?P<value>(?-i:[A-Z][\w'-]+)|(?:{data['first']}))",
        "amount": rf"(?P<value>{_amount(data)})",
        "day": r"(?P<value>\S.*)",
        "last_thing": rf"(?P<thing>(?:{_WORD}\s+){{0,7}}?{_WORD}){end}",
        "phrase": rf"(?P<value>(?:{_WORD}\s+){{0,6}}?{_WORD}){end}",
        "number": _PARTS["number"].replace("{units}", data["units"]),
        "identifier": rf"(?P<thing>(?:{_WORD}\s+){{0,4}}?(?:{data['things']['identifier']}))",
    }
    if frame.get("thing") == "identifier":
        parts["thing"] = parts["identifier"]
    senses = (
        ("states", "states", None), ("changes", "changes", None), ("ends", "ends", None),
        ("positive", "states", True), ("negative", "states", False),
    )  # fmt: skip
    compiled = [
        Pattern(_compiled(pattern, parts), sense, positive)  # type: ignore[arg-type]
        for key, sense, positive in senses
        for pattern in frame.get(key, ())
    ]
    compiled.sort(key=lambda pattern: ("changes", "ends", "states").index(pattern.sense))
    return Frame(
        frame["attribute"], frame["owner"], kind, frame.get("thing", ""), frame["exclusive"], tuple(compiled)
    )


def _compiled(pattern: str, parts: dict[str, str]) -> re.Pattern[str]:
    pattern = re.sub(r"\{thing\}$", "{last_thing}", pattern)
    pieces = re.split(r"\{([a-z_]+)\}", pattern)  # words of the pattern and names of parts alternate
    filled = "".join(
        parts[piece] if place % 2 else piece.replace("_", r"\s+") for place, piece in enumerate(pieces)
    )
    return re.compile(f"{filled}(?!\\w)", re.IGNORECASE)
