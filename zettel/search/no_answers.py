"""Notes that cannot answer: those that only ask what is asked again, and replies that know nothing.

An agent often stores what a user asks, and its own "I don't know". When the user asks again, these notes fit best of
all by their words and vectors. So they rank after all others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from zettel.model.speakers import ROLES
from zettel.scoring.ranking import with_rows_of
from zettel.search.announced import asks_about_now
from zettel.search.asked_fact import OPENERS
from zettel.search.question_kind import asks_when
from zettel.text.extraction import is_question, sentences
from zettel.text.names import find_names
from zettel.text.tokens import tokenize

if TYPE_CHECKING:
    from zettel.model import Note
    from zettel.ports.query import Bools, Candidates
    from zettel.scoring.ranking import Ranked

MAX_SCORE = 0.05
"""Highest score of such a note: hardly one answers."""
MAX_WORDS = 20
"""A longer question or reply mostly states something, too."""
_ASSISTANT = ROLES.index("assistant")
_ABOUT_ASKING = re.compile(r"\b(?:ask(?:s|ed|ing)?|questions?|wonder(?:s|ed|ing)?|request(?:s|ed)?)\b", re.IGNORECASE)
_LEAD = re.compile(
    rf"^(?:(?:{OPENERS}|again|quick question)\b[\s,.:]*)+", re.IGNORECASE
)
_RECALL = re.compile(
    r"^(?:remind me|(?:can|could|do|would) you (?:please )?(?:tell me|remind me|remember|know|recall))\b[\s,.:]*"
    r"(?=(?:what|who|where|when|which|how)\b[^?]*\b(?:I|my|we|our)\b)",
    re.IGNORECASE,
)
"""Words before a question for what the user mentioned before: "Do you remember which dog I got?"."""
_OWN_FACT = re.compile(
    r"^(?:what|who|where|when|which|how (?:old|many|much|long|often|far|tall|big|fast))\b[\w ]{0,30}?"
    r"(?:(?:'s|\u2019s| is| are| was| were) (?:my|our)\b|(?: did| am| was| have| had) I\b|\bdo I (?:have|own|live|work"
    r"|like|prefer|drink|eat|drive|play|take|get|want|pay)\b)",
    re.IGNORECASE,
)
"""A question of a user for what the user knows: "When is my race?". How-to questions ("How do I fix …?") are not."""
_IGNORANT = re.compile(
    r"\bI(?:['\u2019]m| am) (?:not (?:sure|certain|aware)|unable to (?:recall|remember|see|access))\b|\bno idea\b"
    r"|\bI (?:do not|don['\u2019]?t|can(?:no|['\u2019])?t) (?:\w+ )?(?:know|recall|remember"
    r"|have (?:any |that |this |the |access|(?:a )?record|enough|information|memory))"
    r"|\b(?:could|can) you (?:please )?(?:remind|tell) me\b"
    r"|\byou (?:have not|haven['\u2019]?t|didn['\u2019]?t|never) (?:yet )?(?:t(?:old|ell)|mention\w*|shared?)\b",
    re.IGNORECASE,
)
_ADDS = re.compile(r"\b(?:but|however|though|although|except|only that|because|since)\b", re.IGNORECASE)
"""Words after which a reply may still answer: "I'm not sure of the time, but it is in May."."""
_NUMBER_OR_DAY = re.compile(
    r"\w*\d\w*|\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|to(?:day|night|morrow)|yesterday|January|February|March"
    r"|April|May|June|July|August|September|October|November|December)\b",
    re.IGNORECASE,
)


def may_answer_nothing(candidates: Candidates) -> Bools:
    """Return the rows of which :func:`answers_nothing` may be true, (n,)."""
    rows: Bools = candidates.is_question | (candidates.role == _ASSISTANT) & (candidates.length <= MAX_WORDS)
    return rows


def answers_nothing(note: Note, question: str) -> bool:
    """Return whether a note certainly does not answer.

    It asks only for what ``question`` asks or for what its user mentioned before, it is a request without a time
    although ``question`` asks for one, or it is a reply that knows nothing.
    If the question is about what somebody asked, every note may answer.
    """
    if _ABOUT_ASKING.search(question) or len(note.content.split()) > MAX_WORDS:
        return False
    asked = set(tokenize(question))
    if note.role == "assistant" and _IGNORANT.search(note.content) and not _ADDS.search(note.content):
        return asked >= _details([note.content])
    texts = [_LEAD.sub("", text.strip()) for text in sentences(note.content)]
    if not texts or not all(is_question(text) for text in texts):
        return False
    if asks_when(question) and asks_about_now(question) and not _NUMBER_OR_DAY.search(note.content):
        return True
    bare = [_RECALL.sub("", text) for text in texts]
    if all(asked.issuperset(tokenize(text)) for text in bare):
        return True
    is_own = all(_OWN_FACT.match(text) or text != whole for text, whole in zip(bare, texts, strict=True))
    return note.role == "user" and is_own and asked >= _details(bare)


def _details(texts: Sequence[str]) -> set[str]:
    """Return the tokens of names, numbers and days."""
    found = [name.text for text in texts for name in find_names(text)]
    found += [match for text in texts for match in _NUMBER_OR_DAY.findall(text)]
    return {token for text in found for token in tokenize(text)}


def ranked_last(ranked: Ranked, before: Ranked, rows: Sequence[int], least: float) -> Ranked:
    """Return a ranking without these rows, with them at its end, if their scores are at least ``least``.

    ``before`` is the ranking with them among all others.
    """
    rows = sorted(rows, key=lambda row: -float(before.scores.score[row]))
    scores = with_rows_of(ranked.scores, before.scores, rows)
    score = scores.score
    lowest = min((float(score[row]) for row in ranked.rows), default=MAX_SCORE)
    score[rows] = np.minimum(score[rows], min(lowest, MAX_SCORE))
    rows = [row for row in rows if score[row] >= least]
    return ranked._replace(rows=[*ranked.rows, *rows], scores=scores)
