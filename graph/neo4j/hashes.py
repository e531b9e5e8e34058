"""Words and sessions as keyed hashes, in the form that the database indexes.

A word's hash differs from scope to scope, so that whoever asks the full-text index for it gets the notes of one scope;
it holds no character that the index's query language knows, and tells nothing once the scope's secret is gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from zettel.batch import NoteIndex
from zettel.graph.embedded.keys import Keys
from zettel.model import TIME_MIN, Note, to_micros

_UNSIGNED = 2**64 - 1
_PLACES = -TIME_MIN
"""Added to a time, so that its digits sort as it does."""


def word(keys: Keys, token: str) -> str:
    """A token's hash: 16 hexadecimal digits."""
    return f"{keys.word(token) & _UNSIGNED:016x}"


def session_prefix(keys: Keys, scope: str, session: str | None) -> str | None:
    """What the places of a session begin with: 48 digits, the scope's key and the hash of its name."""
    if session is None:
        return None
    return scope + hashlib.blake2b(("n" + session).encode(), digest_size=8, key=keys.secret).hexdigest()


def stands(micros: int) -> str:
    """A time as the digits that a place holds: 19."""
    return f"{micros + _PLACES:019}"


def arrived(seq: int) -> str:
    """A number in the order of arrival as the digits that a place holds: 12."""
    return f"{seq:012}"


def index_row(index: NoteIndex, keys: Keys, scope: str) -> dict[str, Any]:
    """What a note is found by, as it is stored: all its words once, and the counts of those that stand there often."""
    words: Mapping[str, int] = {word(keys, token): count for token, count in index.tokens.items()}
    return {
        "words": " ".join(words),
        "often": " ".join(f"{name}={count}" for name, count in words.items() if count > 1),
        "length": index.length,
        "titled": scope if index.title_keys else None,
        "terms": [{"name": use.key, "text": use.text, "kind": use.kind, "count": use.count} for use in index.terms],
        "titles": list(index.title_keys),
    }


def rest_row(note: Note, keys: Keys, scope: str, *, asks: bool) -> dict[str, Any]:
    """What must be worked out with the note's events."""
    return {
        "id": note.id,
        "events": list(note.event_ids),
        "prefix": None if note.archived else session_prefix(keys, scope, note.session),
        "part": f"{note.part:06}{arrived(note.seq)}",
        "valid_from": TIME_MIN if note.valid_from is None else to_micros(note.valid_from),
        "asks": asks,
    }
