"""The usage of a memory: notes that are found and used, and notes that nobody needs."""

from __future__ import annotations

from zettel.model.base import Frozen


class NoteUsage(Frozen):
    """A note with the beginning of its text, the number of logged searches that found it, and how often it was used."""

    note: str
    text: str
    found: int = 0
    used: int = 0


class SessionSize(Frozen):
    """A session (None: notes without one) with its number of notes and characters."""

    session: str | None
    notes: int
    characters: int


class Usage(Frozen):
    """The use of a scope's notes, without archived ones.

    ``searches`` counts the logged searches, ``reported`` those whose useful notes are known. ``never_found`` and
    ``never_used`` count notes. ``most_used`` are the notes in most use, ``unused`` the oldest that no search found.
    ``duplicates`` are groups of ids of notes with the same wording, ``contradictions`` counts undecided pairs (see
    ``Memory.conflicts``), ``stale`` are derived notes whose sources have changed since. ``sessions`` are the largest.
    """

    notes: int
    searches: int
    reported: int
    never_found: int
    never_used: int
    most_used: tuple[NoteUsage, ...]
    unused: tuple[NoteUsage, ...]
    duplicates: tuple[tuple[str, ...], ...]
    contradictions: int
    stale: tuple[NoteUsage, ...]
    sessions: tuple[SessionSize, ...]
