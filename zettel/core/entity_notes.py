"""The notes of decisions that two names are one entity, or two: their events, texts and metadata."""

from __future__ import annotations

from typing import Any

from zettel.core.identity import new_id
from zettel.model import Event, Note, Source

SOURCE = "zettel:entities"
"""The source of the events of decisions."""
NAMES, SAME = "entity_names", "same_entity"
"""The metadata of a decision: two names, and whether they are one entity."""


def metadata_of(name: str, other: str, same: bool) -> dict[str, Any]:
    """Return the metadata of the note of a decision."""
    return {NAMES: [name, other], SAME: same}


def statement_of(name: str, other: str, same: bool) -> str:
    """Return the text of a decision."""
    return f"{name} is also called {other}." if same else f"{name} and {other} are not the same."


def decision_event(name: str, other: str, same: bool) -> Event:
    """Return the event of a decision; its text stays true if the decision is reverted."""
    return Event(
        content=f"Names: {name}, {other}", external_id=new_id("entity"), source=Source(file=SOURCE),
        metadata=metadata_of(name, other, same),
    )  # fmt: skip


def decided_names(note: Note) -> tuple[str, str] | None:
    """Return the two names of the note of a decision, also of a reverted one; None for another note."""
    match note.metadata:
        case {"entity_names": [str(name), str(other)], "same_entity": bool()}:
            return name, other
    return None
