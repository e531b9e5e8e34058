"""Keyed hashes of words and sessions, and the text properties built from them.

A word's hash differs between scopes, so a full-text query returns notes of one scope only. It contains no character
with a meaning in the query language, and is unreadable once the scope's secret is destroyed.

A *place* orders the events of a session as text: 32 characters of the scope's key, 16 of the session's hash, 19 digits
of time and 12 of ``seq``. The place of a note ends with its part and its own ``seq``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zettel.graph.bodies import micros_or_min
from zettel.graph.keys import Keys
from zettel.model import TIME_MIN, Note, NoteIndex, to_micros
from zettel.text.extraction import is_question

if TYPE_CHECKING:
    from zettel.ports.query import Floats

HALF = "<f2"
"""The dtype of the vectors that a search reads: half the size of the stored ones."""

HASH_STRIDE = 17
"""Characters from one hash to the next in a text of hashes."""

_UNSIGNED = 2**64 - 1
_TIME_OFFSET = -TIME_MIN
"""Added to a time, so that its digits sort like the time."""


def word_hash(keys: Keys, token: str) -> str:
    """Return a token's hash: 16 hexadecimal digits."""
    return f"{keys.word(token) & _UNSIGNED:016x}"


def place_prefix(keys: Keys, scope: str, session: str | None) -> str | None:
    """Return the first 48 characters of all places in a session."""
    if session is None:
        return None
    return scope + hashlib.blake2b(("n" + session).encode(), digest_size=8, key=keys.secret).hexdigest()


def time_digits(micros: int) -> str:
    """Return a time as the 19 digits of a place."""
    return f"{micros + _TIME_OFFSET:019}"


def seq_digits(seq: int) -> str:
    """Return a ``seq`` as the 12 digits of a place."""
    return f"{seq:012}"


NO_TIME = time_digits(TIME_MIN)
"""The time of undated events that precede all dated events of their session."""


def session_of(place: str) -> str:
    """Return the session's hash from a place or its prefix."""
    return place[32:48]


def time_of(place: str | None) -> int:
    """Return the time of a place in microseconds, TIME_MIN without a place."""
    return int(place[48:67]) - _TIME_OFFSET if place else TIME_MIN


def event_seq(place: str | None) -> int:
    """Return the ``seq`` of a place's event, 0 without a place."""
    return int(place[67:79]) if place else 0


def words_row(index: NoteIndex, keys: Keys, scope: str) -> dict[str, Any]:
    """Return the index properties made of a note's text: the hashes of its words, and the counts above one."""
    words: Mapping[str, int] = {word_hash(keys, token): count for token, count in index.tokens.items()}
    return {
        "words": " ".join(words),
        "often": " ".join(f"{name}={count}" for name, count in words.items() if count > 1),
        "length": index.length,
        "titled": scope if index.title_keys else None,
    }


def index_row(note: Note, keys: Keys, scope: str) -> dict[str, Any]:
    """Return a note's other index properties, its events, and the parts of its place.

    ``row`` packs the fields that every search reads into one text, which a server reads and sends faster than ten
    properties.
    """
    prefix = place_prefix(keys, scope, note.session)
    valid_from = micros_or_min(note.valid_from)
    fields = [note.seq, note.id, note.kind.value, note.speaker, prefix and session_of(prefix), note.event_ids[0],
              micros_or_min(note.occurred_at), valid_from, is_question(note.content), note.role]  # fmt: skip
    if note.valid_to is not None:
        fields.append(to_micros(note.valid_to))
    return {
        "id": note.id,
        "events": list(note.event_ids),
        "prefix": None if note.archived else prefix,
        "part": f"{note.part:06}{seq_digits(note.seq)}",
        "index": {"valid_from": valid_from, "row": json.dumps(fields)},
    }


def unpack_rows(packed: Sequence[str]) -> list[list[Any]]:
    """Return the fields of packed rows, in the order of :func:`index_row`."""
    fields: list[list[Any]] = json.loads(f"[{','.join(packed)}]")
    return fields


def half_floats(vector: Floats) -> bytes:
    """Return a vector in half precision: its cosines are off by less than 0.0005."""
    return vector.astype(HALF).tobytes()
