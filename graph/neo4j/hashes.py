"""Words and sessions as keyed hashes, in the form that the database indexes, and what a search reads of each note.

A word's hash differs from scope to scope, so that whoever asks the full-text index for it gets the notes of one scope;
it holds no character that the index's query language knows, and tells nothing once the scope's secret is gone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zettel.annotate.extractive import is_question
from zettel.batch import NoteIndex
from zettel.graph.keys import Keys
from zettel.model import TIME_MIN, Note, to_micros

if TYPE_CHECKING:
    from zettel.query import Floats

CODE = "<f2"
"""The numbers of a vector as a search gets them: half the size of what is kept."""

WORD = 17
"""Characters from the beginning of one hash to the next one's, where they stand side by side."""

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


def session_in(place: str) -> str:
    """The hash of the session that a place is in, or begins with."""
    return place[32:48]


def stands(micros: int) -> str:
    """A time as the digits that a place holds: 19."""
    return f"{micros + _PLACES:019}"


def stood(place: str | None) -> int:
    """The inverse of it, of a place; of a note that has none, any time."""
    return int(place[48:67]) - _PLACES if place else TIME_MIN


NEVER = stands(TIME_MIN)
"""Where an undated event stands that nothing dated came before."""


def arrived(seq: int) -> str:
    """A number in the order of arrival as the digits that a place holds: 12."""
    return f"{seq:012}"


def event_seq(place: str | None) -> int:
    """The inverse of it: the number of the event that a place tells of; of a note that has none, any."""
    return int(place[67:79]) if place else 0


def index_row(index: NoteIndex, keys: Keys, scope: str) -> dict[str, Any]:
    """What a note is found by, as it is stored: all its words once, and the counts of those that stand there often."""
    words: Mapping[str, int] = {word(keys, token): count for token, count in index.tokens.items()}
    return {
        "words": " ".join(words),
        "often": " ".join(f"{name}={count}" for name, count in words.items() if count > 1),
        "length": index.length,
        "titled": scope if index.title_keys else None,
    }


def rest_row(note: Note, keys: Keys, scope: str) -> dict[str, Any]:
    """What a note's index node holds besides its words, and what its place is worked out from."""
    prefix = session_prefix(keys, scope, note.session)
    valid_from = TIME_MIN if note.valid_from is None else to_micros(note.valid_from)
    occurred_at = TIME_MIN if note.occurred_at is None else to_micros(note.occurred_at)
    told = [note.seq, note.id, note.kind.value, note.role, prefix and session_in(prefix), note.event_ids[0],
            occurred_at, valid_from, is_question(note.content)]  # fmt: skip
    return {
        "id": note.id,
        "events": list(note.event_ids),
        "prefix": None if note.archived else prefix,
        "part": f"{note.part:06}{arrived(note.seq)}",
        "index": {"valid_from": valid_from, "row": json.dumps(told)},
    }


def unpacked(told: Sequence[str]) -> list[list[Any]]:
    """What a search has to know of notes whatever it asks, in the order of ``rest_row``; one text for each note costs
    a server far less to read and send than nine values."""
    read: list[list[Any]] = json.loads(f"[{','.join(told)}]")
    return read


def code(vector: Floats) -> bytes:
    """A vector as it is sent to be compared: a cosine is off by less than 0.0005."""
    return vector.astype(CODE).tobytes()
