"""Normalizes the wording of a statement, so that equal statements have equal wording.

The wording ignores case, punctuation, pleasantries ("Well, ...", "... Thanks!"), contractions, articles and a few words
of emphasis. It contains all other words in order, numbers and signs.
"""

from __future__ import annotations

import re
import unicodedata

from zettel.text.filler import is_filler
from zettel.text.tokens import clean, words

_PAUSE = re.compile(r"(?:[.!?,;:\u2026]+|\s[-\u2013\u2014]+)(?=\s|$)|\n+|[\u3001\u3002]")
_MINUS = re.compile("\u2013(?=\\d)")
"""A dash that replaces a minus or the hyphen of a range."""
_OPTIONAL = frozenset("a an the really very actually".split())
"""Articles and words of emphasis. "Just" and "only" are not among them: after "not" they reverse the meaning."""
_COUNTS = frozenset("few little".split())
"""Words before which an article changes the meaning: "a few"."""
_SIGNIFICANT_SIGNS = frozenset("%#&@/\\-")
_IRREGULAR = {"can't": ("can", "not"), "won't": ("will", "not"), "shan't": ("shall", "not"), "cannot": ("can", "not")}
_ENDINGS = {"n't": "not", "'m": "am", "'re": "are", "'ve": "have", "'ll": "will"}
_IS = frozenset(f"{word}'s" for word in "it that there here he she what who where".split())
"""Words in which "'s" means "is" and is not a possessive."""


def normalized(text: str) -> tuple[str, ...]:
    """Return the case-folded words and significant signs of a text, without optional words."""
    tokens: list[str] = []
    for piece in _PAUSE.split(_MINUS.sub("-", clean(text))):
        if not (is_filler(piece) and any(sign.isalnum() for sign in piece)):
            tokens += _words(piece)
    pairs = zip(tokens, [*tokens[1:], ""], strict=False)
    return tuple(token for token, after in pairs if token not in _OPTIONAL or after in _COUNTS)


def _words(piece: str) -> list[str]:
    tokens: list[str] = []
    end = 0
    for word in words(piece):
        tokens += _signs(piece[end : word.start])
        tokens += _expand(word.text.casefold())
        end = word.end
    return tokens + _signs(piece[end:])


def _signs(gap: str) -> list[str]:
    """Return the significant signs between two words: currencies, operators, emoji, vowel signs, a minus."""
    return [sign for sign in gap.strip() if sign in _SIGNIFICANT_SIGNS or unicodedata.category(sign)[0] in "SM"]


def _expand(word: str) -> tuple[str, ...]:
    """Expand a contraction: I am, do not."""
    if "'" not in word and word != "cannot":
        return (word,)
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word in _IS:
        return (word[:-2], "is")
    for ending, expanded in _ENDINGS.items():
        if word.endswith(ending):
            return (word.removesuffix(ending), expanded)
    return (word,)
