"""The tags that have a meaning for zettel, which no text and no model can set."""

from __future__ import annotations

from collections.abc import Iterable

PINNED = "pinned"
"""The note belongs in every prompt and never decays. Only a person sets it, by ``update`` or a tool's ``pinned``."""
PROFILE = "profile"
"""The profile that the reflect job writes."""
THEME = "theme"
"""An insight of the reflect job about a topic."""
SESSION = "session"
"""A summary of a session by the reflect job."""
LESSON = "lesson"
"""A lesson that the reflect job learned from outcomes."""
ENTITY = "alias"
"""A decision that two names are one entity, or two."""

RESERVED_TAGS = frozenset({PINNED, PROFILE, THEME, SESSION, LESSON, ENTITY})
"""A hashtag in a text, or a tag in a model's answer, never becomes one of these tags."""


def without_reserved(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the tags that a text or a model may set.

    Example: ``without_reserved(("boat", "Pinned"))`` is ``("boat",)``.
    """
    return tuple(tag for tag in tags if tag.strip().casefold() not in RESERVED_TAGS)
