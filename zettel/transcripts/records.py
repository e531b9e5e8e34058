"""Helpers for formats: validated records, rejections and content keys."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from zettel.core.arguments import checked
from zettel.errors import InvalidEvent
from zettel.model import Event, Source, with_speaker

from . import Record, Rejected

_DIGEST_BYTES = 16  # no two records of all the files one person imports will ever share a key

Clean: TypeAlias = Callable[[str], str]
"""Redacts a text."""

_clean: ContextVar[Clean | None] = ContextVar("clean", default=None)


@contextmanager
def redacted_keys(clean: Clean | None) -> Iterator[None]:
    """Compute content keys from redacted texts in this block: a hash of private data would reveal it."""
    token = _clean.set(clean)
    try:
        yield
    finally:
        _clean.reset(token)


class ContentKeys:
    """Keys for the records of one file without id and time, so that a second import recognises them.

    A key is a hash of session, speaker, content and the number of equal records before it in the file. Other lines
    above do not change it.
    """

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    def key(self, session: str | None, speaker: str | None, content: str) -> str:
        """32 hexadecimal digits."""
        if clean := _clean.get():
            session, speaker = (None if value is None else clean(value) for value in (session, speaker))
            content = clean(content)
        base = _digest([session, speaker, content])
        ordinal = self._seen[base]
        self._seen[base] += 1
        return _digest([session, speaker, content, ordinal]).hex()


def record(fields: dict[str, Any], source: Source, keys: ContentKeys | None = None) -> Record:
    """Return an event of ``fields`` read at ``source``, or a rejection with the reason.

    With ``keys``, an event without id and time gets an id.
    """
    unknown = fields.keys() - Event.model_fields.keys() - {"id"}
    if unknown:
        known = ", ".join(Event.model_fields)
        return rejected(source, f"unknown field {min(unknown)!r}; an event has {known}")
    try:
        event = checked({"source": source, **with_speaker(fields)})
    except InvalidEvent as error:
        return rejected(source, str(error).removeprefix("the event cannot be stored: "))
    if keys is not None and event.external_id is None and event.occurred_at is None:
        key = keys.key(event.session, event.speaker, event.content)
        return event.model_copy(update={"external_id": key})
    return event


def at_position(source: Source, position: str) -> Source:
    """Return a source in the same file with another position, without characters that no store accepts."""
    storable_position = position.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
    return Source(file=source.file, position=storable_position)


def rejected(source: Source, reason: str) -> Rejected:
    return Rejected(file=source.file, position=source.position or "", reason=reason)


def _digest(base: list[str | int | None]) -> bytes:
    return hashlib.blake2b(json.dumps(base).encode(), digest_size=_DIGEST_BYTES, person=b"zettel.record").digest()
