"""Hits as people read them: a block for each, with the reasons below it where they are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .layout import INDENT, column, heading, labelled, paragraph, said, when, who

if TYPE_CHECKING:
    from rich.console import Console

    from zettel.model import Hit, Step, Why

TELLING_FEATURES = 5
"""Features told for a hit: those that weighed most."""
NOT_REVERSED, REVERSED = "—{}→", "←{}—"
"""How a step over a link is drawn, with and against its direction."""


def show_hits(out: Console, hits: Sequence[Hit], *, explained: int) -> None:
    """Hits in their order; the first ``explained`` of them with how they came about."""
    from rich.text import Text

    dates, names = column(when(hit.note) for hit in hits), column(who(hit.note) for hit in hits)
    for place, hit in enumerate(hits):
        note, why = hit.note, hit.why
        if place:
            out.print()
        kind = "" if note.kind.value == "episodic" else note.kind.value
        heading(
            out,
            (f"{hit.score:.2f}", "bold green"),
            (when(note).ljust(dates), "cyan"),
            (who(note).ljust(names), "magenta"),
            (kind, "cyan"),
            (note.id, "dim"),
        )
        paragraph(out, said(note), indent=INDENT)
        if why.superseded_by:
            paragraph(out, Text(f"replaced by {why.superseded_by}", style="yellow"), indent=INDENT)
        if note.archived:
            held = "in the archive" if note.quarantined is None else f"in quarantine: {note.quarantined}".rstrip(": ")
            paragraph(out, Text(held, style="yellow"), indent=INDENT)
        if note.flags:
            paragraph(out, Text(f"looks like instructions ({', '.join(note.flags)})", style="yellow"), indent=INDENT)
        if place < explained:
            labelled(out, reasons(why), indent=INDENT, style="dim")


def reasons(why: Why) -> list[tuple[str, str]]:
    """How a hit came about, as (what, told) pairs."""
    told = [("seeds", ", ".join(why.seeds) or "none: the walk alone brought it")]
    if why.path:
        told.append(("path", told_path(why.path)))
    if why.time:
        told.append(("time", why.time))
    if why.strength is not None:
        told.append(("strength", f"{why.strength:.2f}: it was of no use for long"))
    weighed = sorted(why.features.items(), key=lambda item: -abs(item[1]))[:TELLING_FEATURES]
    told.append(("features", ", ".join(f"{name} {value:+.2f}" for name, value in weighed if value) or "none"))
    told.append(("scorer", f"{why.scorer}: near {why.near:.2f}, walk {why.walk:.4f}"))
    return told


def told_path(path: Sequence[Step]) -> str:
    """``question names title → The Glass Orchard —MENTIONS→ this note``.

    A Term that the question names is told once, and a link that was walked against its direction as ``←TYPE—``.
    """
    told: list[str] = []
    for place, step in enumerate(path):
        if step.kind == "question":
            named_next = place + 1 < len(path) and path[place + 1].name == step.name
            told.append(f"question names {'term' if named_next else step.name} →")
        elif step.over.startswith("~"):
            told.append(f"{step.name} {REVERSED.format(step.over[1:])}")
        else:
            told.append(f"{step.name} {NOT_REVERSED.format(step.over)}")
    return " ".join([*told, "this note"])
