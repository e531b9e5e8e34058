"""The report of an import, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import models
from .common import console, day_and_time

if TYPE_CHECKING:
    from zettel.transcripts import Rejected
    from zettel.transcripts.report import ImportReport
    from zettel.transcripts.secret_shapes import Secret

SHOWN_REJECTIONS = 10
"""Rejected records told in the table; ``--rejected FILE`` has all."""

SHOWN_UNKNOWN = 10
"""Files that no format knows."""

REDACTED = {"e-mail": "e-mail addresses", "phone": "phone numbers", "card": "card numbers", "key": "keys or passwords"}
"""What is taken out, in the plural."""

SHOWN_SECRETS = 10
"""Keys and passwords told by kind and place; ``--json`` has more."""

SHOWN_SCOPES = 10
"""Scopes told by name, those with most records."""

STATUSES = ("added", "existing", "revised", "deleted")
"""What may become of a record that can be stored."""

SHOWN_SPEAKERS = 10
"""Speakers told after a dry run, who said most."""


def show_report(report: ImportReport) -> None:
    """What became of the records, on stdout."""
    from rich.table import Table
    from rich.text import Text

    from zettel.transcripts.trees import is_packed

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
    for line in _by_scope(report):
        paragraph(out, Text(line), indent=2, hang=2)
    for secret in report.secrets[:SHOWN_SECRETS]:
        paragraph(out, Text(f"{place(secret)}: {secret.kind}", style="yellow"), indent=2, hang=2)
    if report.secrets_found > SHOWN_SECRETS:
        rest = report.secrets_found - SHOWN_SECRETS
        out.print(Text(f"  and {rest:,} more keys and passwords; --json names more", style="yellow"))
    for one in report.rejected[:SHOWN_REJECTIONS]:
        paragraph(out, Text(f"{place(one)}: {one.reason}", style="yellow"), indent=2, hang=2)
    if report.rejections > SHOWN_REJECTIONS:
        rest = report.rejections - SHOWN_REJECTIONS
        out.print(Text(f"  and {rest:,} more; --rejected FILE has them all", style="yellow"))
    for file in report.unknown[:SHOWN_UNKNOWN]:
        reason = "it is packed: unpack it first" if is_packed(file) else "no format knows it"
        paragraph(out, Text(f"{file}: {reason}", style="yellow"), indent=2, hang=2)
    if len(report.unknown) > SHOWN_UNKNOWN:
        rest = len(report.unknown) - SHOWN_UNKNOWN
        out.print(Text(f"  and {rest:,} more files that no format knows; --json has them all", style="yellow"))


def place(one: Rejected | Secret) -> str:
    """Where a record stands."""
    return f"{one.file}:{one.position}" if one.position else one.file


def _counts(report: ImportReport) -> list[tuple[int, str]]:
    future = report.dry_run
    counts = [
        (report.added, "new" if future else "added"),
        (report.existing, "known before"),
        (report.revised, "changed, to be revised" if future else "revised, their content had changed"),
        (report.deleted, "left out, deleted here before"),
        (report.left_out, "left out, not asked for"),
        (report.rejections, "rejected"),
        (len(report.unknown), "files of no known format"),
        (report.flagged, "flagged: what they say looks like instructions to a model"),
        *((count, f"{REDACTED.get(what, what)} redacted") for what, count in report.redacted.items()),
        (report.secrets_found, "keys or passwords by their looks: --redact keeps such out"),
        (len(report.scopes), "scopes"),
    ]
    return [counts[0], *(told for told in counts[1:] if told[0])]


def _by_scope(report: ImportReport) -> list[str]:
    """What became of the records of each scope, a line each."""
    told = {one.scope: {name: count for name in STATUSES if (count := getattr(one, name))} for one in report.scopes}
    most = sorted(told.items(), key=lambda one: -sum(one[1].values()))
    lines = [
        f"{scope}: " + ", ".join(f"{count:,} {name}" for name, count in counts.items())
        for scope, counts in most[:SHOWN_SCOPES]
    ]
    rest = len(told) - len(lines)
    return [*lines, *([f"and {rest:,} more scopes; --json has them all"] if rest else [])]


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
