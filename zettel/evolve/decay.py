"""Decay: which notes have faded, so that they may leave what is searched.

Nothing fades unless a policy asks for it, and what fades goes to the archive: kept, linked, and brought back by a
question that names what only it says, or by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from zettel.errors import InvalidInput
from zettel.evolve.profile import statements
from zettel.evolve.strength import FRESH, strength
from zettel.model import Kind, Note, NoteUse

PINNED = "pinned"
"""Tag of notes that never fade."""


@dataclass(frozen=True, slots=True)
class Decay:
    """Which notes go to the archive: those of which all of this is true.

    Recorded, and of use for the last time, ``older_than`` ago (a timedelta, or days); of less strength than
    ``strength`` (see ``zettel.evolve.strength``) and of less importance than ``importance`` (by links: 0.7 is four of
    them). What is tagged "pinned", holds a fact that is still valid, is said of oneself ("I love", "I'm allergic to")
    or was distilled from other notes never fades, nor does what these rest on.
    """

    older_than: timedelta | float
    strength: float = FRESH
    importance: float = 0.7

    def __post_init__(self) -> None:
        if not isinstance(self.older_than, timedelta):
            try:
                object.__setattr__(self, "older_than", timedelta(days=self.older_than))
            except (TypeError, ValueError, OverflowError):
                raise InvalidInput(f"older_than={self.older_than!r} is no number of days") from None
        if self.older_than < timedelta(0):  # type: ignore[operator]  # a timedelta by now
            raise InvalidInput(f"older_than={self.older_than} lies before now: all would have faded")
        for name in ("strength", "importance"):
            bound = getattr(self, name)
            if not (isinstance(bound, (int, float)) and 0 <= bound <= 1):
                raise InvalidInput(f"{name}={bound!r} is no number from 0 to 1")

    def fades(self, note: Note, use: NoteUse, importance: float, now: datetime) -> bool:
        """Whether a note has faded at ``now``; ``importance`` is what its links give it."""
        assert isinstance(self.older_than, timedelta)
        return (
            may_fade(note)
            and now - use.since > self.older_than
            and strength(use, now) < self.strength
            and max(note.importance, importance) < self.importance
        )


def may_fade(note: Note) -> bool:
    """Whether a note is of a sort that fades: what happened, and facts that are no longer so; but not what people say
    of themselves, which profiles count."""
    if note.archived or PINNED in note.tags:
        return False
    if note.kind is Kind.SEMANTIC:
        return note.valid_to is not None
    return note.kind is Kind.EPISODIC and not statements(note)
