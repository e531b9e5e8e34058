"""Parses sentences by rules: subjects, lexical fields, values, and the mood of a claim.

English only, by closed word classes and set phrases: conditionals and words of supposing (irrealis), failed attempts,
questions, first person, relatives as subject, and a few lexical fields. Pure functions of the text, cached.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntFlag
from functools import cached_property, lru_cache

from zettel.text.background import zipf
from zettel.text.extraction import asks
from zettel.text.mood import Mood, mood_of
from zettel.text.names import find_names
from zettel.text.tokens import clean, token_of, tokenize

MAX_CHARS = 600
"""Characters that are parsed: a longer text is a document."""
SHORT_SENTENCE = 3
"""Spaces in a sentence that needs the next one: "You know Oskar? The very same is my partner." """
RARE_SUBJECT = 4.0
"""A rarer word (Zipf) at the start, before a verb, counts as a name."""
_CACHED = 4096
"""Cached texts."""


class Matter(IntFlag):
    """Lexical fields that a sentence may be about."""

    HOME = 1
    WORK = 2
    LIKING = 4
    CARE = 8


def _words(matter: Matter, words: str) -> dict[str, Matter]:
    return dict.fromkeys(words.split(), matter)


_MATTERS = {
    **_words(
        Matter.HOME,
        "live lives lived living home homes house flat apartment landlord landlady rent rents rented neighbours"
        " neighbors kitchen balcony bedroom address based moved moving relocated resident residents settled"
        " registered rooms"
        " tenant cottage upstairs lodgings dwell dwells",
    ),
    **_words(
        Matter.WORK,
        "work works worked working job jobs employer employed employs employ hired hires hire boss colleagues colleague"
        " coworkers team staff contract wages salary payroll pays career office uniform shift shifts canteen earn earns"
        " profession occupation notice trainee",
    ),
    **_words(
        Matter.LIKING,
        "favourite favourites favorite favorites fond fondest love loves loved like likes best prefer prefers"
        " preferred adore adores mad devoted swear swears choice choose chooses top rank ranks beat beats finer finest"
        " perfect",
    ),
    **_words(
        Matter.CARE,
        "responsible responsibility charge care cares keeper caretaker department duty duties hands look looks"
        " looking owner owns own run runs manage manages maintain maintains keep keeps belongs handles"
        " taken took",
    ),
}
_FIRST = frozenset("i my me mine i'm i've i'd i'll myself we our we've we're we'll us ours".split())
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b[DMS][rst]\.)(?<!\bMrs\.)\s+")
_WORD = re.compile(r"[a-z][a-z']*")

_KIN_WORDS = frozenset(
    "neighbour neighbours neighbor neighbors dentist parent parents mother mum mom father dad sister sisters brother"
    " brothers sibling siblings cousin cousins uncle aunt nephew niece son sons daughter daughters kids children"
    " landlord"
    " landlady grandfather grandmother grandparents grandma grandpa friend friends boyfriend girlfriend hairdresser"
    " inlaws".split()
)
_KIN = "|".join(sorted(_KIN_WORDS))
_OF_KIN = re.compile(
    r"(?:^|[.!?;,:]\s+|\b(?:that|and|but|because)\s+)(?:my|our|his|her|their|[\w-]+'s) (?:\w+ )?"
    rf"(?P<kin>{_KIN})(?:'s? | (?=(?:\w+(?:s|ed)|has|had|will|can|lives?|works?|likes?|have|are|were|went|got|said)\b))"
)
_NAMED = re.compile(
    r"^(?i:(?:well|so|oh|but|and|by the way),? )?(?i:my|our|his|her|their|[\w-]+'s) (?:\w+ )?"
    rf"(?i:{_KIN}|wife|husband|partner|colleague) ([A-Z\u00c0-\u00de]\w+)(?! (?:and|&) )"
)
"""A relative by name as the subject."""
_ME = frozenset("i i'm i've i'd i'll we we're we've we'd we'll".split())
_ABOUT = re.compile(
    r"\b(?:about|regarding|concerning|around|near|because of|to do with|forward to)(?: [^\s,.;:!?]+){1,6}",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"\b(?:no longer|(?:any|no) ?more|any ?longer|instead|now|these days|nowadays|from now on|as of|from this"
    r"|this week|today"
    r"|since (?:last|yesterday|monday|the|this|easter|christmas|his|her|my)|new|changed|moved|switched|swapped|replaced"
    r"|used to\b.*\b(?:but|now|these days)|gave up|given up|stopped|quit|left|becomes?|became|took over|taken over"
    r"|postponed|rescheduled|shifted"
    r"|put off"
    r"|raised|went up|gone up|upgraded|updated|renamed|parted|out)\b"
)
_PAST = re.compile(
    r"\b(?:was born|grew up|went to school|as a (?:child|boy|girl|kid|student)|once|back then|in those days"
    r"|when (?:i|he|she|they|we) (?:was|were|\w+ed)|used to|for a (?:year|summer|month))\b"
)
_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = re.compile(
    rf"\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}\b|\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b|\b\d{{4}}-\d\d-\d\d\b"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\bon the \d{1,2}(?:st|nd|rd|th)\b"
)
_DIGIT = re.compile(r"\d")
_AMOUNT = re.compile(
    r"[$€£]\s?\d[\d.,]*\d?"
    r"|\b\d[\d.,]*\s?(?:euros?|dollars?|pounds?|bucks|cents?|francs?|crowns?|kr|usd|eur|gbp|[€$£])(?!\w)"
)
_NUMBER = re.compile(
    r"(?<![\w.])(?:[a-z]{1,3}-?)?\d[\d .:/-]*\d(?!\w)|(?<![\w.])(?:[a-z]{1,3}-?)?\d+[a-z]?\b|\b[a-z]+-\d+\b"
)
_PART = re.compile(r"[^\W\d_][\w\u00c0-\u024f]+(?!')\b|[^\W\d_]\w+(?='s)")
_POSSESSOR = re.compile(r"\b([A-Z\u00c0-\u00de]\w+|(?<=[Tt]he )\w+)'s\b")
_SUBJECT = re.compile(r"([A-Z\u00c0-\u00de]\w+) (?:now |has |is )?(?:\w+s|\w+ed|has|had|took|left|got|went|says)\b")
_TITLES = frozenset("mr mrs ms miss dr prof sir madame mme herr frau don señor señora the of".split())
_DEFINITE = re.compile(r"\b(?:[Mm]y|[Oo]ur|[Hh]is|[Hh]er|[Tt]heir|[Tt]he|as|\w+'s)\s+((?:[\w-]+\s+){0,2}[\w-]+)")
_PROPER = r"[A-Z\u00c0-\u00de][\w&.'\u00c0-\u024f-]*(?:\s+(?:&\s+)?[A-Z\u00c0-\u00de][\w\u00c0-\u024f-]*)*"
_LOCATED = re.compile(
    r"\b(?:in|to|at|from|of|for|by|with|near|is|hello|goodbye|into|left|quit|joined|outside|through|called|it's)\s+"
    rf"((?:the\s+)?{_PROPER})"
)
_POSTED = re.compile(r"\b(?:at|for|by|with|to|of|is|it's|quit|left|joined)\s+the\s+([a-z]+ [a-z]+|(?<=at the )[a-z]+)")
_LEADING = re.compile(rf"^({_PROPER}) (?:pays|gave|has given|hired|took|is where)\b")


class ParsedSentence:
    """A sentence with its parsed parts, each computed on first use."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.low = self.text.lower()
        self.words = _WORD.findall(self.low)

    @cached_property
    def tokens(self) -> frozenset[str]:
        """Its tokens, as in an index."""
        return frozenset(tokenize(self.text))

    @cached_property
    def stated(self) -> frozenset[str]:
        """The tokens without topics after ``about``: a talk about tea states nothing about tea."""
        rest, count = _ABOUT.subn(" ", self.text)
        return frozenset(tokenize(rest)) if count else self.tokens

    @cached_property
    def names(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """Its names, each with its tokens."""
        return tuple((name.text, frozenset(tokenize(name.text))) for name in find_names(self.text))

    @cached_property
    def whom(self) -> frozenset[str]:
        """The parts of its names in lower case, without titles: its possible subjects."""
        parts = [part for text, _ in self.names for part in _PART.findall(text)] + _POSSESSOR.findall(self.text)
        head = _SUBJECT.match(self.text)
        if head and zipf(token_of(head[1])) < RARE_SUBJECT:
            parts.append(head[1])
        return frozenset(part.lower() for part in parts) - _TITLES

    @cached_property
    def definite(self) -> frozenset[str]:
        """Tokens after a possessive or "the": a unique thing."""
        return frozenset(token for words in _DEFINITE.findall(self.text) for token in tokenize(words))

    @cached_property
    def located(self) -> frozenset[str]:
        """Names in the position of a place or an employer: after a preposition, or before "pays"."""
        return frozenset(name.rstrip(".'") for name in (*_LOCATED.findall(self.text), *_LEADING.findall(self.text)))

    @cached_property
    def posts(self) -> frozenset[str]:
        """The names in ``located``, and "the ..." after a preposition: employers such as "the city library"."""
        return self.located.union(_POSTED.findall(self.text))

    @cached_property
    def amounts(self) -> frozenset[str]:
        """Amounts of money, in lower case."""
        return frozenset(_AMOUNT.findall(self.low)) if _DIGIT.search(self.low) else frozenset()

    @cached_property
    def days(self) -> frozenset[str]:
        """Days of a month or a week, in lower case."""
        return frozenset(_DAY.findall(self.low))

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Other numbers and codes, in lower case."""
        if not _DIGIT.search(self.low):
            return frozenset()
        rest = _DAY.sub(" ", _AMOUNT.sub(" ", self.low))
        return frozenset(number.strip(" .:/-") for number in _NUMBER.findall(rest))

    @cached_property
    def matter(self) -> Matter:
        """The lexical fields of its words."""
        return matter_of(self.words)

    @cached_property
    def mood(self) -> Mood:
        """The mood of the statement: claimed, doubted or supposed."""
        return mood_of(self.low)

    @cached_property
    def is_question(self) -> bool:
        """True if the sentence contains a question."""
        return asks(self.text)

    @cached_property
    def is_first_person(self) -> bool:
        """True if the sentence is in the first person."""
        return not _FIRST.isdisjoint(self.words)

    @cached_property
    def kin(self) -> str:
        """The word for a relative or neighbour who is the subject, or ""."""
        words = (word.removesuffix("'s") for word in self.words)
        match = None if _KIN_WORDS.isdisjoint(words) else _OF_KIN.search(self.low)
        return match["kin"] if match else ""

    @cached_property
    def relative(self) -> str:
        """The name, in lower case, of a relative who is the only subject, or ""."""
        match = _NAMED.search(self.text) if _ME.isdisjoint(self.words) else None
        return match[1].lower() if match else ""

    @cached_property
    def changed(self) -> bool:
        """True if the sentence reports a change."""
        return _CHANGED.search(self.low) is not None

    @cached_property
    def past(self) -> bool:
        """True if the sentence is only about the past."""
        return "years ago" in self.low or (_PAST.search(self.low) is not None and not self.changed)


@lru_cache(maxsize=_CACHED)
def parse_sentences(text: str) -> tuple[ParsedSentence, ...]:
    """Return the sentences of the first MAX_CHARS characters, a short one joined with the next."""
    sentences: list[str] = []
    text = clean(text[:MAX_CHARS])
    for sentence in _SENTENCE_END.split(text):
        if sentences and sentences[-1].count(" ") < SHORT_SENTENCE:
            sentences[-1] += " " + sentence
        elif sentence:
            sentences.append(sentence)
    return tuple(map(ParsedSentence, sentences))


def matter_of(words: Iterable[str]) -> Matter:
    """Return the lexical fields of words in lower case."""
    matter = 0
    for word in words:
        matter |= _MATTERS.get(word.removesuffix("'s"), 0)
    return Matter(matter)
