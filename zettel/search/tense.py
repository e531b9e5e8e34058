"""The direction in which a question looks for a date without a year: a memory is mostly asked about the past."""

from __future__ import annotations

import re

from zettel.text.days import has_future, has_past

_SUBJECT = r"(?:i|we|they|he|she|it|(?!you\b)[a-z]+)"
_PLANS = re.compile(
    r"\bwhen(?:['\u2019]s|\s(?:is|are|do|does))\s|\b(?:am|are|should|must|have)\s(?:i|we)\s(?:got\b)?"
    rf"|\b(?:do|does)\s{_SUBJECT}\s(?:have|need|meet|leave|fly|start|travel|go|arrive|return|see|get|finish)\b"
    r"|\bcoming\b(?!\s(?:up|from|back|home)\b)"
)
"""Present forms that ask about plans: "when is", "do I have", "am I"."""
_PERFECT = re.compile(r"\bhave\s(?:i|we)\s(?!got\b)")
_OWN_FUTURE = re.compile(
    r"\b(?:will|shall|going\sto|gonna|upcoming|coming|tomorrow|due|scheduled)\b|['\u2019]ll\b|\bplan(?:s|ned)?\b.{0,60}\bfor\b"
)
"""Forms that give the date of a past statement a future: "What did we plan for June?"."""
_MORE_PAST = re.compile(
    r"\b(?:been|began|bought|brought|chose|done|drove|felt|flew|forgot|found|gave|heard|knew|learn[et]d?|left|lost|paid|ran|sa(?:id|w)"
    r"|sent|spoke|taught|thought|t(?:old|alked)|won|wrote|have\s(?:i|we|you)\s(?!got\b)|ha(?:s|ve)\s[a-z]+\s(?:been|[a-z]+ed))\b"
    r"|['\u2019]s\s(?:been|happened|changed)\b"
)
_IS = re.compile(r"\b(?:is|are|am)\b|\b(?:what|who|where|it|that|there)['\u2019]s\b")


def direction_of(question: str) -> int:
    """Return -1 if dates without a year are the last ones, 1 if they are the next ones, 0 if they are the nearest.

    Past is the default. A question in the present about what *is* on a date means the nearest one.
    """
    text = question.lower()
    future = has_future(text) or bool(_PLANS.search(_PERFECT.sub(" ", text)))
    past = has_past(re.sub(r"\b(?:have|are|am)\s(?:i|we)\sgot\b", " ", text)) or bool(_MORE_PAST.search(text))
    if future and past:
        return 0 if _OWN_FUTURE.search(text) else -1
    if future:
        return 1
    return 0 if not past and _IS.search(text) else -1
