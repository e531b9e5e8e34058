"""The commands links, unlink, conflicts and resolve."""

from __future__ import annotations

import typer

from .common import common, console, echo, notify, print_json

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


def unlink(
    ctx: typer.Context,
    source: str = typer.Argument(metavar="SOURCE", help="The note that the link starts from."),
    target: str = typer.Argument(metavar="TARGET", help="The note that the link leads to."),
    type: str = typer.Option("RELATES", "--type", metavar="TYPE", help="RELATES, SUPERSEDES, UPDATES or CONTRADICTS."),
) -> None:
    """Remove a link. No job makes it again, and revert restores it.

    \b
    Examples:
      zettel unlink n_3f9a… n_81c2…
      zettel unlink n_3f9a… n_81c2… --type SUPERSEDES
    """
    options = common(ctx)
    with options.memory() as memory:
        link = memory.unlink(source, target, type)
    if options.json:
        print_json(link)
    else:
        echo(f"{link.source} —{link.type.value}→ {link.target} is removed")


def conflicts(ctx: typer.Context) -> None:
    """Show notes that contradict each other.

    Each pair begins with the newer note. zettel does not know which note is true.

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
        paragraph(out, Text(pair.reason, style="bold"))
        for note, source in ((pair.note, pair.source), (pair.other, pair.other_source)):
            heading(
                out,
                ((day(note) or "no date").ljust(max(dates, len("no date"))), "cyan"),
                (who(note).ljust(names), "magenta"),
                (f"confidence {note.confidence:.2f}", "green"),
                (note.id, "dim"),
                ("" if source is None else str(source), "dim"),
            )
            paragraph(out, note_text(note, SNIPPET), indent=INDENT)
    notify("zettel: settle a conflict by the note to keep and the other one: zettel resolve KEEP OVER")


def resolve(
    ctx: typer.Context,
    keep: str = typer.Argument(metavar="KEEP", help="The note that is true."),
    over: str = typer.Argument(metavar="OVER", help="The note that is outdated."),
    reason: str = typer.Option("", "--reason", metavar="TEXT", help="The reason, stored with the link."),
) -> None:
    """Settle a conflict between two notes.

    KEEP supersedes OVER from then on. unlink with --type SUPERSEDES opens the conflict again.

    \b
    Examples:
      zettel resolve n_3f9a… n_81c2… --reason "Ann confirmed it"
    """
    options = common(ctx)
    with options.memory() as memory:
        link = memory.resolve(keep, over, reason=reason)
    if options.json:
        print_json(link)
    else:
        echo(f"{link.source} supersedes {link.target}")
