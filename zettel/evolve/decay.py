"""The decay policy: selects unused notes for the archive.

Notes decay only with a policy. Decayed notes stay stored and linked. A search for terms that only a decayed note
contains restores it; a person can restore it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from zettel.errors import InvalidInput
from zettel.evolve.profile import FACT_WEIGHT, statements
from zettel.model import Kind, Note, NoteUse
from zettel.model.tags import PINNED
from zettel.scoring.strength import FRESH, strength


@dataclass(frozen=True, slots=True)
class Decay:
    """Archives the notes that meet all of these conditions.

    Notes tagged "pinned", valid facts, statements of people about themselves, derived notes and their sources never
    decay.

    Args:
        older_than: The note was recorded and last useful longer ago than this, a timedelta or days.
        strength: Its strength is lower, see ``zettel.scoring.strength``.
        importance: Its importance is lower; 0.7 is four links.

    Raises:
        InvalidInput: A number is outside its limits.

    Examples:
        >>> from zettel import Decay
        >>> decay = Decay(older_than=90)
    """

    older_than: timedelta | float
    strength: float = FRESH
    importance: float = 0.7

    def __post_init__(self) -> None:
        if not isinstance(self.older_than, timedelta):
            try:
                object.__setattr__(self, "older_than", timedelta(days=self.older_than))
            except (TypeError, ValueError, OverflowError):
                raise InvalidInput(f"older_than must be a number of days, got {self.older_than!r}") from None
        if self.older_than < timedelta(0):  # type: ignore[operator]  # a timedelta after the conversion above
            raise InvalidInput(f"older_than must not be negative, got {self.older_than}")
        for name in ("strength", "importance"):
            bound = getattr(self, name)
            if not (isinstance(bound, (int, float)) and 0 <= bound <= 1):
                raise InvalidInput(f"{name} must be a number from 0 to 1, got {bound!r}")

    def fades(self, note: Note, use: NoteUse, importance: float, now: datetime) -> bool:
        """Return whether a note has decayed at ``now``; ``importance`` comes from its links."""
        assert isinstance(self.older_than, timedelta)
        return (
            may_decay(note, now)
            and now - use.since > self.older_than
            and strength(use, now) < self.strength
            and max(note.importance, importance) < self.importance
        )


def may_decay(note: Note, now: datetime) -> bool:
    """Return whether a note can decay: events and former facts can, statements of people about themselves cannot."""
    if note.archived or PINNED in note.tags:
        return False
    if note.kind is Kind.SEMANTIC:
        return note.valid_to is not None and note.valid_to <= now
    return note.kind is Kind.EPISODIC and all(each.weight < FACT_WEIGHT for each in statements(note))
