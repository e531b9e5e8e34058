"""The commands links and conflicts."""

from __future__ import annotations

import typer

from .common import common, console, notify, print_json

SNIPPET = 146  # characters of a linked note: two lines on 80 columns


def links(
    ctx: typer.Context,
    id: str = typer.Argument(metavar="ID", help="A note."),
    hops: int = typer.Option(1, "--hops", min=1, help="Follow links up to this distance."),
) -> None:
    """Show the links of a note, each with its reason.

    \b
    Examples:
      zettel links n_3f9a…
      zettel links n_3f9a… --hops 2
    """
    options = common(ctx)
    with options.memory() as memory:
        links = memory.links(id)
        neighbors = memory.neighbors(id, hops=hops)
    if options.json:
        print_json({"links": links, "neighbors": neighbors} if hops > 1 else links)
        return
    from rich.text import Text

    from .layout import INDENT, column, day, heading, note_text, paragraph, who

    if not neighbors and not links:
        notify(f"zettel: {id} has no links")
        return
    notes = {neighbor.note.id: neighbor.note for neighbor in neighbors}
    rows = [(1, link, link.target if link.source == id else link.source) for link in links]
    rows += [(neighbor.hops, neighbor.link, neighbor.note.id) for neighbor in neighbors if neighbor.hops > 1]
    rows.sort(key=lambda row: (row[0], -row[1].weight))
    arrows = [f"—{link.type.value}→" if link.target == other else f"←{link.type.value}—" for _, link, other in rows]
    wide, dates, names = column(arrows), column(map(day, notes.values())), column(map(who, notes.values()))
    out = console()
    for place, ((distance, link, other), arrow) in enumerate(zip(rows, arrows, strict=True)):
        if place:
            out.print()
        note = notes.get(other)
        heading(
            out,
            (f"{link.weight:.2f}", "bold green"),
            (arrow.ljust(wide), "cyan"),
            (f"{distance} hops" if distance > 1 else "1 hop " if hops > 1 else "", "yellow"),
            ((day(note) if note else "").ljust(dates), "cyan"),
            ((who(note) if note else "").ljust(names), "magenta"),
            (other, "dim"),
        )
        if note is not None:
            paragraph(out, note_text(note, SNIPPET), indent=INDENT)
        if link.reason:
            paragraph(out, Text(link.reason, style="dim italic"), indent=INDENT)


def conflicts(ctx: typer.Context) -> None:
    """Show pairs of notes that contradict each other. It is not known which note is still true.

    \b
    Examples:
      zettel conflicts
      zettel conflicts --json
    """
    options = common(ctx)
    with options.memory() as memory:
        pairs = memory.conflicts()
    if options.json:
        print_json(pairs)
        return
    from rich.text import Text

    from .layout import INDENT, column, day, heading, note_text, paragraph, who

    if not pairs:
        notify("zettel: no notes contradict each other")
        return
    notes = [note for pair in pairs for note in (pair.note, pair.other)]
    dates, names = column(map(day, notes)), column(map(who, notes))
    out = console()
    for place, pair in enumerate(pairs):
        if place:
            out.print()
        for note in (pair.note, pair.other):
            heading(out, (day(note).ljust(dates), "cyan"), (who(note).ljust(names), "magenta"), (note.id, "dim"))
            paragraph(out, note_text(note, SNIPPET), indent=INDENT)
        paragraph(out, Text(pair.reason, style="dim italic"), indent=INDENT)
