"""What a note claims, read as far as it is needed to see whether another note says otherwise.

A claim is a sentence that is meant to be so, with whom it may be about and its topic. Reading costs a tenth of a
millisecond, so a glance at set phrases comes first, and most pairs of notes are never read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from zettel.annotate.background import rarity_of
from zettel.annotate.mood import Mood
from zettel.annotate.statements import Statement, statements
from zettel.annotate.tokens import tokenize
from zettel.model import Kind, Note

MAX_CHARS, MAX_SENTENCES = 300, 3
"""A longer text is a tale: its sentences hold by each other, and not each for itself."""
TELLING = 0.2
"""Rarity from which a word tells what a sentence is about: "price" does, "people" does not."""
OF_ONE, OF_ONE_THING = 0.3, 0.5
"""Share of the topic, by rarity, that two facts have in common which a model is to compare: if both name somebody, and
if they do not."""
GENERIC = frozenset(
    tokenize(
        "cost costs price prices pay paid charge euro euros dollar dollars longer more now new instead change changed"
        " become became switch switched move moved left day date today week since year yearly"
    )
)
"""Words of prices, dates and changes: they are in all such sentences, and say nothing about the matter."""
CACHED = 8192
"""Notes whose reading is remembered: others are compared with them soon after."""
MINE = re.compile(r"\b(?:my|mine|our)\b")

_HOME, _WORK, _BEST_CUE, _CARE_CUE, _ROLE, _NUMBERED, _TOLD = (1 << place for place in range(7))
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
        (_TOLD, "no longer,any more,anymore,any longer,instead of,switched,swapped,no more,stopped,used to"),
    )
    for phrase in row.split(",")
)
"""What is looked for at a glance, in small letters."""
_CAPITALS = re.compile(r"[A-Z\u00c0-\u00de][\w]+")
_DIGIT = re.compile(r"\d")


class Claim(NamedTuple):
    """One sentence that is meant to be so: whom it may be about, its topic by telling tokens, who speaks, and it."""

    said: Statement
    whom: frozenset[str]
    topic: frozenset[str]
    speaker: frozenset[str]


def claims(note: Note) -> tuple[Claim, ...]:
    """What a note claims; nothing for what is derived, put away, long, supposed, asked or past."""
    if note.kind is not Kind.EPISODIC or note.archived or len(note.content) > MAX_CHARS:
        return ()
    return _claims(note.content, note.role)


@lru_cache(maxsize=CACHED)
def _claims(content: str, role: str | None) -> tuple[Claim, ...]:
    sentences = statements(content)
    if len(sentences) > MAX_SENTENCES or content.isupper():  # shouted, it shows no names
        return ()
    speaker = frozenset((role or "").lower().split())
    return tuple(
        Claim(said, _whom(said, speaker), _topic(said), speaker)
        for said in sentences
        if not said.asks and said.mood is Mood.CLAIMED and not said.kin and not said.past
    )


def _whom(said: Statement, speaker: frozenset[str]) -> frozenset[str]:
    """Names, and the speaker's if it has a "my" or an "I" that does more than to see or to tell of somebody.

    "My sister Eva lives in Oslo" is about Eva alone.
    """
    if said.relative:
        return frozenset({said.relative})
    places = {part for text in said.located for part in text.lower().split()}
    if speaker and said.of_self and (MINE.search(said.low) or said.whom <= places):
        return said.whom | speaker
    return said.whom | {"you"} if "your" in said.words else said.whom


def _topic(said: Statement) -> frozenset[str]:
    """The telling tokens of what a sentence states, without names, values and words of change."""
    values = frozenset(token for value in (*said.days, *said.amounts) for token in tokenize(value))
    named = frozenset(token for word in said.whom for token in tokenize(word))
    rest = said.stated - named - values - GENERIC
    return frozenset(token for token in rest if rarity_of(token) >= TELLING and not token[0].isdecimal())


class Cues(NamedTuple):
    """What can be seen of a note at a glance: which frames it may fill, and whom it may be about."""

    frames: int
    whom: frozenset[str]


@lru_cache(maxsize=CACHED)
def cues(content: str, role: str | None) -> Cues:
    """A few microseconds, for every note is looked at."""
    if len(content) > MAX_CHARS or "?" in content:
        return _NOTHING
    low = content.lower()
    frames = _NUMBERED if _DIGIT.search(content) else 0
    for phrase, frame in _CUES:
        if phrase in low:
            frames |= frame
    names = _CAPITALS.findall(content)
    return Cues(frames, frozenset([*names, role] if role else names) - _NO_NAMES)


_NOTHING = Cues(0, frozenset())
_NO_NAMES = frozenset(
    "The This That There These They Thanks Thank We You Yes Yeah No My Our His Her It If Wow Hey So And But".split()
)


def tells(note: Note) -> bool:
    """Whether a note may say of others that they hold no more; quick."""
    return note.kind is Kind.EPISODIC and not note.archived and cues(note.content, note.role).frames != 0


def may_change(one: Note, other: Note) -> bool:
    """Whether it is worth reading what the two say: most pairs are not."""
    first, second = cues(one.content, one.role), cues(other.content, other.role)
    frames = first.frames & second.frames
    if frames & _OF_THINGS:
        return True
    told = (first.frames | second.frames) & _TOLD  # of the later one; which it is, their dates tell
    return bool(frames or told) and not first.whom.isdisjoint(second.whom)


def of_one_matter(one: Note, other: Note) -> bool:
    """Whether two facts may be told of the same, so that it is worth asking a model whether one replaces the other."""
    return any(
        _likeness(first, second) >= (OF_ONE if first.whom & second.whom else OF_ONE_THING)
        for first in statements(one.content)
        for second in statements(other.content)
    )


def _likeness(one: Statement, other: Statement) -> float:
    """The share of the topic, by rarity, that a sentence has in common with the one that has less to say."""
    first, second = _topic(one), _topic(other)
    if not first or not second:  # "Ann works at Nordlys" has no topic but its field
        return float(bool(one.matter & other.matter))
    return rarity(first & second) / min(rarity(first), rarity(second))


def rarity(tokens: Iterable[str]) -> float:
    """Of tokens together."""
    return sum(rarity_of(token) for token in tokens)
