"""Tags, importance and the pin that a caller gives with a new event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from zettel.core.arguments import names_of, require_text, share
from zettel.errors import InvalidInput
from zettel.model import Note
from zettel.model.tags import PINNED, without_reserved


class Labels(NamedTuple):
    """Fields to set in the note of a new event."""

    tags: tuple[str, ...]
    importance: float | None

    def changes(self, note: Note) -> dict[str, Any]:
        """Return the fields to update, empty if the note has them already."""
        fields: dict[str, Any] = {}
        if not set(self.tags) <= set(note.tags):
            fields["tags"] = list(dict.fromkeys([*note.tags, *self.tags]))
        if self.importance not in (None, note.importance):
            fields["importance"] = self.importance
        return fields


def note_labels(tags: Iterable[str], importance: float | None, pinned: bool) -> Labels | None:
    """Return the checked labels, None if there are none. Raises ``InvalidInput``, also for a reserved tag."""
    chosen = tuple(names_of("tags", tags))
    for tag in chosen:
        require_text("tags", tag)
    if reserved := [tag for tag in chosen if not without_reserved([tag])]:
        raise InvalidInput(f"the tag {reserved[0]!r} is reserved: use another, or pinned=True to pin the note")
    labels = Labels((*chosen, PINNED) if pinned else chosen, share("importance", importance))
    return labels if labels.tags or labels.importance is not None else None
