"""The command evolve."""

from __future__ import annotations

import typer

from .common import common, console, echo, print_json


def evolve(
    ctx: typer.Context,
    decay: str | None = typer.Option(
        None, "--decay", metavar="TIME", help="Also archive notes that were not useful for this long: 90d, 24h, 30m."
    ),
) -> None:
    """Evolve the memory: improve notes from their neighbours.

    Notes gain keywords from their neighbours and importance from their links, duplicates are merged, and insights, a
    profile of the speakers and lessons are derived. `history` shows each change, and `revert` undoes it.

    \b
    Examples:
      zettel evolve
      zettel evolve --user ann --json
      zettel evolve --decay 180d
    """
    options = common(ctx)
    with options.memory(run_llm_jobs=True, decay=decay) as memory:
        changed = memory.evolve()
    if options.json:
        print_json(changed._asdict())
    elif not any(changed):
        echo("nothing to change")
    else:
        from .layout import labelled

        names = ("notes revised", "notes merged", "new insights", "decayed notes archived")
        labelled(console(), ((name, f"{count:,}") for name, count in zip(names, changed, strict=True)))
