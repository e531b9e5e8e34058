"""Have a memory's notes learn from each other."""

from __future__ import annotations

import typer

from .common import common, console, say, say_json


def evolve(
    ctx: typer.Context,
    decay: str | None = typer.Option(
        None, "--decay", metavar="TIME", help="Also put away what nobody needed for that long: 90d, or 24h, 30m."
    ),
) -> None:
    """Let notes learn from each other. Words that bind a note's neighbours join its keywords, its importance follows
    its links, notes that say the same become one, what belongs together gets an insight, what lasts of people a
    profile, and what came of acting a lesson. `history` shows each change, `revert` takes it back.

    \b
    Examples:
      zettel evolve
      zettel evolve --user ann --json
      zettel evolve --decay 180d
    """
    options = common(ctx)
    with options.memory(works=True, decay=decay) as memory:
        changed = memory.evolve()
    if options.json:
        say_json(changed._asdict())
    elif not any(changed):
        say("nothing to change")
    else:
        from .layout import labelled

        names = ("notes revised", "notes merged", "new insights", "notes faded and archived")
        labelled(console(), ((name, f"{count:,}") for name, count in zip(names, changed, strict=True)))
