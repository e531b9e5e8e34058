"""The present time, by which notes expire."""

from __future__ import annotations

from datetime import datetime, timezone

from zettel.model import Note, to_micros
from zettel.ports.expiry import expired


def _clock() -> datetime:
    return datetime.now(timezone.utc)


def present() -> datetime:
    """Return the present time in UTC."""
    return _clock()


def present_micros() -> int:
    """Return the present time in microseconds."""
    return to_micros(present())


def has_ended(note: Note) -> bool:
    """Return whether a note is valid no more."""
    return note.valid_to is not None and note.valid_to <= present()


def is_active(note: Note) -> bool:
    """Return whether a note is neither archived nor expired."""
    return not note.archived and not has_expired(note)


def has_expired(note: Note) -> bool:
    """Return whether a note has expired, though the sweep may not have removed it yet."""
    return expired(note, present_micros())
