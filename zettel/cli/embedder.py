"""The command embedder distill."""

from __future__ import annotations

from pathlib import Path

import typer

from .common import EVERYWHERE, common, echo, print_json

app = typer.Typer(help="Create your own embedder.", rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Create your own embedder."""


@app.command(epilog=EVERYWHERE)
def distill(
    ctx: typer.Context,
    model: str = typer.Argument(metavar="MODEL", help="A sentence-transformers model, by name or folder."),
    folder: Path = typer.Argument(metavar="FOLDER", help="Where to write the new embedder."),
    dims: int = typer.Option(256, "--dims", min=1, help="Dimensions of a vector."),
) -> None:
    """Distil a static embedder, which runs without torch and about a hundred times faster. Requires the extra torch.

    \b
    Examples:
      zettel embedder distill all-MiniLM-L6-v2 my-embedder
      zettel reembed --embedder ./my-embedder
    """
    options = common(ctx)
    from zettel.embed.distill import distill as make

    embedder = make(model, folder, dims=dims)
    if options.json:
        print_json(embedder.info._asdict())
    else:
        echo(f"{embedder.info.name} with {embedder.info.dim} dimensions is written to {folder}")
