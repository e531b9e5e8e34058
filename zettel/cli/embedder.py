"""The commands embedder export and embedder distill."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .common import EVERYWHERE, common, echo, print_json

if TYPE_CHECKING:
    from zettel.ports import EmbedderInfo

app = typer.Typer(help="Create your own embedder.", rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Create your own embedder."""


@app.command(epilog=EVERYWHERE)
def export(
    ctx: typer.Context,
    model: str = typer.Argument(metavar="MODEL", help="A sentence-transformers BERT, by name or folder."),
    folder: Path = typer.Argument(metavar="FOLDER", help="Where to write the new embedder."),
    tokens: int | None = typer.Option(
        None, "--tokens", min=3, help="Tokens of a text that count. [default: the model's setting]"
    ),
) -> None:
    """Export a contextual embedder, which runs without torch and several times faster. Requires the extra torch.

    \b
    Examples:
      zettel embedder export all-MiniLM-L6-v2 my-embedder
      zettel reembed --embedder ./my-embedder
    """
    from zettel.embed.export import export_onnx

    _report(ctx, export_onnx(model, folder, max_tokens=tokens).info, folder)


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
    from zettel.embed.distill import distill as make

    _report(ctx, make(model, folder, dims=dims).info, folder)


def _report(ctx: typer.Context, info: EmbedderInfo, folder: Path) -> None:
    if common(ctx).json:
        print_json(info._asdict())
    else:
        echo(f"{info.name} with {info.dim} dimensions is written to {folder}")
