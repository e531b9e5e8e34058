"""What makes an event this event, so that a second import adds nothing and a deleted one stays deleted.

Identity is ``Event.id`` if there is one, else session, role, time, title, content, payload and the ordinal among
identical ones of the same file or call. Source and scope are no part of it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import Counter

from zettel.model import Event

_encode = json.JSONEncoder(sort_keys=True).encode


def new_id(prefix: str) -> str:
    """An id such as ``n_3f9a…``: its kind and 80 random bits."""
    return f"{prefix}_{secrets.token_hex(10)}"


class Ordinals:
    """Counts identical events of one file or call, so that the same words said twice are two events."""

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    def next(self, event: Event) -> int:
        """0 for the first of its kind, 1 for the second, and so on; 0 where that tells nothing, and nothing is kept."""
        if event.id is not None or event.occurred_at is None:
            return 0
        digest = hashlib.blake2b(_said(event), digest_size=16).digest()
        self._seen[digest] += 1
        return self._seen[digest] - 1


def telling(event: Event, ordinal: int) -> bytes:
    """What tells an event from every other one; of an event with neither id nor time, random bytes: always new."""
    if event.id is not None:
        return telling_of_id(event.id)
    if event.occurred_at is None:
        return secrets.token_bytes(20)
    return json.dumps(["said", ordinal]).encode() + _said(event)


def telling_of_id(id: str) -> bytes:
    """What tells an event with this ``Event.id`` from every other one."""
    return json.dumps(["id", id]).encode()


def identity_of(told: bytes, secret: bytes) -> str:
    """The keyed hash of a telling; without the scope's ``secret`` it betrays nothing about the event."""
    return hashlib.blake2b(told, key=secret, digest_size=20, person=b"zettel.identity").hexdigest()


def same_content(one: Event, other: Event) -> bool:
    """Whether two events of one identity also say the same, so that the second is no news."""
    return _said(one) == _said(other) and one.metadata == other.metadata


def _said(event: Event) -> bytes:
    occurred_at = event.occurred_at.isoformat() if event.occurred_at else None
    told = [event.session, event.role, occurred_at, event.title, event.content, event.payload]
    return _encode(told).encode()
