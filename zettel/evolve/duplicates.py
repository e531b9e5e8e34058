"""Finds duplicates: notes with the same statement.

Two notes are duplicates if their keys are equal. So the groups do not depend on the order of arrival, and every store
finds the same groups. A cosine would depend on both, and it hardly distinguishes numbers, names or a "not".

The key ignores case, punctuation, pleasantries ("Well, ...", "... Thanks!"), contractions, articles and a few words of
emphasis. It contains all other words in order, numbers, signs, speaker, role, kind, title and metadata. It also
contains day and session, because an event that somebody reports again happened again. Only a lasting state ("I'm
vegan.", see :mod:`zettel.text.states`) is the same fact on every day and in every session; without a speaker, each
session may be another person.

Small talk ("thanks") and bare answers ("In Oslo.") are never duplicates, because their meaning depends on the turn
before. The same applies to questions, which explain the answer after them, parts of a long event, and replaced facts.
"""

from __future__ import annotations

import json
import re
import unicodedata
from hashlib import blake2b

from zettel.model import Kind, Note
from zettel.text.extraction import is_question
from zettel.text.filler import is_filler
from zettel.text.states import is_state
from zettel.text.tokens import clean, words

MIN_WORDS = 4
"""Shorter statements depend on earlier turns, except for states."""
MIN_CONTENT_WORDS = 2
"""The fewest different content words."""
STATED_BY = frozenset({None, "user", "assistant"})
"""Roles whose states last. A tool reports the state of a moment, and a document may be a new version."""
MERGEABLE = frozenset({Kind.EPISODIC, Kind.SEMANTIC, Kind.PROCEDURAL})
"""Kinds of notes that are merged. Insights are not, because the reflect job writes them again from their sources."""

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


def duplicate_key(note: Note) -> bytes | None:
    """Return the 16-byte key that duplicates share; None for a note that is never merged."""
    if note.archived or note.parts > 1 or note.valid_to is not None or note.kind not in MERGEABLE:
        return None
    if is_question(note.content) or is_filler(note.content, note.role):
        return None
    wording = normalized(note.content)
    lasts = note.role in STATED_BY and is_state(note.content)
    content_words = {word.token for word in words(note.content) if word.token}
    if not lasts and (len(wording) < MIN_WORDS or len(content_words) < MIN_CONTENT_WORDS):
        return None
    session = None if lasts and note.speaker else note.session
    day = note.occurred_at.date().isoformat() if note.occurred_at and not lasts else None
    fields = [
        note.kind.value, (note.speaker or "").casefold(), note.role, normalized(note.title or ""), session, lasts, day,
        wording, json.dumps(note.metadata, sort_keys=True),
    ]  # fmt: skip
    return blake2b(json.dumps(fields).encode(), digest_size=16).digest()


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
