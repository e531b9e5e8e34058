"""Identities of events: a second import adds nothing, and a deleted event stays deleted.

Identity is ``Event.external_id`` if set; else session, speaker, time, title, content, payload and the ordinal among
identical events of the same file or call. Identity does not cover source, role and scope. If an imported record has the
id of an event of another sender or origin (see :mod:`zettel.core.origin`), id, sender and content identify it.
A principal below full trust has identities of its own, so that it neither repeats nor revises the events of others.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections import Counter

from zettel.core.origin import sender_of
from zettel.core.principals import acting
from zettel.model import Event

_encode = json.JSONEncoder(sort_keys=True).encode


def new_id(prefix: str) -> str:
    """An id such as ``n_3f9a…``: its kind and 80 random bits."""
    return f"{prefix}_{secrets.token_hex(10)}"


def is_id(prefix: str, text: str) -> bool:
    """Return whether a text has the form of ``new_id(prefix)``."""
    return re.fullmatch(rf"{prefix}_[0-9a-f]{{20}}", text) is not None


class Ordinals:
    """Counts identical events of one file or call, so that a repeated message is a second event."""

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    def next(self, event: Event) -> int:
        """Return how often the event was counted before; 0 for events with an external id or without a time."""
        if event.external_id is not None or event.occurred_at is None:
            return 0
        digest = hashlib.blake2b(_content_bytes(event), digest_size=16).digest()
        self._seen[digest] += 1
        return self._seen[digest] - 1


def identity_bytes(event: Event, ordinal: int) -> bytes:
    """Return the bytes whose hash is the identity; random for an event with neither external id nor time."""
    if event.external_id is not None:
        return owned(external_id_bytes(event.external_id))
    if event.occurred_at is None:
        return secrets.token_bytes(20)
    return owned(json.dumps(["said", ordinal]).encode() + _content_bytes(event))


def external_id_bytes(id: str) -> bytes:
    """Return the identity bytes of an event with this ``Event.external_id``."""
    return json.dumps(["id", id]).encode()


def owned(identity: bytes) -> bytes:
    """Return identity bytes, those of a principal below full trust with its name: others' events are not its own."""
    principal = acting()
    if principal.trust >= 1 or not principal.name:
        return identity
    return json.dumps(["principal", principal.name]).encode() + identity


def separate_bytes(event: Event) -> bytes:
    """Return the identity bytes of an imported event whose id belongs to an event of another sender or origin."""
    return json.dumps(["separate", event.external_id, sender_of(event)]).encode() + _content_bytes(event)


def identity_of(data: bytes, secret: bytes) -> str:
    """Return the keyed hash of identity bytes; without the scope's ``secret`` it reveals nothing about the event."""
    return hashlib.blake2b(data, key=secret, digest_size=20, person=b"zettel.identity").hexdigest()


def same_content(one: Event, other: Event) -> bool:
    """Return whether two events of one identity are equal, apart from source, role and scope."""
    return _content_bytes(one) == _content_bytes(other) and one.metadata == other.metadata


def _content_bytes(event: Event) -> bytes:
    occurred_at = event.occurred_at.isoformat() if event.occurred_at else None
    fields = [event.session, event.speaker, occurred_at, event.title, event.content, event.payload]
    return _encode(fields).encode()
