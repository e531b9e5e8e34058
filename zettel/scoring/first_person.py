"""Decides whether a note answers a user's question about "I" or "my ...".

"I" is the speaker with the role ``user``. A note answers only if one of its clauses has the subject of the question and
a value of the requested kind. Many notes neither answer nor certainly fail to: the verdict on them is unsure.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from zettel.model import Kind
from zettel.text.clauses import UNKNOWN, Clause, Owner, find_owner, normalized, parse_clauses, persons
from zettel.text.mood import Mood
from zettel.text.statements import MAX_CHARS, ParsedSentence
from zettel.text.tokens import token_of, tokenize

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from zettel.model import Note


class Verdict(IntEnum):
    """The verdict on a note as the answer to a question. REFUTED: it certainly does not answer."""

    REFUTED = -1
    UNSURE = 0
    ANSWERS = 1


class OwnQuestion(NamedTuple):
    """A question of a user: its subject, tokens that an answer contains, all its tokens, and the kind of value."""

    owner: Owner
    needed: frozenset[str]
    tokens: frozenset[str]
    value: str


_POLITE = re.compile(
    r"^\W*(?:(?:can|could|would) you (?:please )?(?:tell|give|remind) me|do you know|please)\b", re.IGNORECASE
)
_YOU = re.compile(r"\byou(?:rs?)?\b", re.IGNORECASE)
_ME = re.compile(r"\bi\b|\bwe (?:live|work)\b", re.IGNORECASE)
_NOW = re.compile(r"\b(?:now|currently|at the moment|at present|today|these days|right now)\b", re.IGNORECASE)
_CALLED = re.compile(r"\b(?:called|named?)\b", re.IGNORECASE)
_ASKING = re.compile(
    r"^\W*(?:(?:and|but|so|or|please),? )*(?:who|whom|whose|what|which|where|when|why|how|is|are|am|was|were|do|does"
    r"|did|have|has|can|could|will|would|should|shall|may|might)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|never|no(?!,)|was|were|if|unless|whether)\b|n't\b", re.IGNORECASE)
_ADVERBS = r"\s*(?:(?:now|still|currently|just|already|both|all|actually|mostly) )*"
_BE = r"(?:'m|'re|'s|am|are|is)"
_VERBS = {
    "home": re.compile(
        rf"^{_ADVERBS}(?:lives?|(?:have |has |'ve |'s )?(?:moved|relocated) (?:back )?(?=to\b|into\b)"
        rf"|(?:have |has |'ve |'s )been living|{_BE} {_ADVERBS}(?:living|based)|rents? an? \w+)\b"
    ),
    "post": re.compile(
        rf"^{_ADVERBS}(?:works?|(?:have |has |'ve |'s )been working|{_BE} {_ADVERBS}(?:working|employed))\b"
    ),
}
_THINGS = {
    "home": frozenset(map(token_of, "home house flat apartment address".split())),
    "post": frozenset(map(token_of, "job employer workplace work company".split())),
}
"""The first verbs, and things of a person, that state a home or a job."""
_HOME = re.compile(r"\b(?:live|living|reside|home|based)\b", re.IGNORECASE)
_FOLLOWS = re.compile(
    r"^\s*(?:'s|:|(?:is|are|costs?|takes?|gets?|has|have|pays?|needs?|wants?|starts?)\b)"
)
"""Words after a complete subject."""
_IS = re.compile(r"^\s*(?:'s|:|(?:is|are)\b)\s*(?!about\b)")
_IS_NAME = re.compile(
    r"^\s*(?:'s|:|,|is|are)\s*(?:now )?(?:called |named )?(?:the )?"
    r"(?!(?:\w+ish|\w+ese|German|French|Dutch|Italian|American)\b)(?P<name>[^\W\d_a-z]\w*)"
)
_WORD = re.compile(r"\s+([\w-]+)")
_TIMES = (
    "january february march april may june july august september october november december monday tuesday wednesday"
    " thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays spring summer"
    " autumn winter morning evening afternoon night week weekend weekends weeks month months year years hour hours day"
    " days easter christmas while now moment myself"
)
_TIME = re.compile(rf"\b(?:{'|'.join(_TIMES.split())})\b", re.IGNORECASE)
_SITE = re.compile(
    r"\b(?:in|at|for|near|on|to|into|by|above|below|with|from|outside)"
    r" (?:(?:the|a|an|my|our|this|that|one|two|\d+|few|last|next|early|late) )*([^\W\d][\w'-]*)"
)
_SITES = {
    "home": re.compile(r"\b(?:in|at|near|to|into|on|from|outside) (?:the )?([^\W\d_a-z][\w'-]*)"),
    "post": re.compile(r"\b(?:in|at|for) ([^\W\d_a-z][\w'-]*)|\b(?:at|for) (?:the|an?) ([\w'-]+)"),
}
"""Homes are in places with names. Employers have names, or follow "at the" or "for a"."""
_MAYBE = {
    "money": re.compile(r"\d|[$€£]|\b(?:euros?|dollars?|pounds?|bucks|cents?|francs?)\b|\bfree\b", re.IGNORECASE),
    "day": re.compile(rf"\d|{_TIME.pattern}|\b(?:to(?:day|morrow|night)|next)\b", re.IGNORECASE),
    "number": re.compile(r"\d"),
    "name": re.compile(r"(?<!^)(?<![.!?] )\b(?!I\b)[^\W\d_a-z]\w+|^[^\W\d_a-z]\w+ is\b"),
}
"""Signs that a text may have a value of the kind."""


def parse_own_question(text: str, value: str, kind_tokens: AbstractSet[str]) -> OwnQuestion | None:
    """Parse a state question of a user; None if it is not about the user or what is theirs.

    ``value`` is the kind of value that it requires, and ``kind_tokens`` name such kinds.
    """
    text = normalized(_NOW.sub(" ", _POLITE.sub(" ", text)))
    if _YOU.search(text) and value != "money":  # "How much do you pay for the ferry?" is a question about everybody
        return OwnQuestion((), frozenset(), frozenset(), "you")
    owner = () if _ME.search(text) else find_owner(text)
    if owner is None:
        return None
    if _CALLED.search(text):
        value = "name"
    if value == "place" and _HOME.search(text):
        value = "home"
    tokens = frozenset(tokenize(_CALLED.sub(" ", text) if value == "name" else text))
    needed = tokens - frozenset(owner) - (kind_tokens if value else frozenset())
    return OwnQuestion(owner, needed, tokens, value)


def judge(question: OwnQuestion, note: Note) -> Verdict:
    """Return whether a note answers the question of a user."""
    is_own = note.role == "user" or (note.role is None and note.kind is Kind.SEMANTIC)
    if question.value == "you" or note.kind is Kind.INSIGHT or (note.role is None and not is_own):
        return Verdict.UNSURE
    verdicts = [_judge_sentence(question, *parsed, is_own=is_own) for parsed in parse_clauses(note.content)]
    unread = Verdict.UNSURE if len(note.content) > MAX_CHARS else Verdict.REFUTED
    return max([*verdicts, unread])


def _judge_sentence(
    question: OwnQuestion, sentence: ParsedSentence, clauses: tuple[Clause, ...], *, is_own: bool
) -> Verdict:
    if sentence.mood is Mood.SUPPOSED or sentence.past or not may_have_value(question.value, sentence.text):
        return Verdict.REFUTED
    if not is_own:  # "you" may repeat a statement of the user
        repeats = _YOU.search(sentence.text) and not sentence.is_first_person and not sentence.is_question
        return Verdict.UNSURE if repeats else Verdict.REFUTED
    fits = any(_fits(question, clause) for clause in clauses)
    if sentence.is_question or sentence.mood is Mood.DOUBTED:  # "I live in Porto, where could I swim?"
        is_aside = sentence.is_question and not _ASKING.search(sentence.text)
        return Verdict.UNSURE if fits or is_aside else Verdict.REFUTED
    if fits:
        return Verdict.ANSWERS
    others = bool(clauses) and all(_is_of_others(question.owner, clause.owner) for clause in clauses)
    return Verdict.REFUTED if others else Verdict.UNSURE


def _is_of_others(asked: Owner, stated: Owner) -> bool:
    """Return whether a subject is certainly not the one that the question is about."""
    if stated == UNKNOWN:
        return not asked
    return bool(persons(stated)) and persons(stated) != persons(asked)


def _fits(question: OwnQuestion, clause: Clause) -> bool:
    """Return whether a clause has the subject of the question and the value that it requires."""
    if _DENIED.search(clause.text):
        return False
    rest, value = _without(question.tokens, clause.rest), question.value
    if value in _VERBS:
        if clause.owner == question.owner:
            verb = _VERBS[value].search(clause.rest)
            has_value = verb is not None and _names_place(value, clause.rest[verb.end() :])
        else:
            is_thing = clause.owner[:-1] == question.owner and clause.owner[-1:] and clause.owner[-1] in _THINGS[value]
            has_value = bool(is_thing and _IS.search(clause.rest) and _names_place(value, clause.rest))
        return has_value and question.needed <= frozenset(tokenize(clause.text))
    if clause.owner != question.owner or (clause.owner and not _FOLLOWS.search(rest)):
        return False
    if not question.needed <= frozenset(tokenize(clause.text)):
        return False
    stated = ParsedSentence(clause.text)
    if value == "money":
        return bool(stated.amounts)
    if value == "day":
        return bool(stated.days)
    if value == "number":
        return bool(stated.numbers)
    if value == "name":
        name = _IS_NAME.search(rest)
        return name is not None and not _TIME.search(name["name"])
    is_stated = bool(_IS.search(rest)) or bool(question.needed)
    return is_stated and (value != "place" or has_place(rest))


def _without(tokens: AbstractSet[str], rest: str) -> str:
    """Return the text after the subject without the first words, if the question contains them as well."""
    while not _FOLLOWS.search(rest) and (match := _WORD.match(rest)):
        if (token := token_of(match[1].lower())) and token not in tokens:
            break
        rest = rest[match.end() :]
    return rest


def has_place(text: str) -> bool:
    """Return whether a text has a preposition before something that is not a time."""
    return any(not _TIME.search(match[1]) for match in _SITE.finditer(text))


def _names_place(value: str, text: str) -> bool:
    """Return whether a text after its verb names a home or an employer."""
    return any(not _TIME.search(match.group()) for match in _SITES[value].finditer(text))


def may_have_value(value: str, text: str) -> bool:
    if value in ("place", "home", "post"):
        return has_place(text)
    return value not in _MAYBE or bool(_MAYBE[value].search(text))
