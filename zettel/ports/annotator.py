"""Annotators: passages to note fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol


class Annotation(NamedTuple):
    """What an annotator makes of one text."""

    caption: str
    context: str
    keywords: tuple[str, ...]
    tags: tuple[str, ...]


class Passage(NamedTuple):
    """What an annotator reads: one part of an event."""

    content: str
    title: str | None
    speaker: str | None
    occurred_at: datetime | None


class TermStats(NamedTuple):
    """The scope's own statistics: number of notes, and in how many each asked token stands."""

    notes: int
    df: Mapping[str, int]


class Annotator(Protocol):
    """Passages to note fields, in order, one Annotation for each; fit to stand before a commit.

    One that asks a model does not wait there: it is a ``zettel.ports.language_model.ModelAnnotator``.
    """

    name: str

    async def annotate(self, passages: Sequence[Passage], stats: TermStats) -> list[Annotation]: ...
