"""Classifies sentences as claimed, doubted or supposed.

English marks irrealis by a closed set of means: conditionals with a past tense, modals, verbs of supposing, "nearly",
and attempts followed by a word for their failure.
"""

from __future__ import annotations

import re
from enum import IntEnum

SHORT_CLAUSE = 3
"""Spaces in a clause too short for a statement: "In that case, ...". """
MAX_SENTENCE = 1000
"""Characters of a sentence that are read."""


class Mood(IntEnum):
    """A claim, a claim with "might", or only a thought, a plan or a failed attempt."""

    CLAIMED = 0
    DOUBTED = 1
    SUPPOSED = 2


_SUPPOSING = re.compile(
    r"\b(?:imagin(?:e|es|ing)|suppos(?:e|es|ing)|what if|(?:can|could) you (?:picture|imagine|see)|in (?:another"
    r"|my next)"
    r" life|in theory|hypothetically|thinking aloud|wonder(?:s|ed|ing)? (?:if|whether)|(?:i|he|she|we) wish(?:es)?"
    r"|dream(?:t|s|ed|ing)? of|as if|let's say|pretend(?:s|ed|ing)?)\b"
)
_NEARLY = re.compile(
    r"\b(?:nearly|almost|(?:was|were) about to|came close to)\b(?! (?:every|all|always|each|as|a|an|the|\d+)\b)"
)
_UNREAL = re.compile(
    r"\bif\b(?! you(?:'re| (?:need|want|ever|have|like|meet|see))\b)[^.!?,;]*\b(?:were|had|could|would|might"
    r"|\w{3,}ed)\b"
    r"|\b(?:would|could|might|\w+'d)\b[^.!?]*\bif\b|\bif\b[^.!?]*\b(?:would|could|might|\w+'d)\b"
)
_PERHAPS = re.compile(r"\b(?:maybe|perhaps|possibly|one day|some ?day|rumou?rs?|allegedly|supposedly)\b")
_MODAL = re.compile(r"\b(?:would|wouldn't|could|might|\w+'d)\b|\b(?:we|they|somebody|someone|one) should\b")
_INTENDING = re.compile(
    r"\b(?:consider(?:s|ed|ing)?|(?:thinking|thought) (?:of|about)|toying|hop(?:e|es|ing) to|wants? to|wish to)\b"
    r"|\b(?:everyone|everybody|people|somebody|someone) (?:think|believe|claim|say)s?\b"
)
"""Thoughts and hearsay."""
_CHOOSING = re.compile(r"\b(?:would|\w+'d) (?:\w+ )?(?:choose|pick|prefer|say|recommend|go for|take|have)\b")
""""Would" also expresses a preference."""
_CLAUSE_END = re.compile(r"[,;:.!?]")

_ATTEMPT = re.compile(
    r"\b(?:(?:was|were|been|is|am|are) (?:going|meant|supposed|planning|hoping|close)|wanted|want|meant|hoped?|planned"
    r"|plans?|intended|intention|tried|try|trying|offer(?:ed)?|proposed|proposal|suggested|suggestion|considered"
    r"|talk(?:ed)?"
    r"|thought|toyed|appl(?:ied|y)|asked|idea|(?:my|his|her|an) eye|signed up|chance|looked at|request(?:ed)?"
    r"|candidate|vote"
    r"|discuss(?:ed|ion)|booked|for a (?:moment|while|week|day)|promised)\b"
)
"""Attempts and intentions."""
_FAILURE = re.compile(
    r"\b(?:dropped|rejected|refused|cancell?ed|declined|denied|no chance|said no|but no|in vain|without success|failed"
    r"|second thoughts|thought better|changed (?:my|his|her|their|our) mind|to nothing|came of (?:it|that)|fell through"
    r"|called off|gave (?:it )?up|given up|turned (?:(?:it|them|that) )?(?:down|out to be wrong)|buried"
    r"|never (?:\w+ed|heard|came|got|did)"
    r"|no time"
    r"|(?:did|was|were|could|had|has)(?:n't| not)|nobody|no one|against|threw|as it was|not convinced|nothing|wrong)\b"
)
"""Failures, if they follow an attempt."""
_DENIED = re.compile(
    r"\b(?:fell through|came to nothing|nothing came of|called off|false alarm|by mistake|second thoughts|turned down"
    r"|thought better of|which (?:is|was) wrong|never happened|just kidding|joking)\b"
)


def mood_of(low: str) -> Mood:
    """Return the mood of a sentence in lower case, by its first ``MAX_SENTENCE`` characters."""
    low = low[:MAX_SENTENCE]
    if any(form.search(low) for form in (_SUPPOSING, _NEARLY, _DENIED, _PERHAPS)):
        return Mood.SUPPOSED
    if " if " in f" {low}" and _UNREAL.search(low):
        return Mood.SUPPOSED
    attempt = _ATTEMPT.search(low)
    if attempt and _FAILURE.search(low, attempt.end()):
        return Mood.SUPPOSED
    if _INTENDING.search(low):
        return Mood.DOUBTED
    first = _CLAUSE_END.split(low, maxsplit=1)[0]
    modal = _MODAL.search(low if first.count(" ") < SHORT_CLAUSE else first)
    return Mood.DOUBTED if modal and not _CHOOSING.match(low, modal.start()) else Mood.CLAIMED
