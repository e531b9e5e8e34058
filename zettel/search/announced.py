"""Ranks a later announcement of a change before the statement that it changes.

Rules for facts (:mod:`zettel.link.fact_changes`) have to be nearly always right, because they make a note outdated.
This step only moves a note up, so it also reads statements without a fact: "the rehearsal moved to 7:30" after
"rehearsal starts at 7", or "no wait, the 26th" after "remind me of the dentist on the 24th". It reads short, direct
English.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from zettel.model import to_micros
from zettel.search.question_kind import asks_about_past, asks_when
from zettel.text.dates import find_dates
from zettel.text.mood import Mood
from zettel.text.statements import parse_sentences
from zettel.text.tokens import tokenize

if TYPE_CHECKING:
    from zettel.model import Note

DEPTH = 20
"""Best notes in which announcements are looked for."""
_MAX_WORDS = 60
"""A longer note is a story or a pasted text."""
_NEAR = 8
"""Notes between a message and its correction, at most."""
_SUBJECT_WORDS = 6
"""Words of a subject, at most."""
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_TIME = rf"(?:\d|noon|midnight|to(?:morrow|night)|next|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:{_MONTHS})\b)"
_PRESENT = re.compile(
    r"^\W*(?:(?:so|and|ok|hey|remind me|tell me),? )*(?:(?:in|at|on|for|to|with|by) )?"
    r"(?:who|whose|what|which|where|when|how (?:many|much|do|does|is|are|long|old)|is|are|am|do|does)\b",
    re.IGNORECASE,
)
_NOT_PRESENT = re.compile(
    r"\b(?:did|was|were|had|been|ever|used to|ago|last|yesterday|before|first|originally|would|could|should|might"
    r"|why)\b",
    re.IGNORECASE,
)
_GENERIC = frozenset(
    tokenize(
        "when where what which who how much many day date time name now still current currently live work do have get"
        " like start go take use make kind stay pay cost come open next right"
    )
)
"""Tokens of a question that name no thing."""
_ANSWER_HAS = (
    (asks_when, re.compile(_TIME, re.IGNORECASE)),
    (re.compile(r"\bhow (?:many|much|long|old|far)\b", re.IGNORECASE).search, re.compile(r"\d")),
)
"""Tests of questions, each with the pattern of a text that may answer."""
_OPENING = re.compile(
    r"^\W*(?:(?:oh|ok|so|and|but|btw|fyi|update|heads up|sorry|actually|good news|turns out|finally)\b[\s,:]*)*",
    re.IGNORECASE,
)
_MARK = re.compile(
    rf"^(?:(?:from|starting|as of) (?:next (?:week|month|year)|now on|now|tomorrow|today|\w+day|{_MONTHS})\b"
    r"|correction\b|changed (?:my|our) minds?\b|change of plans?\b|scratch that\b|make (?:that|it)\b)[\s,:]*",
    re.IGNORECASE,
)
"""Words at the start of a sentence that announce a change."""
_FIRST = re.compile(r"^(?:i|we)(?:'m|'re|'ve|'ll)?\b|^(?:going|went) with\b", re.IGNORECASE)
_ENDED = re.compile(r"\b(?:sold|gave (?:\w+ ){1,3}?away|got rid of|cancell?ed|ditched|no longer have)\b", re.IGNORECASE)
_NOW = re.compile(r"\b(?:now(?! and)|from now on|these days|no longer|any ?(?:more|longer)|instead)\b", re.IGNORECASE)
_NOT_NOW = re.compile(
    r"\bfor now\b|\bjust (?:for|this)\b|\b(?:for|only) th(?:is|e) (?:week|day|month|weekend|time)\b|\bthis once\b"
    r"|\b(?:right|just) now\b|\b(?:tried|almost|nearly|remember|demands?|insists?|wants?|asked|wish|hope)\b"
    r"|\blast (?:year|week|month|time)\b|\b(?:off|cancell?ed) (?:this|today|tonight|tomorrow|next)\b",
    re.IGNORECASE,
)
"""Words of what was, is only wished or is true for a short time."""
_DETERMINERS = frozenset("the my our this that these those new thing".split())
_BE = r"(?:'s |is |are |was |were |has |have |had |been |got )"
_MOVED = re.compile(
    rf"^{_BE}*(?:moved|moves|moving|pushed|postponed|rescheduled|shifted|brought forward|bumped|delayed|extended"
    rf"|put (?:off|back)|changed|switched|slipped)\b[^.!?,]{{0,30}}?\b(?:to|until|till|for|by) (?:the )?{_TIME}",
    re.IGNORECASE,
)
_IS = re.compile(
    r"^(?:is|are|was|costs?|starts?|takes?|meets?|goes?|opens?|closes?|has|have|uses?|works?|lives?)\b", re.IGNORECASE
)
_OVER = re.compile(rf"^{_BE}+(?:cancell?ed|called off|over|history|off)\b", re.IGNORECASE)
"""The words after a subject whose time moves, that has a value, or that ended."""
_INSTEAD_OF = re.compile(r"\b(?:instead of|rather than) (?:the |a |an |my |our )?([\w'-]+)", re.IGNORECASE)
_NOT_THE = re.compile(r", not (?:on |at |in )?(?:the |a |an |my )?([\w'-]+)", re.IGNORECASE)
"""The former value: "at an airbnb instead of the hotel", "on the 7th, not the 6th"."""
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b", re.IGNORECASE)
_FROM = re.compile(r"\b(?:from|starting|starts?|as of|beginning|effective|in)\b", re.IGNORECASE)
"""Words before the day from which a change is true."""
_CORRECTS = re.compile(
    r"^\W*(?:(?:oh|ah|ugh|ok|argh|hmm|and|but|so)\b[\s,.]*)*(?:no,? wait|wait,? no|wait|oops|whoops"
    r"|sorry,? (?:i meant|not)|i meant|correction|scratch that|my bad|my mistake|make that|actually,? (?:no|make|it'?s)"
    r"|no,? (?:sorry|actually|it'?s)|not \S+(?: \S+)?,? (?:but|it'?s))\b",
    re.IGNORECASE,
)
"""The start of a message that corrects one shortly before it, mostly without naming what it is about."""
_VALUE = re.compile(rf"{_TIME}|\btoday\b", re.IGNORECASE)


class _Asked(NamedTuple):
    """The tokens of a question and of the note that may have changed, the things that both name, and its answer."""

    known: frozenset[str]
    things: frozenset[str]
    answers: tuple[re.Pattern[str], ...]
    """Patterns that a text has to contain to answer."""


@lru_cache(maxsize=1024)
def asks_about_now(question: str) -> bool:
    """Return whether a question asks for a present state, so that a change may answer it."""
    if not _PRESENT.search(question) or _NOT_PRESENT.search(question):
        return False
    return not asks_about_past(question)


def announced_first(question: str, notes: Sequence[Note], today: int) -> list[int]:
    """Return the places of the notes, with the newest one first that announces a change of the first one.

    ``today`` is the time of the question in microseconds: a change from a later day on is not true yet.
    """
    places = list(range(len(notes)))
    if not notes or not asks_about_now(question):
        return places
    asked = _asked(question, notes[0])
    newer = [place for place in places[1:DEPTH] if _is_later(notes[0], notes[place])]
    changes = [
        place
        for place in newer
        if _corrects(notes[0], notes[place]) or _announces_change(asked, notes[place], today)
    ]
    if changes:
        newest = max(changes, key=lambda place: notes[place].seq)
        places.remove(newest)
        places.insert(0, newest)
    return places


def _asked(question: str, older: Note) -> _Asked:
    return _Asked(
        frozenset(tokenize(_ORDINAL.sub("", f"{question} {older.content}"))),
        _things(question, frozenset(tokenize(older.content)) - _GENERIC),
        tuple(answer for asks, answer in _ANSWER_HAS if asks(question)),
    )


def _announces_change(asked: _Asked, newer: Note, today: int) -> bool:
    """Return whether a note states that something has changed which the question and the older note both name."""
    known, things = asked.known, asked.things
    for sentence in parse_sentences(newer.content):
        text = _OPENING.sub("", sentence.text)
        if sentence.mood is not Mood.CLAIMED or sentence.is_question or _NOT_NOW.search(text):
            continue
        may_answer = all(answer.search(text) for answer in asked.answers)
        if _ends(text, things, known) or (may_answer and _changes(text, things, known)):
            return not _is_ahead(text, newer, today)
    return False


def _is_later(first: Note, second: Note) -> bool:
    """Return whether the second note is a later short statement of the same person.

    An assistant repeats what a person stated, so any person may change it.
    """
    if second.role == "assistant" or len(second.content.split()) > _MAX_WORDS or second.kind is not first.kind:
        return False
    if first.role != "assistant" and (second.role, second.speaker) != (first.role, first.speaker):
        return False
    if first.occurred_at is not None and second.occurred_at is not None and first.occurred_at != second.occurred_at:
        return second.occurred_at > first.occurred_at
    return second.seq > first.seq


def _things(question: str, shared: frozenset[str]) -> frozenset[str]:
    """Return the tokens of the question that an older note shares; of a compound ("trip budget") only the last."""
    things: set[str] = set()
    before: str | None = None
    for word in question.split():
        tokens = [token for token in tokenize(word) if token in shared]
        if tokens and before is not None:
            things.discard(before)
        before = tokens[-1] if tokens else None
        things.update(tokens[-1:])
    return frozenset(things)


def _ends(text: str, things: frozenset[str], known: frozenset[str]) -> bool:
    """Return whether a sentence states that one of the things ended: "race got cancelled", "we sold the car"."""
    if _FIRST.match(text):
        return bool(things) and things <= frozenset(tokenize(text)) and _ENDED.search(text) is not None
    rest, _ = _after_subject(text, things, known)
    return _OVER.match(rest) is not None


def _changes(text: str, things: frozenset[str], known: frozenset[str]) -> bool:
    """Return whether a sentence states that the things changed, as its subject or as what "I" or "we" have and do."""
    bare, marks = _MARK.subn("", text)
    if marks or _FIRST.match(bare):
        former = _INSTEAD_OF.search(bare)
        if former is not None and not known.isdisjoint(tokenize(former[1])):
            return True
        return bool(things) and things <= frozenset(tokenize(bare)) and (marks > 0 or _NOW.search(bare) is not None)
    rest, subject = _after_subject(bare, things, known)
    former = _NOT_THE.search(_ORDINAL.sub("", rest))
    if _MOVED.match(rest) or (former is not None and not known.isdisjoint(tokenize(former[1]))):
        return True
    is_new = _NOW.search(rest) is not None or "new" in subject
    return is_new and bool(_IS.match(rest) or (subject and subject[-1].endswith("'s")))


def _after_subject(text: str, things: frozenset[str], known: frozenset[str]) -> tuple[str, list[str]]:
    """Return what follows a subject of known words with all the things, and the subject; ("", []) for another one."""
    words = text.split()
    for end, word in enumerate(words[:_SUBJECT_WORDS], 1):
        if word.lower() not in _DETERMINERS and not known.issuperset(tokenize(word.removesuffix("'s"))):
            break
        if things and things <= frozenset(tokenize(" ".join(each.removesuffix("'s") for each in words[:end]))):
            rest = " ".join(words[end:])
            if _MOVED.match(rest) or _IS.match(rest) or _OVER.match(rest) or word.endswith("'s"):
                return rest, words[:end]
    return "", []


def _corrects(older: Note, newer: Note) -> bool:
    """Return whether a note begins as a correction of a note shortly before it, and has such a value as that one."""
    if not 0 < newer.seq - older.seq <= _NEAR or not _CORRECTS.search(newer.content):
        return False
    return bool(_VALUE.search(older.content) and _VALUE.search(newer.content))


def _is_ahead(text: str, note: Note, today: int) -> bool:
    """Return whether a sentence names a day from which its change will be true: "from next month"."""
    if note.occurred_at is None or not _FROM.search(text):
        return False
    days = find_dates(text, note.occurred_at)
    return bool(days) and max(to_micros(day.start) for day in days) > today
