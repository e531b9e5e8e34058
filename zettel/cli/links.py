"""The links of a note, and what can be reached over them."""

from __future__ import annotations

import typer

from .common import common, console, remark, say_json

SNIPPET = 146  # characters of a linked note: two lines on 80 columns


def links(
    ctx: typer.Context,
    id: str = typer.Argument(metavar="ID", help="A note."),
    hops: int = typer.Option(1, "--hops", min=1, help="How many links away."),
) -> None:
    """Show how a note is linked, with the reason for each link.

    \b
    Examples:
      zettel links n_3f9a…
      zettel links n_3f9a… --hops 2
    """
    options = common(ctx)
    with options.memory() as memory:
        found = memory.links(id)
        near = memory.neighbors(id, hops=hops)
    if options.json:
        say_json({"links": found, "neighbors": near} if hops > 1 else found)
        return
    from rich.text import Text

    from .layout import INDENT, column, day, heading, paragraph, said, who

    if not near and not found:
        remark(f"zettel: {id} has no links")
        return
    notes = {neighbor.note.id: neighbor.note for neighbor in near}
    rows = [(1, link, link.target if link.source == id else link.source) for link in found]
    rows += [(neighbor.hops, neighbor.link, neighbor.note.id) for neighbor in near if neighbor.hops > 1]
    rows.sort(key=lambda row: (row[0], -row[1].weight))
    arrows = [f"—{link.type.value}→" if link.target == other else f"←{link.type.value}—" for _, link, other in rows]
    wide, dates, names = column(arrows), column(map(day, notes.values())), column(map(who, notes.values()))
    out = console()
    for place, ((away, link, other), arrow) in enumerate(zip(rows, arrows, strict=True)):
        if place:
            out.print()
        note = notes.get(other)
        heading(
            out,
            (f"{link.weight:.2f}", "bold green"),
            (arrow.ljust(wide), "cyan"),
            (f"{away} hops" if away > 1 else "1 hop " if hops > 1 else "", "yellow"),
            ((day(note) if note else "").ljust(dates), "cyan"),
            ((who(note) if note else "").ljust(names), "magenta"),
            (other, "dim"),
        )
        if note is not None:
            paragraph(out, said(note, SNIPPET), indent=INDENT)
        if link.reason:
            paragraph(out, Text(link.reason, style="dim italic"), indent=INDENT)


def conflicts(ctx: typer.Context) -> None:
    """Show notes that say otherwise of the same. Nothing tells which of the two still holds.

    \b
    Examples:
      zettel conflicts
      zettel conflicts --json
    """
    options = common(ctx)
    with options.memory() as memory:
        found = memory.conflicts()
    if options.json:
        say_json(found)
        return
    from rich.text import Text

    from .layout import INDENT, column, day, heading, paragraph, said, who

    if not found:
        remark("zettel: no two notes contradict each other")
        return
    notes = [note for pair in found for note in (pair.note, pair.other)]
    dates, names = column(map(day, notes)), column(map(who, notes))
    out = console()
    for place, pair in enumerate(found):
        if place:
            out.print()
        for note in (pair.note, pair.other):
            told = (day(note).ljust(dates), "cyan"), (who(note).ljust(names), "magenta"), (note.id, "dim")
            heading(out, *told)
            paragraph(out, said(note, SNIPPET), indent=INDENT)
        paragraph(out, Text(pair.reason, style="dim italic"), indent=INDENT)
