"""Export reports."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ExportReport(BaseModel):
    """Counts of the written items; a format counts only what it writes."""

    to: str
    """The file or folder; "-" for an open file."""
    format: str
    events: int = 0
    notes: int = 0
    terms: int = 0
    links: int = 0
    """Edges in ``graphml``; in ``markdown`` links between notes."""
    changed: int = 0
    """Files of a folder that were written because they were new or changed."""
    removed: int = 0
    """Files of a folder that were removed with their notes."""
    edited: list[str] = Field(default_factory=list)
    """Files that people edited since the last export: neither overwritten nor removed."""
    seconds: float = 0.0
