"""The links of a note, and what can be reached over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from .common import common, console, remark, say_json

if TYPE_CHECKING:
    from zettel.model import Note

SNIPPET = 70  # characters of a linked note: one line in a terminal


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
    from rich.table import Table
    from rich.text import Text

    if not near and not found:
        remark(f"zettel: {id} has no links")
        return
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("hops", justify="right")
    table.add_column("link", no_wrap=True, style="cyan")
    table.add_column("weight", justify="right", style="green")
    table.add_column("note", overflow="fold")
    texts = {neighbor.note.id: _snippet(neighbor.note) for neighbor in near}
    rows = [(1, link, link.target if link.source == id else link.source) for link in found]
    rows += [(neighbor.hops, neighbor.link, neighbor.note.id) for neighbor in near if neighbor.hops > 1]
    for away, link, other in rows:
        arrow = f"─{link.type.value}→" if link.target == other else f"←{link.type.value}─"
        text = Text(texts.get(other, "")).append(f"  {other}", style="dim")
        text.append(f"\n{link.reason}" if link.reason else "", style="dim italic")
        table.add_row(str(away), arrow, f"{link.weight:.2f}", text)
    console().print(table)


def _snippet(note: Note) -> str:
    text = " ".join(note.content.split())
    said = f"{note.role}: {text}" if note.role else text
    return said if len(said) <= SNIPPET else f"{said[: SNIPPET - 1]}…"
