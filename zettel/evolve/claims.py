"""Extracts the claims of a note for the detection of changes of fact.

A claim is an asserted sentence with its topic and the people that it may concern. Extraction takes a tenth of a
millisecond, so a quick check for fixed phrases runs first and skips most pairs of notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from zettel.model import Kind, Note
from zettel.text.background import rarity_of
from zettel.text.mood import Mood
from zettel.text.statements import ParsedSentence, parse_sentences
from zettel.text.tokens import tokenize

MAX_CHARS, MAX_SENTENCES = 300, 3
"""Longer texts are skipped, because their sentences depend on each other."""
MIN_TOPIC_RARITY = 0.2
"""The lowest rarity of a topic word: "price" is a topic word, "people" is not."""
MIN_LIKENESS_SAME_PERSON, MIN_LIKENESS = 0.3, 0.5
"""The lowest overlap of topics, by rarity, of facts that a model compares: with and without a common person."""
GENERIC = frozenset(
    tokenize(
        "cost costs price prices pay paid charge euro euros dollar dollars longer more now new instead change changed"
        " become became switch switched move moved left day date today week since year yearly"
    )
)
"""Words of prices, dates and changes. They occur in many sentences about facts, so they are not topics."""
CACHED = 8192
"""Notes whose claims are cached, because the job soon compares other notes with them."""
POSSESSIVE = re.compile(r"\b(?:my|mine|our)\b")

_HOME, _WORK, _BEST_CUE, _CARE_CUE, _ROLE, _NUMBERED, _CHANGED = (1 << bit for bit in range(7))
_OF_THINGS = _CARE_CUE | _NUMBERED
_CUES = tuple(
    (phrase, frame)
    for frame, row in (
        (
            _HOME,
            " live,living in,home,house,flat,apartment,moved,settled,address,landlord,kitchen,neighbours",
        ),
        (
            _WORK,
            "work at,work for,works at,works for,worked for,working at,working for,works there,job,employ,hired,boss"
            ",colleagues,contract,wages,earn,team",
        ),
        (_BEST_CUE, "favourite,favorite,prefer,fond of,like best,likes best,better than,devoted,of choice"),
        (
            _CARE_CUE,
            "responsib,in charge,care of,look after,looks after,keeper,department,duties,taken over,took over,'s"
            " hands,runs the,belongs to",
        ),
        (
            _ROLE,
            "boss,manager,supervisor,mentor,tutor,coach,trainer,teacher,doctor,dentist,therapist,flatmate,roommate"
            ",partner"
            ",husband,wife,fianc,girlfriend,boyfriend,assistant",
        ),
        (_CHANGED, "no longer,any more,anymore,any longer,instead of,switched,swapped,no more,stopped,used to"),
    )
    for phrase in row.split(",")
)
"""The phrases of the quick check, in lower case, with their frames."""
_CAPITALS = re.compile(r"[A-Z\u00c0-\u00de][\w]+")
_DIGIT = re.compile(r"\d")


class Claim(NamedTuple):
    """One asserted sentence with the people that it may concern, its topic tokens, and the tokens of its speaker."""

    statement: ParsedSentence
    people: frozenset[str]
    topic: frozenset[str]
    speaker: frozenset[str]


def claims(note: Note) -> tuple[Claim, ...]:
    """Return the claims of a note; none for derived, archived or long notes, guesses, questions and past states."""
    if note.kind is not Kind.EPISODIC or note.archived or len(note.content) > MAX_CHARS:
        return ()
    return _claims(note.content, note.speaker)


@lru_cache(maxsize=CACHED)
def _claims(content: str, speaker: str | None) -> tuple[Claim, ...]:
    sentences = parse_sentences(content)
    if len(sentences) > MAX_SENTENCES or content.isupper():  # names cannot be recognised in capitals
        return ()
    speaker_tokens = frozenset((speaker or "").lower().split())
    return tuple(
        Claim(statement, _people(statement, speaker_tokens), _topic(statement), speaker_tokens)
        for statement in sentences
        if not statement.is_question and statement.mood is Mood.CLAIMED and not statement.kin and not statement.past
    )


def _people(statement: ParsedSentence, speaker: frozenset[str]) -> frozenset[str]:
    """Return the people that a statement may concern: its names, and the speaker if the statement concerns them.

    "My sister Eva lives in Oslo" concerns only Eva.
    """
    if statement.relative:
        return frozenset({statement.relative})
    places = {part for text in statement.located for part in text.lower().split()}
    if speaker and statement.is_first_person and (POSSESSIVE.search(statement.low) or statement.whom <= places):
        return statement.whom | speaker
    return statement.whom | {"you"} if "your" in statement.words else statement.whom


def _topic(statement: ParsedSentence) -> frozenset[str]:
    """Return the topic tokens of a statement, without names, values and words of change."""
    values = frozenset(token for value in (*statement.days, *statement.amounts) for token in tokenize(value))
    named = frozenset(token for word in statement.whom for token in tokenize(word))
    rest = statement.stated - named - values - GENERIC
    return frozenset(token for token in rest if rarity_of(token) >= MIN_TOPIC_RARITY and not token[0].isdecimal())


class Cues(NamedTuple):
    """The result of the quick check: the frames that a note may fill, and the people it may concern."""

    frames: int
    people: frozenset[str]


@lru_cache(maxsize=CACHED)
def cues(content: str, speaker: str | None) -> Cues:
    """Return the result of the quick check. It takes a few microseconds."""
    if len(content) > MAX_CHARS or "?" in content:
        return _NOTHING
    low = content.lower()
    frames = _NUMBERED if _DIGIT.search(content) else 0
    for phrase, frame in _CUES:
        if phrase in low:
            frames |= frame
    names = _CAPITALS.findall(content)
    return Cues(frames, frozenset([*names, speaker] if speaker else names) - _NO_NAMES)


_NOTHING = Cues(0, frozenset())
_NO_NAMES = frozenset(
    "The This That There These They Thanks Thank We You Yes Yeah No My Our His Her It If Wow Hey So And But".split()
)


def may_change_facts(note: Note) -> bool:
    """Return whether a note may change other facts, by the quick check."""
    return note.kind is Kind.EPISODIC and not note.archived and cues(note.content, note.speaker).frames != 0


def are_comparable(note: Note, other: Note) -> bool:
    """Return whether two notes are worth comparing; most pairs are not."""
    first, second = cues(note.content, note.speaker), cues(other.content, other.speaker)
    frames = first.frames & second.frames
    if frames & _OF_THINGS:
        return True
    changed = (first.frames | second.frames) & _CHANGED  # either note may be the later one
    return bool(frames or changed) and not first.people.isdisjoint(second.people)


def concern_same_matter(note: Note, other: Note) -> bool:
    """Return whether two facts may concern the same matter, so that a model should compare them."""
    return any(
        _likeness(first, second) >= (MIN_LIKENESS_SAME_PERSON if first.whom & second.whom else MIN_LIKENESS)
        for first in parse_sentences(note.content)
        for second in parse_sentences(other.content)
    )


def _likeness(note: ParsedSentence, other: ParsedSentence) -> float:
    """Return the share of the shorter topic that the other topic contains, by rarity."""
    first, second = _topic(note), _topic(other)
    if not first or not second:  # "Ann works at Nordlys" has a lexical field but no topic word
        return float(bool(note.matter & other.matter))
    return rarity(first & second) / min(rarity(first), rarity(second))


def rarity(tokens: Iterable[str]) -> float:
    """Return the summed rarity of tokens."""
    return sum(rarity_of(token) for token in tokens)
