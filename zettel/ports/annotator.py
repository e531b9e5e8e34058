"""The annotator port: derives note fields from texts, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol


class Annotation(NamedTuple):
    """The note fields that an annotator derives from one passage.

    Example: ``Annotation("Moved to Bergen", "Ann, 1 May 2024", ("bergen",), ("travel",))``.
    """

    caption: str
    context: str
    keywords: tuple[str, ...]
    tags: tuple[str, ...]


class Passage(NamedTuple):
    """The input of an annotator: one part of an event, with the event's title, speaker and time."""

    content: str
    title: str | None
    speaker: str | None
    occurred_at: datetime | None


class TermStats(NamedTuple):
    """Statistics of a scope: the number of ``notes``, and the document frequency ``df`` of each requested token."""

    notes: int
    df: Mapping[str, int]


class Annotator(Protocol):
    """Derives note fields from passages. It must be fast and local: ``add`` calls it before each commit.

    An annotator that calls a language model implements ``zettel.ports.language_model.ModelAnnotator`` instead.
    """

    name: str

    async def annotate(self, passages: Sequence[Passage], stats: TermStats) -> list[Annotation]:
        """Return one annotation per passage, in order."""
        ...
