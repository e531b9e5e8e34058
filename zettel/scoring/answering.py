"""Which of the best notes answers a question about how something is now: read again, by what they state.

Words and vectors find what is about the same. For a question that asks for one fact (where Ann lives, what a ticket
costs) more can be told from the few best notes: whether they speak of the one who is asked about, claim it or only
suppose it, and hold a value of the kind that is asked for. Of those that answer alike the latest holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from math import log1p
from typing import TYPE_CHECKING, NamedTuple

from zettel.annotate.mood import Mood
from zettel.annotate.names import find_names
from zettel.annotate.statements import Matter, Statement, matter_of, statements
from zettel.annotate.tokens import tokenize
from zettel.model import Kind

if TYPE_CHECKING:
    from zettel.model import Note

READ_AGAIN = 20
"""Best notes that are read again: an answer that words and vectors leave further behind is seldom one."""
ASKED_CHARACTERS = 1_000
"""Longest question that is taken for one: beyond it a document was pasted, and it asks for more than one thing."""
KEPT = 10
"""Best notes that stay the best ten or so, but for those behind them that answer."""
COVERED = 0.6
"""Share of the asked words besides names that an answer has."""
LATER_WITHIN = 1.5
"""Log-odds within which two notes with as many of the asked words answer alike, so that the later one holds."""
PLACE = 0.7
"""What a place further down costs, times ln(1 + place)."""
SUPPOSED, DOUBTED, ASKED = -4.0, -2.0, -3.0
ABOUT, NOT_ABOUT = 2.0, -2.0
FIELD, VALUE, TOPIC, PAST, FACT = 1.5, 3.0, 3.0, -3.0, 2.0
"""Log-odds by which a note rises or falls for each thing that is read in it. Chosen by hand, round numbers."""

_STATE = re.compile(
    r"^\W*(?:(?:can|could|would) you (?:please )?(?:tell|give)|(?:please )?(?:tell|give|remind) (?:me|us)\b"
    r"|(?:do you know )?(?:(?:in|at|on|for|to|with|by) )?(?:who|whom|whose|what|which|where|when|how)\b[^?.!]*?\b"
    r"(?:is|'s|does|do (?:i|we|you)|costs?|takes?|looks?|lives?|works?|runs?|owns?|keeps?)\b|(?:is|does)\b)",
    re.IGNORECASE,
)
_NO_STATE = re.compile(
    r"\b(?:did|was|were|had|been|used to|ago|last|yesterday|would|could|might|why|are|kinds?|types?|some|feel|think"
    r"|one of"
    r"|in common|both|many|often|long|ways|going to|planning|about|want)\b(?! you)"
    r"|\b(?:what|which) (?:\w+ ){0,2}?\w*[^\Wsui]s (?:do|does|has|have)\b|\b(?:has|have) (?:\w+ ){1,2}(?:\w+ed|done"
    r"|made|taken|won)\b",
    re.IGNORECASE,
)
_MONEY = re.compile(r"\b(?:how much|costs?|prices?|pay)\b", re.IGNORECASE)
_DAY = re.compile(r"\b(?:(?:what|which) (?:day|date)|when (?:is|are)|for when)\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"\b(?:numbers?|codes?|password|pin|space|seat|extension|version|limit|timeout|age)\b", re.IGNORECASE
)
_NAME = re.compile(r"\b(?:who|whom|whose|name of)\b", re.IGNORECASE)
_PLACE = re.compile(r"\b(?:where|(?:which|what) (?:town|city|country|place))\b", re.IGNORECASE)
_POST = re.compile(
    r"\b(?:employ(?:er|ed|s)|(?:which|what) (?:company|firm)|(?:where|who)\b.*\b(?:work|works|job))\b", re.IGNORECASE
)
_VALUES = (("money", _MONEY), ("day", _DAY), ("number", _NUMBER), ("post", _POST), ("place", _PLACE), ("name", _NAME))
"""Kinds of values, the surest sign first."""
_EMPTY = frozenset(
    tokenize(
        "town city place day date time name set value tell give know fixed home live living job work working"
        " employer employed"
        " company firm like best fond favourite favorite responsible charge look care take cost price use thing"
    )
)
"""Tokens that say which kind of answer is asked for, and nothing about what."""


class Wanted(NamedTuple):
    """What a question about a state asks for: tokens of whom, of what besides, in which field, which kind of value."""

    whom: frozenset[str]
    topic: frozenset[str]
    matter: Matter
    value: str


def wanted(text: str) -> Wanted | None:
    """What ``text`` asks for, or None: it asks for no single state of the present."""
    if len(text) > ASKED_CHARACTERS or not _STATE.search(text) or _NO_STATE.search(text):
        return None
    whom = frozenset(token for name in find_names(text) for token in tokenize(name.text))
    topic = frozenset(token for token in tokenize(text) if token not in whom and token not in _EMPTY)
    value = next((kind for kind, form in _VALUES if form.search(text)), "")
    return Wanted(whom, topic, matter_of(text.lower().replace("?", " ").split()), value)


class Told(NamedTuple):
    """How well a note answers, in log-odds, whether one of its sentences is all that was asked for, and how many of the
    asked words besides names that holds."""

    worth: float
    answers: bool
    held: int = 0


def telling(asked: Wanted, note: Note, speakers: Collection[str] = ()) -> Told:
    """What the best sentence of a note says to a question; an insight only repeats what others say."""
    if note.kind is Kind.INSIGHT:
        return Told(NOT_ABOUT, False)
    role = frozenset(tokenize(note.role)) if note.role else frozenset()
    best = max((_told(asked, said, role, speakers) for said in statements(note.content)), default=Told(0.0, False))
    return best._replace(worth=best.worth + FACT) if note.kind is Kind.SEMANTIC else best


def _told(asked: Wanted, said: Statement, role: frozenset[str], speakers: Collection[str]) -> Told:
    held = len(asked.topic & said.stated)
    covered = held / len(asked.topic) if asked.topic else 1.0
    claimed = said.mood is Mood.CLAIMED and not said.asks
    about = not asked.whom or _is_about(asked.whom, said, role)
    field = bool(asked.matter & said.matter)
    holds = not asked.value or _holds(asked, said, speakers)
    worth = TOPIC * covered if asked.topic else 0.0
    worth += SUPPOSED if said.mood is Mood.SUPPOSED else DOUBTED if said.mood is Mood.DOUBTED else 0.0
    worth += (ASKED if said.asks else 0.0) + (PAST if said.past else 0.0)
    worth += (ABOUT if about else NOT_ABOUT) if asked.whom else 0.0
    worth += (FIELD if field else 0.0) + (VALUE if asked.value and holds else 0.0)
    enough = covered >= (COVERED if asked.value else 1.0) and (field or bool(asked.topic))
    return Told(worth, claimed and about and holds and enough and not said.past, held)


def _is_about(whom: frozenset[str], said: Statement, role: frozenset[str]) -> bool:
    if said.kin:
        return False
    if not whom.isdisjoint(role):
        return said.of_self
    return not whom.isdisjoint(said.tokens)


def _holds(asked: Wanted, said: Statement, speakers: Collection[str]) -> bool:
    """Whether it holds a value of the kind asked for, besides what the question names itself."""
    known = asked.whom | asked.topic
    if asked.value == "money":
        return bool(said.amounts)
    if asked.value == "day":
        return bool(said.days)
    if asked.value == "number":
        return bool(said.numbers)
    if asked.value in ("place", "post"):
        places = said.located if asked.value == "place" else said.posts
        return any(place not in speakers and asked.whom.isdisjoint(tokenize(place)) for place in places)
    return (said.of_self and not asked.whom) or any(not tokens <= known for _, tokens in said.names)


class Answering(NamedTuple):
    """Places of notes, the best answer first, and what each note is worth, by its former place."""

    places: list[int]
    worth: list[float]


def order(
    question: str,
    notes: Sequence[Note],
    speakers: Collection[str] = (),
    replaced: Mapping[int, int] | None = None,
) -> Answering | None:
    """The order in which the best notes, best first, answer a question; None, if none does: the one they have stands.

    ``speakers`` are the roles of the scope. ``replaced`` gives the place of what replaced a note, by the note's own:
    what replaced an answer is one.
    """
    asked = wanted(question)
    if asked is None or len(notes) < 2:
        return None
    told = [telling(asked, note, speakers) for note in notes]
    read = [one.worth for one in told]
    answers = [one.answers and (bool(asked.value) or place < KEPT) for place, one in enumerate(told)]
    held = [one.held for one in told]
    over = replaced or {}
    for old, new in sorted(over.items(), key=lambda pair: notes[pair[0]].seq):
        if answers[old]:
            answers[new], read[new] = True, max(read[new], read[old])
            held[new] = max(held[new], held[old])
    best = max((read[place] for place, it in enumerate(answers) if it), default=None)
    if best is None:
        return None
    line = best - LATER_WITHIN
    most = max(held[place] for place, it in enumerate(answers) if it)  # "garden gate": the house's gate is another
    worth = [value - PLACE * log1p(place) for place, value in enumerate(read)]

    def rank(place: int) -> tuple[int, float, float]:
        since = notes[place].valid_from
        if not answers[place]:
            return (2, 0.0, -worth[place]) if place < KEPT else (3, 0.0, place)
        if read[place] < line or held[place] < most or place in over:
            return 1, 0.0, -worth[place]
        return 0, -since.timestamp() if since else 0.0, -worth[place]

    return Answering(sorted(range(len(notes)), key=rank), worth)
