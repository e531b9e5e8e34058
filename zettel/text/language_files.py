r"""Loads the frames of languages (:mod:`zettel.text.frames`) from files, and recognises the language of a text.

``languages/`` has one JSON file per language, so a new language is a file. ``others.json`` has frequent words of
languages without frames, which identify their texts; the lists that all languages share are in
:mod:`zettel.text.name_lists`.

**Language file.** ``|`` separates the words of a list, spaces those of ``common`` and ``frequent``. In expressions
``{months}``, ``{weekdays}``, ``{numbers}``, ``{units}`` and ``{currencies}`` stand for the lists of the same file.

Words:

- ``common``: words that never name a person or thing. ``frequent``: more words that identify the language.
- ``first``, ``mine``: "I", "my". The first of them complete clauses without a subject, with ``copula`` ("is").
- ``theirs``: "his". ``pronouns``: "he". ``it``: pronouns of things. ``articles``, ``determiners``: "the", "this".
- ``after_name``: verbs after a name that later clauses may refer to. ``plain_verbs``: verbs that do not follow the name
  of one person ("live"), so that "Sounds like rain" is not about somebody called Sounds.
- ``negators``: "not". ``titles``: "Dr". ``joins``: words inside names ("of").
- ``of``: prepositions inside things. ``qualifying``: those that say which thing a value belongs to ("8 euros for
  children"). ``owned_by``: "of" before an owner's name. ``genitive``, ``possessive``: "'s", to find and to write.
- ``descriptions``, ``neutral``: words that do not tell things apart ("new", "date").
- ``capital_nouns``: true if all nouns are capitalised, as in German. There ``relations`` are the nouns that may come
  after or before a name ("Annas Chefin", "mein Sohn Tom").
- ``names_follow``, ``names_may_follow``: expressions before names, for texts in lower case. After the first, any rare
  word is a name ("works at"); after the second, a word that is mostly a name ("my boss"). Both may be missing.
- ``day_lead``: words before a day ("next"). ``months``, ``weekdays``: in order, each with its forms; a weekday may end
  in "s". ``numbers``: from two. ``per``: "a" in "5 euros a day". ``units``, ``currencies``: forms by English name.
- ``classes``: members by class, other forms after ``=``; two members exclude each other. ``heads``: last words of
  things. ``lists``: alternatives that patterns use by name.

Expressions:

- ``contractions``: [expression, replacement] for a text. ``negations``: the same for a clause: "does not live … any
  more" becomes "live …", and the clause ends the fact.
- ``breaks`` (between clauses, without groups), ``lead`` (words before a clause), ``adverb`` (words to skip),
  ``phrase_end`` (words after a value), ``contrast`` ("instead of Ann"), ``letter`` (the start of a letter), ``beside``
  (what is not about a clause's value: "with my wife Ana").
- ``now`` (marks of a change), ``corrects``, ``adds`` ("also"), ``future``, ``former`` ("used to"), ``temporary``,
  ``today`` (on this day only), ``unasserted`` ("if"), ``reported`` ("thinks"), ``quotes`` (requests about a text).
- ``effective``: what precedes a starting day, searched in the text before the day, ``|`` and the day.
- ``ends``: what precedes the last day of a statement ("until"); may be missing.
- ``clock``: a time of day, with groups named ``hour…`` and ``minute…``, or ``halfpast`` or ``halfto`` an hour.
- ``asks``: for an attribute, patterns of whole questions for it, with the parts of a frame.
- ``about``: [expression, weight] for each cue of a sentence about its speaker; ``about_numbers``: the weights of its
  length and place, by name, and ``bias``. Both may be missing; :mod:`zettel.evolve.about` explains them.

**Frame.** ``attribute``; ``owner``: "person" (the subject) or "thing" (whose the thing is); ``exclusive``: when
different values exclude each other (:data:`Exclusive`); patterns that state the value (``states``), report a change to
it (``changes``) or its end (``ends``), say that the person likes a thing or not (``positive``, ``negative``), or name a
thing whose new value the next clause states (``topics``); ``examples``: [text, [[owner, attribute, thing, value], …]].
The attribute "any" is for ends that name only a value ("I cancelled Netflix").

**Pattern.** A regular expression that matches a clause from its first word. ``_`` is for spaces, and ``{part}`` for
a part of the fact: a value of a kind (``{place}``, ``{amount}``, ``{day}``, see :mod:`zettel.text.values`), the name
of a class, ``{class}`` for any product, ``{thing}``, the name of a list in ``heads``, or whose the fact is
(``{subject}``, ``{first}``, ``{mine}``, ``{owner}``, ``{person}``). ``{given}`` is a name that begins with a frequent
given name, ``{words}`` are one to four other words.

Example: ``{subject}_lives?_(in|at)_{place}`` matches "my wife lives in Porto".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from zettel.text.expressions import Expression
from zettel.text.frames import Frame, Language, Pattern, Sense
from zettel.text.name_lists import FOLDER, PRODUCTS, given_names, read_lists
from zettel.text.pattern_cues import pattern_cues
from zettel.text.shorthand import written_out
from zettel.text.tokens import tokenize

ABOUT_NUMBERS = ("length", "follows", "sentences")
"""Inputs of a sentence's weight that are no cues."""
_OTHERS = "others.json"
_WORD = r"[\w'./+&#-]+"
_CAPITAL = r"(?-i:[A-Z\u00c0-\u00de])"
_DIGITS = r"\d+(?:[.,]\d+)*"
_DAY_NUMBER = r"\d{1,2}(?:st|nd|rd|th|\.)?"
_LETTERS = re.compile(r"[^\W\d_]+")
_GROUPS = re.compile(r"\{([a-z_]+)\}")
_ENGLISH_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_DOSES = ("microgram", "milligram", "gram", "milliliter", "unit", "drop", "puff", "tablet")
_NUMERIC = re.compile(r"\(\?P<(?:amount|number|version|code|day)>")
"""Kinds of values with digits, number words, weekdays or months."""


@cache
def language_codes() -> tuple[str, ...]:
    """Return the codes of the languages that have frames."""
    names = sorted(file.name for file in files("zettel.text").joinpath(FOLDER).iterdir())
    return tuple(name.removesuffix(".json") for name in names if re.fullmatch(r"[a-z]{2,3}\.json", name))


@cache
def language(code: str) -> Language:
    """Return a language by its code, such as "en"; the first call takes some 50 ms."""
    return _language(read_lists(f"{code}.json"))


@cache
def asking_languages() -> tuple[Language, ...]:
    """Return the languages with patterns of questions; only these are compiled for a search."""
    return tuple(language(code) for code in language_codes() if "asks" in read_lists(f"{code}.json"))


def language_of(text: str) -> Language | None:
    """Return the language of a text by its frequent words; None if it has no frames."""
    codes, codes_of = _frequent_words()
    counts = dict.fromkeys(codes, 0)
    for word in _LETTERS.findall(written_out(text).lower()):
        for code in codes_of.get(word, ()):
            counts[code] += 1
    code = max(counts, key=counts.__getitem__)
    return language(code) if counts[code] and code in language_codes() else None


@cache
def _frequent_words() -> tuple[tuple[str, ...], dict[str, list[str]]]:
    """Return the codes of languages, those with frames first, and by word the languages that it identifies."""
    words = {code: "{common} {frequent}".format_map(read_lists(f"{code}.json")) for code in language_codes()}
    words |= read_lists(_OTHERS)
    codes_of: defaultdict[str, list[str]] = defaultdict(list)
    for code, text in words.items():
        for word in set(text.split()):
            codes_of[word].append(code)
    return tuple(words), dict(codes_of)


@cache
def _given_names() -> str:
    return _alternatives(name.capitalize() for name in sorted(given_names()))


def _language(data: dict[str, Any]) -> Language:
    data["classes"] |= read_lists(PRODUCTS)
    months, weekdays = _by_form(data["months"]), _by_form(data["weekdays"])
    weekdays |= {f"{form}s": day for form, day in weekdays.items()}  # "Mondays", "montags"
    numbers = _by_form(data["numbers"], 2)
    units, currencies = _inverse(data["units"]), _inverse(data["currencies"])
    lists: dict[str, Iterable[str]] = {
        "months": months,
        "weekdays": weekdays,
        "numbers": numbers,
        "units": units,
        "currencies": currencies,
    }
    alternatives = {name: _alternatives(forms) for name, forms in lists.items()}

    def filled(text: str) -> str:
        return _GROUPS.sub(lambda name: f"(?:{alternatives[name[1]]})", text)

    def expression(text: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
        return re.compile(filled(text), flags)

    def searched(text: str) -> Expression:
        return Expression(filled(text))

    def words(name: str) -> frozenset[str]:
        return frozenset(data[name].split("|"))

    def before(name: str) -> re.Pattern[str]:
        return re.compile(rf"\b(?:{data[name]}),?\s(?=\w)" if name in data else r"(?!)")

    def replacements(name: str) -> tuple[tuple[Expression, str], ...]:
        return tuple((searched(old), new) for old, new in data[name])

    about = data.get("about_numbers", {})
    parts = _parts(data, alternatives)
    month, day = alternatives["months"], _DAY_NUMBER
    return Language(
        common=frozenset(data["common"].split()),
        frequent=frozenset(data["frequent"].split()),
        me=data["first"].partition("|")[0],
        my=data["mine"].partition("|")[0],
        first=words("first"),
        mine=words("mine"),
        theirs=words("theirs"),
        pronouns=words("pronouns"),
        it=words("it"),
        after_name=words("after_name"),
        plain_verbs=words("plain_verbs"),
        articles=words("articles"),
        determiners=words("determiners") | words("articles"),
        negators=words("negators"),
        descriptions=words("descriptions"),
        owned_by=words("owned_by"),
        of=words("of"),
        qualifying=words("qualifying"),
        possessive=data["possessive"],
        neutral=frozenset(token for word in data["neutral"].split("|") for token in tokenize(word)),
        titles=words("titles"),
        capital_nouns=data["capital_nouns"],
        names_may_follow=before("names_may_follow"),
        names_follow=before("names_follow"),
        relations=words("relations"),
        genitive=re.compile(rf"(?:{data['genitive']})$"),
        owned=re.compile(
            rf"\b(?:{data['mine']})\s((?:{_WORD}\s){{0,3}}?(?:(?:{data['titles']})\b\.?\s)?{_WORD})"
            rf"(?=\s(?:{data['phrase_end']})\b|\s*[.!?,;:]|\s*$)",
            re.IGNORECASE,
        ),
        contractions=replacements("contractions"),
        negations=replacements("negations"),
        opening=expression(rf"^\W*(?:(?:{data['lead']})\b[\s,]*)*"),
        adverb=searched(rf"(?:^|\s)(?:{data['adverb']})(?=\s|$)"),
        breaks=expression(f"({data['breaks']})"),
        contrast=expression(data["contrast"]),
        beside=expression(data["beside"]),
        phrase_end=expression(rf"\s(?:{data['phrase_end']})\b.*|[.!?,;].*", re.IGNORECASE | re.DOTALL),
        future=searched(data["future"]),
        now=searched(data["now"]),
        adds=searched(data["adds"]),
        temporary=searched(data["temporary"]),
        unasserted=searched(data["unasserted"]),
        reported=searched(data["reported"]),
        former=searched(data["former"]),
        corrects=searched(data["corrects"]),
        quotes=searched(data["quotes"]),
        letter=expression(data["letter"], re.IGNORECASE | re.MULTILINE | re.DOTALL),
        effective=expression(data["effective"]),
        ends=expression(data["ends"]) if "ends" in data else None,
        clock=expression(data["clock"]),
        date=re.compile(
            rf"\b(?P<day>{day})\s(?:of\s)?(?P<month>{month})\b|\b(?P<month2>{month})\s(?:the\s)?(?P<day2>{day})\b"
            r"|\b(?:\d{4}-(?P<month3>\d\d)-(?P<day3>\d\d)|(?P<day4>\d{1,2})\.(?P<month4>\d{1,2})\.)",
            re.IGNORECASE,
        ),
        weekday=re.compile(rf"\b(?:{alternatives['weekdays']})\b", re.IGNORECASE),
        month=re.compile(rf"(?P<day>\d\.?\s)?\b(?P<month>{month})\b", re.IGNORECASE),
        months=months,
        english_months={form: _ENGLISH_MONTHS[number - 1] for form, number in months.items()},
        weekdays=weekdays,
        recurring=frozenset(f"{form}s" for form in weekdays),
        numbers=numbers,
        units=units,
        currencies=currencies,
        classes=tuple(
            (name, forms.partition("=")[0], re.compile(forms.replace("=", "|")))
            for name, members in data["classes"].items()
            for forms in members.split("|")
        ),
        copula=data["copula"],
        today=searched(data["today"]),
        frames=tuple(_frame(frame, parts) for frame in data["frames"]),
        asks=tuple(
            (attribute, re.compile(rf"{_filled(text, parts)}\W*", re.IGNORECASE))
            for attribute, texts in data.get("asks", {}).items()
            for text in texts
        ),
        about=tuple((re.compile(cue, re.IGNORECASE), weight) for cue, weight in data.get("about", ())),
        about_numbers=tuple(about[name] for name in ABOUT_NUMBERS) if about else (),
        about_bias=about.get("bias", 0.0),
    )


def _by_form(lines: Iterable[str], first: int = 1) -> dict[str, int]:
    return {form: number for number, forms in enumerate(lines, first) for form in forms.split("|")}


def _inverse(lists: Mapping[str, str]) -> dict[str, str]:
    return {form: name for name, forms in lists.items() for form in forms.split("|")}


def _alternatives(forms: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))


def _parts(data: dict[str, Any], lists: Mapping[str, str]) -> dict[str, str]:
    """Return the expressions that the parts of patterns stand for."""
    first, mine, genitive, numbers = data["first"], data["mine"], data["genitive"], lists["numbers"]
    articles = f"{data['articles']}|{data['determiners']}"
    article = rf"(?:(?:{data['articles']})\s)"
    name_word = rf"{_CAPITAL}[\w'.&-]*"
    name = rf"{name_word}(?:\s(?:(?:{data['joins']})\s)*{_CAPITAL}[\w'&-]*){{0,3}}"
    end = rf"(?=\s(?:{data['phrase_end']})\b|\s*[.!?,;:]|\s*$)"
    rate = rf"(?:(?:\s?/\s?|\s(?:{data['per']})\s)(?:{lists['units']})\b)?"
    unit = rf"(?:(?:\s|-)?(?:{lists['units']})\b)"
    currency = rf"(?:(?:{lists['currencies']})\b|[\u20ac$\u00a3])"
    digits = rf"{_DIGITS}(?:\s?k\b)?"
    institution = data["lists"]["institution"]
    month = rf"(?:{lists['months']})"
    date = rf"(?:{lists['weekdays']})\b(?:,?\s)?|{_DAY_NUMBER}\s(?:of\s)?{month}|{month}\s{_DAY_NUMBER}"
    amount = rf"(?:[$\u20ac\u00a3]\s?{digits}|{digits}\s?{currency}|(?:{numbers})\s{currency})"
    dose = "|".join(data["units"][name] for name in _DOSES)
    parts = {
        "subject": rf"(?P<subject>(?:{_WORD}\s+){{0,4}}?{_WORD})",
        "first": rf"(?P<subject>{first})",
        "mine": rf"(?P<subject>(?:{mine}))",
        "owner": rf"(?P<subject>(?:{mine}|{data['theirs']})\b|{name}(?=(?:{genitive})\s))(?:{genitive})?",
        "person": rf"(?P<subject>{name})",
        "thing": rf"(?P<thing>(?:{_WORD}\s+){{0,7}}?{_WORD})",
        "last_thing": rf"(?P<thing>(?:{_WORD}\s+){{0,7}}?{_WORD}){end}",
        "the_thing": rf"(?P<thing>(?:{articles})\s(?:{_WORD}\s+){{0,6}}?{_WORD}){end}",
        "product": rf"(?P<thing>{_CAPITAL}[\w.+#-]*(?:\s{_CAPITAL}[\w.+#-]*)?|[a-z][\w.+#-]{{2,}})",
        "words": rf"(?:{_WORD}\s+){{0,3}}?{_WORD}",
        "end": end,
        "name": rf"(?P<name>(?:(?:{data['titles']})\b\.?\s)?{name})",
        "holder": rf"(?P<holder>{name}|(?:{first}))",
        "fullname": rf"(?P<fullname>{name})",
        "given": rf"(?P<fullname>(?-i:{_given_names()})(?:\s{_CAPITAL}[\w'-]+)?){end}",
        "place": rf"(?P<place>{article}?{name})",
        "town": rf"(?P<town>{name})",
        "company": rf"(?P<organisation>{name})",
        "organisation": (
            rf"(?P<organisation>{article}(?:{_WORD}\s){{0,2}}?(?:{institution})|{article}?{name}(?:\s(?:{institution}))?"
            rf"|{article}(?:{_WORD}\s){{0,2}}?{_WORD}{end})"
        ),
        "title": rf"(?P<title>(?:{_WORD}\s+){{0,4}}?{_WORD}){end}",
        "phrase": rf"(?P<phrase>(?:{_WORD}\s+){{0,6}}?{_WORD}){end}",
        "rest": r"(?P<rest>.+)",
        "sentence": r"(?P<sentence>.+)",
        "number": rf"(?P<number>{_DIGITS}{unit}?{rate}|(?:{numbers}){unit}{rate})",
        "count": rf"(?P<number>\d+|(?:{numbers})\b)",
        "dose": rf"(?P<number>{_DIGITS}\s?(?:{dose})\b)",
        "version": r"(?P<version>v?\d+(?:\.\d+)*)",
        "code": (r"(?P<code>(?:\+?\d[\d\s()/-]{2,}\d|[A-Z]{0,3}-?\d[\w-]*|\S*\d\S*))(?!\S*\w)"),
        "telephone": r"(?P<code>\+?\d[\d\s()/-]{5,}\d)",
        "model": rf"(?P<model>(?:{_WORD}\s){{0,3}}?{_CAPITAL}[\w-]*(?:\s[\w-]*\d[\w-]*)?)",
        "amount": rf"(?P<amount>{amount}{rate})",
        "sum": rf"(?P<amount>(?:{amount}|{digits}(?![\w%]|[.,:]\d|\s?(?:{lists['units']})\b)){rate})",
        "date": rf"(?P<day>{date})",
        "day": rf"(?P<day>(?:(?:{data['day_lead']})\s)*(?:(?:{lists['weekdays']}|{lists['months']}|{numbers})\b|\d).*)",
    }
    classes = {name: members.replace("=", "|") for name, members in data["classes"].items()}
    parts |= {name: rf"(?P<class>{members})\b" for name, members in classes.items()}
    parts |= {name: f"(?:{members})" for name, members in (*lists.items(), *data["lists"].items())}
    of = rf"(?:\s(?:{data['of']})\s(?:{_WORD}\s+){{0,3}}?{_WORD})?"
    for name, members in data["heads"].items():
        parts[name] = rf"(?P<thing>(?:{_WORD}\s+){{0,3}}?(?:{members})\b(?!\s(?:{members})\b){of})"
    products = [members for name, members in classes.items() if name in read_lists(PRODUCTS)]
    parts["class"] = rf"(?P<class>{'|'.join(products)})\b"
    return parts


def _frame(frame: dict[str, Any], parts: Mapping[str, str]) -> Frame:
    kinds: tuple[tuple[str, Sense, bool | None], ...] = (
        ("changes", "changes", None), ("ends", "ends", None), ("states", "states", None),
        ("positive", "states", True), ("negative", "states", False), ("topics", "topics", None),
    )  # fmt: skip
    patterns = (_pattern(text, sense, positive, parts) for key, sense, positive in kinds for text in frame.get(key, ()))
    return Frame(frame["attribute"], frame["owner"], frame["exclusive"], tuple(patterns))


def _pattern(text: str, sense: Sense, positive: bool | None, parts: Mapping[str, str]) -> Pattern:
    filled = _filled(re.sub(r"\{thing\}$", "{last_thing}", text), parts)
    return Pattern(rf"{filled}(?!\w|[.,:]\d)", sense, positive, pattern_cues(text), bool(_NUMERIC.search(filled)))


def _filled(pattern: str, parts: Mapping[str, str]) -> str:
    pieces = _GROUPS.split(pattern)  # words of the pattern and names of parts alternate
    return "".join(parts[piece] if place % 2 else piece.replace("_", r"\s+") for place, piece in enumerate(pieces))
