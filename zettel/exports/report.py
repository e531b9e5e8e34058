"""What an export wrote, as people and programs are told it."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ExportReport(BaseModel):
    """How much was written, and where to. What a format does not write, it does not count."""

    to: str
    """The file or folder; "-" for an open file."""
    format: str
    events: int = 0
    notes: int = 0
    terms: int = 0
    links: int = 0
    """Edges in ``graphml``; in ``markdown`` links between notes."""
    changed: int = 0
    """Files of a folder that were written, those that stood there already left out."""
    removed: int = 0
    """Files of a folder whose notes are gone."""
    left: list[str] = Field(default_factory=list)
    """Files of a folder that somebody else changed since zettel wrote them: neither overwritten nor removed."""
    seconds: float = 0.0
