"""The report of an import, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import models
from .common import console, day_and_time

if TYPE_CHECKING:
    from zettel.transcripts import Rejected
    from zettel.transcripts.report import ImportReport

SHOWN_REJECTIONS = 10
"""Rejected records told in the table; ``--json`` and ``--rejected FILE`` have all."""

SHOWN_UNKNOWN = 10
"""Files that no format knows."""

SHOWN_SPEAKERS = 10
"""Speakers told after a dry run, who said most."""


def show_report(report: ImportReport) -> None:
    """What became of the records, on stdout."""
    from rich.table import Table
    from rich.text import Text

    from .layout import paragraph

    out = console()
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(justify="right", style="bold")
    table.add_column()
    for count, what in _counts(report):
        table.add_row(f"{count:,}", what)
    several = f", {len(report.files):,} files" if len(report.files) > 1 else ""
    dry = ", dry run: nothing was stored" if report.dry_run else ""
    out.print(Text(f"{report.file} ({report.format}){several}, {report.seconds:.1f} s{dry}"))
    out.print(table)
    if report.dry_run:
        for line in _outlook(report):
            paragraph(out, Text(line), indent=0, hang=2)
    if asked := models.used(report.model_dump()):
        out.print(Text(f"language model: {asked}"))
    for one in report.rejected[:SHOWN_REJECTIONS]:
        paragraph(out, Text(f"{place(one)}: {one.reason}", style="yellow"), indent=2, hang=2)
    if len(report.rejected) > SHOWN_REJECTIONS:
        rest = len(report.rejected) - SHOWN_REJECTIONS
        out.print(Text(f"  and {rest:,} more; --rejected FILE and --json have them all", style="yellow"))
    for file in report.unknown[:SHOWN_UNKNOWN]:
        paragraph(out, Text(f"{file}: no format knows it", style="yellow"), indent=2, hang=2)
    if len(report.unknown) > SHOWN_UNKNOWN:
        rest = len(report.unknown) - SHOWN_UNKNOWN
        out.print(Text(f"  and {rest:,} more files that no format knows; --json has them all", style="yellow"))


def place(one: Rejected) -> str:
    """Where a rejected record stands."""
    return f"{one.file}:{one.position}" if one.position else one.file


def _counts(report: ImportReport) -> list[tuple[int, str]]:
    future = report.dry_run
    counts = [
        (report.added, "new" if future else "added"),
        (report.existing, "known before"),
        (report.revised, "changed, to be revised" if future else "revised, their content had changed"),
        (report.deleted, "left out, deleted here before"),
        (report.left_out, "left out, not asked for"),
        (len(report.rejected), "rejected"),
        (len(report.unknown), "files of no known format"),
        (report.flagged, "flagged: what they say looks like instructions to a model"),
    ]
    return [counts[0], *(told for told in counts[1:] if told[0])]


def _outlook(report: ImportReport) -> list[str]:
    """What a dry run found beside counts, a line each."""
    lines = []
    if report.first is not None:
        lines.append(f"from {day_and_time(report.first)} to {day_and_time(report.last)} UTC")
    if report.sessions:
        lines.append("1 session" if report.sessions == 1 else f"{report.sessions:,} sessions")
    if report.speakers:
        shown = [f"{name} {count:,}" for name, count in list(report.speakers.items())[:SHOWN_SPEAKERS]]
        rest = len(report.speakers) - len(shown)
        lines.append("speakers: " + ", ".join([*shown, *([f"and {rest:,} more"] if rest else [])]))
    if report.estimate is not None:
        lines.append(models.estimated(report.estimate) if report.estimate.calls else "no model would be asked")
    return lines
