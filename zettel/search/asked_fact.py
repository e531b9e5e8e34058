"""Finds the notes that state the fact which a question of a user asks for: "Where do I live?" asks for a home.

Questions and statements are read by the same patterns (:mod:`zettel.text.frames`), so that "I moved to Graz for a new
job" answers although it shares no word with the question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from zettel.text.asserted import expanded
from zettel.text.facts import Fact, belongings, endings, facts
from zettel.text.language_files import asking_languages
from zettel.text.owners import Owner, owner_of
from zettel.text.tokens import tokenize
from zettel.text.values import is_named

if TYPE_CHECKING:
    from zettel.model import Note

MAX_CHARS = 120
"""Longest question."""
CERTAIN = 0.9
"""Lowest score of a note that states the fact: nine in ten of them answer."""
ROLE = "role"
"""The attribute of who somebody is to a person: a boss, a wife, a dentist."""
USER = "user"
"""Whom "I" in a question means: the speaker of notes with this role."""
OPENERS = "and|so|but|please|hey|hi|ok|okay|well|then|also|by the way"
"""Words that may open a question without a part in it."""
_LEAD = re.compile(
    rf"^(?:(?:{OPENERS}|(?:can you |could you |)(?:tell|remind) me"
    r"|do you (?:know|remember))\b[\s,:]*)+",
    re.IGNORECASE,
)
"""Words before a question."""
_PRESENT = re.compile(
    r"\b(?:now|currently|still|again|exactly|today|please|nowadays|at the moment|right now|these days|at present)\b"
    r"[\s,]*",
    re.IGNORECASE,
)
"""Words that do not change which fact a question asks for."""
_FORMER = re.compile(
    r"\b(?:before(?: that| then)?|previously|formerly|earlier|in the past)$|\b(?:old|former|previous|last|ex)\b(?=\s\w)"
    r"|\buse[d]? to\b",
    re.IGNORECASE,
)
"""Words that ask for the state before the present one."""
_WHO_WAS = re.compile(r"who (?:was|were)\b", re.IGNORECASE)
_DATE = re.compile(r"\s(?:back\s)?(?:in|on|during|around|by|as of|at)\s.+$", re.IGNORECASE)
"""The end of a question that names a time."""
_PRESENT_FORMS = (
    (r"\bdid\b", "do"), (r"\bwas i\b", "am i"), (r"\bwas\b", "is"), (r"\bwere\b", "are"), (r"\bhad\b", "have"),
)  # fmt: skip
"""Past forms, with those in which patterns of questions are written."""
When: TypeAlias = Literal["now", "before", "then"]


class AskedFact(NamedTuple):
    """The fact that a question asks for: whose it is, its attribute, and the tokens of the thing, such as {"boss"}.

    ``when``: the present state, the one before it, or that of a time which the question names.
    """

    owner: Owner
    attribute: str
    thing: frozenset[str]
    when: When = "now"


@lru_cache(maxsize=1024)
def asked_fact(text: str, is_dated: bool = False) -> AskedFact | None:
    """Return the fact about the user that a question asks for, None if it asks for anything else.

    ``is_dated``: whether the question names a time.

    >>> asked_fact("Where does my wife work?").attribute
    'work'
    >>> asked_fact("Where did I live before?").when
    'before'
    """
    if len(text) > MAX_CHARS:
        return None
    if (asked := _asked(text)) is not None:
        return asked
    bare = text.rstrip(" ?.!")
    if _FORMER.search(bare) or _WHO_WAS.match(bare):
        asked = _asked(_in_present(_FORMER.sub("", bare)))
        return asked and asked._replace(when="before")
    if is_dated and (date := _DATE.search(bare)):
        asked = _asked(_in_present(bare[: date.start()]))
        return asked and asked._replace(when="then")
    return None


def _in_present(question: str) -> str:
    for past, present in _PRESENT_FORMS:
        question = re.sub(past, present, question, flags=re.IGNORECASE)
    return " ".join(question.split())


def _asked(text: str) -> AskedFact | None:
    for own in asking_languages():
        question = _bare(expanded(text.replace("\u2019", "'").strip(), own))
        for attribute, pattern in own.asks:
            match = pattern.fullmatch(question)
            if match is None:
                continue
            groups = match.groupdict()
            owner = owner_of(groups.get("subject") or own.me, USER, own)
            if owner is not None and USER in owner.person:  # of others, changes are often only implied
                return AskedFact(owner, attribute, frozenset(tokenize(groups.get("thing") or "")))
    return None


def stating(asked: AskedFact, notes: Sequence[Note]) -> list[int]:
    """Return the places of the notes that state the fact, or its end ("Ana and I split up"), best first.

    That is the order of the notes if there may be several such facts ("What am I allergic to?"), else the latest first.
    """
    found: dict[int, Fact] = {}
    for place, note in enumerate(notes):
        if (stated := stated_fact(asked, note)) is not None:
            found[place] = stated
    found |= {
        place: end
        for place, note in enumerate(notes)
        if place not in found and note.role == USER
        for end in endings(note)
        if any(is_named(fact.value, end.value) for fact in found.values())
    }
    if all(fact.exclusive == "never" for fact in found.values()):
        return list(found)
    return sorted(found, key=lambda place: (-_time(notes[place]), place))


def stated_fact(asked: AskedFact, note: Note) -> Fact | None:
    """Return the fact that is asked for as a note states it, or its end."""
    return next((fact for fact in facts(note) if _states(asked, fact, note)), None) or _named(asked, note)


def _states(asked: AskedFact, fact: Fact, note: Note) -> bool:
    if fact.attribute != asked.attribute or fact.temporary:
        return False
    if fact.owner.path != asked.owner.path or (asked.thing and asked.thing != fact.thing):
        return False
    return note.role == USER and fact.owner.person == frozenset((note.speaker or USER).lower().split())


def _named(asked: AskedFact, note: Note) -> Fact | None:
    """Return what a note of the user names in passing: "my wife Ana" for "What is my wife called?"."""
    if asked.attribute != ROLE or asked.owner.path or note.role != USER:
        return None
    for fact in belongings(note):
        what = list(takewhile(str.islower, fact.value.text.split()))
        if asked.thing == frozenset(tokenize(" ".join(what))) and len(what) < len(fact.value.text.split()):
            return fact._replace(exclusive="marked")
    return None


def _time(note: Note) -> float:
    return note.valid_from.timestamp() if note.valid_from else 0.0


def _bare(question: str) -> str:
    """Return a question without polite words before it and words for the present."""
    return _PRESENT.sub("", _LEAD.sub("", question.rstrip(" ?.!"))).strip(" ,")
