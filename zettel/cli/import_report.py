"""Prints the report of an import as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import model_costs
from .common import console, day_and_time

if TYPE_CHECKING:
    from zettel.transcripts import Rejected
    from zettel.transcripts.report import ImportReport, Secret

SHOWN_REJECTIONS = 10
"""Rejected records listed; ``--rejected FILE`` contains all."""

SHOWN_UNKNOWN = 10
"""Files of unknown format listed; ``--json`` lists all."""

REDACTED = {
    "e-mail": "e-mail addresses", "phone": "phone numbers", "card": "card numbers", "account": "account numbers",
    "key": "keys or passwords",
}  # fmt: skip
"""Plural names of redacted items."""

SHOWN_SECRETS = 10
"""Secrets listed by kind and place; ``--json`` lists more."""

SHOWN_SCOPES = 10
"""Scopes listed, those with the most records."""

STATUSES = ("added", "existing", "revised", "deleted")
"""Outcomes of a valid record."""

SHOWN_SPEAKERS = 10
"""Speakers listed after a dry run, those with the most records."""


def show_report(report: ImportReport) -> None:
    """Print the report on stdout."""
    from rich.table import Table
    from rich.text import Text

    from zettel.transcripts.archive_tree import is_unsupported_archive

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
    if usage := model_costs.used(report.model_dump()):
        out.print(Text(f"language model: {usage}"))
    for line in _by_scope(report):
        paragraph(out, Text(line), indent=2, hang=2)
    for secret in report.secrets[:SHOWN_SECRETS]:
        paragraph(out, Text(f"{place(secret)}: {secret.kind}", style="yellow"), indent=2, hang=2)
    if report.secrets_found > SHOWN_SECRETS:
        rest = report.secrets_found - SHOWN_SECRETS
        out.print(Text(f"  and {rest:,} more secrets; --json lists more", style="yellow"))
    for rejected in report.rejected_records[:SHOWN_REJECTIONS]:
        paragraph(out, Text(f"{place(rejected)}: {rejected.reason}", style="yellow"), indent=2, hang=2)
    if report.rejected > SHOWN_REJECTIONS:
        rest = report.rejected - SHOWN_REJECTIONS
        out.print(Text(f"  and {rest:,} more; --rejected FILE writes all", style="yellow"))
    for file in report.unknown_files[:SHOWN_UNKNOWN]:
        reason = "packed file: unpack it first" if is_unsupported_archive(file) else "unknown format"
        paragraph(out, Text(f"{file}: {reason}", style="yellow"), indent=2, hang=2)
    if len(report.unknown_files) > SHOWN_UNKNOWN:
        rest = len(report.unknown_files) - SHOWN_UNKNOWN
        out.print(Text(f"  and {rest:,} more files of unknown format; --json lists all", style="yellow"))


def place(record: Rejected | Secret) -> str:
    """Return the file and position of a record."""
    return f"{record.file}:{record.position}" if record.position else record.file


def _counts(report: ImportReport) -> list[tuple[int, str]]:
    counts = [
        (report.added, "added"),
        (report.existing, "existing"),
        (report.revised, "revised: the content has changed"),
        (report.deleted, "skipped: deleted here before"),
        (report.skipped, "skipped: not selected, repeated or empty"),
        (report.foreign_ids, "with the id of another record: stored separately (--edits changes that record)"),
        (report.unapplied_edits, "edited notes of this memory: not imported (--edits imports them)"),
        (report.rejected, "rejected"),
        (len(report.unknown_files), "files of unknown format"),
        (report.flagged, "flagged: the text looks like instructions to a model"),
        *((count, f"{REDACTED.get(kind, kind)} redacted") for kind, count in report.redacted.items()),
        (report.secrets_found, "possible secrets: --privacy redact removes them"),
        (len(report.scopes), "scopes"),
    ]
    return [counts[0], *(row for row in counts[1:] if row[0])]


def _by_scope(report: ImportReport) -> list[str]:
    """Return one line with the counts of each scope."""
    scopes = {row.scope: {name: count for name in STATUSES if (count := getattr(row, name))} for row in report.scopes}
    largest = sorted(scopes.items(), key=lambda row: -sum(row[1].values()))
    lines = [
        f"{scope}: " + ", ".join(f"{count:,} {name}" for name, count in counts.items())
        for scope, counts in largest[:SHOWN_SCOPES]
    ]
    rest = len(scopes) - len(lines)
    return [*lines, *([f"and {rest:,} more scopes; --json lists all"] if rest else [])]


def _outlook(report: ImportReport) -> list[str]:
    """Return the lines that only a dry run prints: dates, sessions, speakers, cost."""
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
        estimate = report.estimate
        lines.append(model_costs.estimated(estimate) if estimate.calls else "no calls to a language model")
    return lines
