"""Finds duplicates: notes that say the same thing.

Two notes are duplicates if their keys are equal. Equality of keys is an equivalence, so the groups do not depend on
the order in which notes arrived, and every store finds the same ones. A cosine would depend on both, and it hardly
distinguishes numbers, names or a "not", which are the only difference between many statements.

What does not count in a key: case, punctuation, pleasantries around what is said ("Well, ...", "... Thanks!"),
contractions, articles and a few words that only stress. Everything else does: every other word in its place, numbers,
signs, speaker, kind, its title, its session and metadata (filters ask for both, and would find
no more than what the one that stays has), and its day. Said again on another day, a statement tells that it still
holds, or that it happened again: its date is news, and what was true in between may be something else.

Never duplicates: small talk ("thanks") and bare answers ("In Oslo."), which mean what stands before them; questions,
for the answer after each is understood by it; parts of a long event; what was replaced by a later fact.
"""

from __future__ import annotations

import json
import re
import unicodedata
from hashlib import blake2b

from zettel.model import Kind, Note
from zettel.text.extraction import is_question
from zettel.text.filler import is_filler
from zettel.text.tokens import clean, words

MIN_WORDS = 4
"""Shorter statements depend on earlier turns."""
MIN_TELLING = 2
"""The least different content words."""
MERGEABLE = frozenset({Kind.EPISODIC, Kind.SEMANTIC, Kind.PROCEDURAL})
"""Insights are made anew from what they rest on, so two of them are not kept apart by accident."""

_PAUSE = re.compile(r"(?:[.!?,;:\u2026]+|\s[-\u2013\u2014]+)(?=\s|$)|\n+|[\u3001\u3002]")
_MINUS = re.compile("\u2013(?=\\d)")
"""A dash that is meant for a minus, or for the hyphen of a range."""
_STRESS = frozenset("a an the really very actually".split())
"""Words that may be missing: articles and stress. Not "just" or "only": after "not" they turn the meaning."""
_AMOUNTS = frozenset("few little".split())
"""Words before which an article does mean something."""
_TELLING_SIGNS = frozenset("%#&@/\\-")
_IRREGULAR = {"can't": ("can", "not"), "won't": ("will", "not"), "shan't": ("shall", "not"), "cannot": ("can", "not")}
_ENDINGS = {"n't": "not", "'m": "am", "'re": "are", "'ve": "have", "'ll": "will"}
_IS = frozenset(f"{word}'s" for word in "it that there here he she what who where".split())
"""Where "'s" is "is" and no possessive."""


def duplicate_key(note: Note) -> bytes | None:
    """Return the 16-byte key that duplicates share; None for a note that is never merged."""
    if note.archived or note.parts > 1 or note.valid_to is not None or note.kind not in MERGEABLE:
        return None
    if is_question(note.content) or is_filler(note.content, note.role):
        return None
    wording = normalized(note.content)
    telling = {word.token for word in words(note.content) if word.token}
    if len(wording) < MIN_WORDS or len(telling) < MIN_TELLING:
        return None
    day = note.occurred_at.date().isoformat() if note.occurred_at else None
    told = [
        note.kind.value, (note.speaker or "").casefold(), normalized(note.title or ""), note.session, day, wording,
        json.dumps(note.metadata, sort_keys=True),
    ]  # fmt: skip
    return blake2b(json.dumps(told).encode(), digest_size=16).digest()


def normalized(text: str) -> tuple[str, ...]:
    """Return the case-folded words and significant signs of a text, without optional words."""
    found: list[str] = []
    for piece in _PAUSE.split(_MINUS.sub("-", clean(text))):
        if not (is_filler(piece) and any(sign.isalnum() for sign in piece)):
            found += _words(piece)
    following = [*found[1:], ""] if found else []
    return tuple(word for word, after in zip(found, following, strict=True) if word not in _STRESS or after in _AMOUNTS)


def _words(piece: str) -> list[str]:
    found: list[str] = []
    end = 0
    for word in words(piece):
        found += _signs(piece[end : word.start])
        found += _written_out(word.text.casefold())
        end = word.end
    return found + _signs(piece[end:])


def _signs(gap: str) -> list[str]:
    """Return the significant signs between two words: currencies, operators, emoji, vowel signs, a minus."""
    stripped = gap.strip()
    if not stripped:
        return []
    return [sign for sign in stripped if sign in _TELLING_SIGNS or unicodedata.category(sign)[0] in "SM"]


def _written_out(word: str) -> tuple[str, ...]:
    """Contractions in full: I am, do not."""
    if "'" not in word and word != "cannot":
        return (word,)
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word in _IS:
        return (word[:-2], "is")
    for ending, whole in _ENDINGS.items():
        if word.endswith(ending):
            return (word.removesuffix(ending), whole)
    return (word,)
