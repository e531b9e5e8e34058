"""Links between notes."""

from __future__ import annotations

from enum import Enum

from zettel.model.base import Frozen, Moment
from zettel.model.notes import Note


class LinkType(str, Enum):
    """How one note stands to another."""

    RELATES = "RELATES"
    MENTIONS = "MENTIONS"
    SUPERSEDES = "SUPERSEDES"
    CONTRADICTS = "CONTRADICTS"
    DERIVED_FROM = "DERIVED_FROM"


class Link(Frozen):
    """A typed, weighted, directed link between two notes, with the reason it was made for."""

    source: str
    target: str
    type: LinkType
    weight: float = 1.0
    reason: str = ""
    recorded_at: Moment


class Graph(Frozen):
    """Some notes and all links between them; ``cursor`` asks for the next notes, None: these were the last."""

    notes: tuple[Note, ...]
    links: tuple[Link, ...]
    cursor: str | None = None


class Conflict(Frozen):
    """Two notes that say otherwise of the same, and nobody knows which is right: ``note``, which arrived later or is of
    a later time, says so of ``other``."""

    note: Note
    other: Note
    reason: str
    recorded_at: Moment


class Neighbor(Frozen):
    """A note that can be reached over links, in how many hops, and the last link on the shortest way."""

    note: Note
    hops: int
    link: Link
