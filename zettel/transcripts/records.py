"""What the formats share: keys for records without one, and validation in one line."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from zettel.arguments import checked
from zettel.errors import InvalidEvent
from zettel.model import Event, Source

from . import Record, Rejected

_DIGEST_BYTES = 16  # no two records of all the files one person imports will ever share a key

Clean: TypeAlias = Callable[[str], str]
"""Takes out of a text what is not to be kept."""

_clean: ContextVar[Clean | None] = ContextVar("clean", default=None)


@contextmanager
def keys_of_cleaned(clean: Clean | None) -> Iterator[None]:
    """Meanwhile, keys are made of texts as ``clean`` leaves them: a hash of what was taken out would betray it."""
    token = _clean.set(clean)
    try:
        yield
    finally:
        _clean.reset(token)


class ContentKeys:
    """Keys for the records of one file that bring neither an id nor a time, so that a second import knows
    them.

    A key is a hash of session, role, content and how many such records came before it in the file. Inserting
    other lines above changes nothing.
    """

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    def key(self, session: str | None, role: str | None, content: str) -> str:
        """32 hexadecimal digits."""
        if clean := _clean.get():
            session, role = (None if told is None else clean(told) for told in (session, role))
            content = clean(content)
        said = _digest([session, role, content])
        ordinal = self._seen[said]
        self._seen[said] += 1
        return _digest([session, role, content, ordinal]).hex()


def record(fields: dict[str, Any], source: Source, keys: ContentKeys | None = None) -> Record:
    """An Event of ``fields`` read at ``source`` (unless they name another), or why it cannot be one.

    With ``keys``, one that has neither id nor time gets an id.
    """
    unknown = fields.keys() - Event.model_fields.keys()
    if unknown:
        known = ", ".join(Event.model_fields)
        return rejected(source, f"unknown field {min(unknown)!r}; an event has {known}")
    try:
        event = checked({"source": source, **fields})
    except InvalidEvent as error:
        return rejected(source, str(error).removeprefix("the event cannot be stored: "))
    if keys is not None and event.id is None and event.occurred_at is None:
        key = keys.key(event.session, event.role, event.content)
        return event.model_copy(update={"id": key})
    return event


def inside(source: Source, position: str) -> Source:
    """A place in the same file that is named by what stands there, less what no store could keep."""
    kept = position.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
    return Source(file=source.file, position=kept)


def rejected(source: Source, reason: str) -> Rejected:
    return Rejected(file=source.file, position=source.position or "", reason=reason)


def _digest(said: list[str | int | None]) -> bytes:
    return hashlib.blake2b(json.dumps(said).encode(), digest_size=_DIGEST_BYTES, person=b"zettel.record").digest()
