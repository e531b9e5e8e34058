"""Prints hits, with explanations on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .layout import INDENT, column, heading, labelled, note_text, paragraph, when, who

if TYPE_CHECKING:
    from rich.console import Console

    from zettel.model import Hit, Step, Why

SHOWN_FEATURES = 5
"""Features shown per hit, those with the most weight."""
NOT_REVERSED, REVERSED = "—{}→", "←{}—"
"""Arrows of a step along and against the direction of a link."""


def show_hits(out: Console, hits: Sequence[Hit], *, explained: int) -> None:
    """Print hits in order, the first ``explained`` ones with explanations."""
    from rich.text import Text

    from zettel.search.pack import repetition

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
        paragraph(out, note_text(note, text=hit_text(hit)), indent=INDENT)
        if repeated := repetition(note):
            paragraph(out, Text(repeated, style="dim"), indent=INDENT)
        if note.confidence < 1:
            paragraph(out, Text(f"confidence {note.confidence:.2f}", style="yellow"), indent=INDENT)
        if why.disputed:
            support, opposition = why.disputed
            writers = f"disputed: independent writers for it {support}, against it {opposition}"
            paragraph(out, Text(writers, style="yellow"), indent=INDENT)
        if why.behind:
            paragraph(out, Text(f"behind by {why.behind} notes", style="yellow"), indent=INDENT)
        if why.superseded_by:
            paragraph(out, Text(f"superseded by {why.superseded_by}", style="yellow"), indent=INDENT)
        if note.archived:
            state = "archived" if note.quarantined is None else f"quarantined: {note.quarantined}".rstrip(": ")
            paragraph(out, Text(state, style="yellow"), indent=INDENT)
        if note.ceiling < 1:
            paragraph(out, Text(f"trust {why.trust:.2f}: from an untrusted writer", style="yellow"), indent=INDENT)
        if note.flags:
            paragraph(out, Text(f"looks like instructions ({', '.join(note.flags)})", style="yellow"), indent=INDENT)
        if place < explained:
            labelled(out, reasons(why), indent=INDENT, style="dim")


def hit_text(hit: Hit) -> str:
    """Return the passage of a hit, with an ellipsis where its note has more text."""
    from zettel.search.passage import marked_passage

    return marked_passage(hit.passage or hit.note.content, hit.note.content)


def reasons(why: Why) -> list[tuple[str, str]]:
    """Return the explanation of a hit as (label, text) pairs."""
    rows = [("sources", ", ".join(why.seeds) or "graph only")]
    if why.path:
        rows.append(("path", path_text(why.path)))
    if why.time:
        rows.append(("time", why.time))
    if why.strength is not None:
        rows.append(("strength", f"{why.strength:.2f}: not useful for a long time"))
    weightiest = sorted(why.features.items(), key=lambda item: -abs(item[1]))[:SHOWN_FEATURES]
    rows.append(("features", ", ".join(f"{name} {value:+.2f}" for name, value in weightiest if value) or "none"))
    rows.append(("scorer", f"{why.scorer}: local score {why.local_score:.2f}, graph score {why.graph_score:.4f}"))
    return rows


def path_text(path: Sequence[Step]) -> str:
    """Return a path such as ``question names title → The Glass Orchard —MENTIONS→ this note``.

    A term that the question names is printed once. A link followed against its direction is printed as ``←TYPE—``.
    """
    steps: list[str] = []
    for place, step in enumerate(path):
        if step.kind == "question":
            named_next = place + 1 < len(path) and path[place + 1].name == step.name
            steps.append(f"question names {'term' if named_next else step.name} →")
        elif step.over.startswith("~"):
            steps.append(f"{step.name} {REVERSED.format(step.over[1:])}")
        else:
            steps.append(f"{step.name} {NOT_REVERSED.format(step.over)}")
    return " ".join([*steps, "this note"])
