"""When a note has expired: the same rule for stores, searches and jobs."""

from __future__ import annotations

from zettel.model import Note, to_micros


def expired(note: Note, moment: int) -> bool:
    """Return True if the note expired by a moment, in microseconds."""
    return note.expires_at is not None and to_micros(note.expires_at) <= moment
