"""Rows that a plan reads by note id, where another writer may have deleted a note since."""

from __future__ import annotations

from typing import NoReturn, TypeVar

Row = TypeVar("Row")


class NoteVanished(Exception):
    """A plan needs the row of a note that its store no longer has. ``Commits`` plans the batch again."""

    def __init__(self, note_id: str) -> None:
        super().__init__(f"note {note_id} was deleted while the batch was planned")
        self.note_id = note_id


class Rows(dict[str, Row]):
    """Rows by note id; the subscript of a missing note raises ``NoteVanished``, so that a bug's KeyError stays one.

    >>> Rows({"n_1": 3})["n_1"]
    3
    """

    def __missing__(self, note_id: str) -> NoReturn:
        raise NoteVanished(note_id)
