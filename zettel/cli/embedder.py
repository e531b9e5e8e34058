"""Making an embedder of one's own."""

from __future__ import annotations

from pathlib import Path

import typer

from .common import EVERYWHERE, common, say, say_json

app = typer.Typer(help="Make an embedder of your own.", rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Make an embedder of your own."""


@app.command(epilog=EVERYWHERE)
def distill(
    ctx: typer.Context,
    model: str = typer.Argument(metavar="MODEL", help="A sentence-transformers model, by name or folder."),
    folder: Path = typer.Argument(metavar="FOLDER", help="Where to write the new embedder."),
    dims: int = typer.Option(256, "--dims", min=1, help="Numbers for each text."),
) -> None:
    """Distil a static embedder, which needs no torch and is about a hundred times faster. Needs the extra
    torch.

    \b
    Example:
      zettel embedder distill all-MiniLM-L6-v2 my-embedder
      zettel reembed --embedder ./my-embedder
    """
    options = common(ctx)
    from zettel.embed.distill import distill as make

    made = make(model, folder, dims=dims)
    if options.json:
        say_json(made.info._asdict())
    else:
        say(f"{folder} holds {made.info.name}, {made.info.dim} numbers for each text")
