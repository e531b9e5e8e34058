"""Typed links between notes, and the values that graph reads return."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from zettel.model.base import Frozen, Moment
from zettel.model.events import Source
from zettel.model.notes import Note


class LinkType(str, Enum):
    """The relation of a link's source note to its target note."""

    RELATES = "RELATES"  # both notes are about the same subject
    MENTIONS = "MENTIONS"  # the text of the source names the title of the target
    SUPERSEDES = "SUPERSEDES"  # the source replaces the target, whose validity ends
    CONTRADICTS = "CONTRADICTS"  # the two notes cannot both be true
    DERIVED_FROM = "DERIVED_FROM"  # the source was written from the target, such as an insight from a message
    UPDATES = "UPDATES"  # the source replaces a part of what the target states; the rest stays valid


REPLACING = (LinkType.SUPERSEDES, LinkType.UPDATES)
"""The types of links whose source replaces what the target states, or a part of it."""


class LinkKey(NamedTuple):
    """The identity of a link: its two notes, in its direction, and its type."""

    source: str
    target: str
    type: LinkType


class Link(Frozen):
    """A directed link between two notes.

    ``source`` and ``target`` are note ids. ``weight`` (0..1) is the strength of the link in the graph walk. ``reason``
    states why zettel or a person added the link, and ``recorded_at`` when.
    """

    source: str
    target: str
    type: LinkType
    weight: float = 1.0
    reason: str = ""
    recorded_at: Moment

    @property
    def key(self) -> LinkKey:
        """The notes and the type of the link."""
        return LinkKey(self.source, self.target, self.type)


class Graph(Frozen):
    """One page of notes, with all links between them. Pass ``cursor`` to get the next page; None ends the list."""

    notes: tuple[Note, ...]
    links: tuple[Link, ...]
    cursor: str | None = None


class Conflict(Frozen):
    """Two valid notes that contradict each other. ``note`` is the newer one, ``other`` the older one.

    ``source`` and ``other_source`` are the files that they were imported from, or None.
    """

    note: Note
    other: Note
    source: Source | None = None
    other_source: Source | None = None
    reason: str
    recorded_at: Moment


class Neighbor(Frozen):
    """A note that is connected to another note: its distance in ``hops``, and the last link of the shortest path."""

    note: Note
    hops: int
    link: Link
