"""Asking a memory: search and context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from .common import common, console, key_values, remark, say, say_json

if TYPE_CHECKING:
    from rich.console import Console

    from zettel.model import Hit, Why

TELLING_FEATURES = 5
"""Features told for a hit: those that weighed most."""


def search(
    ctx: typer.Context,
    question: str = typer.Argument(metavar="QUESTION", help="What to ask."),
    k: int = typer.Option(10, "-k", "--k", help="How many notes."),
    explain: bool = typer.Option(False, "--explain", "-e", help="Say how each hit came about."),
    as_of: str | None = typer.Option(None, "--as-of", metavar="TIME", help="What was true then."),
    known_at: str | None = typer.Option(None, "--known-at", metavar="TIME", help="What had been recorded by then."),
    since: str | None = typer.Option(None, "--since", metavar="TIME", help="Happened then or later."),
    until: str | None = typer.Option(None, "--until", metavar="TIME", help="Happened before."),
    now: str | None = typer.Option(None, "--now", metavar="TIME", help="What 'yesterday' counts from."),
    kind: list[str] = typer.Option([], "--kind", help="episodic, semantic, procedural or insight; repeatable."),
    tag: list[str] = typer.Option([], "--tag", help="Notes with this tag; repeatable."),
    session: str | None = typer.Option(None, "--session", help="Notes of this session."),
    role: str | None = typer.Option(None, "--role", help="Notes of this speaker."),
    meta: list[str] = typer.Option([], "--meta", metavar="NAME=VALUE", help="Notes with this metadata; repeatable."),
    min_score: float | None = typer.Option(None, "--min-score", help="Leave out what scores less, 0 to 1."),
) -> None:
    """Find the notes that answer a question.

    \b
    Examples:
      zettel search "Where does Ann live?"
      zettel search "What did we decide?" -k 3 --explain
      zettel search "Where does Ann live?" --as-of 2024-01-31 --json
    """
    options = common(ctx)
    with options.memory() as memory:
        hits = memory.search(
            question, k=k, as_of=as_of, known_at=known_at, since=since, until=until, now=now,
            kinds=kind or None, tags=tag or None, session=session, role=role,
            filter=key_values(meta, "--meta") or None, min_score=min_score, explain=explain,
        )  # fmt: skip
    if options.json:
        say_json(hits)
    elif not hits:
        remark("zettel: nothing was found")
    else:
        show_hits(console(), hits, explained=k if explain else 0)


def context(
    ctx: typer.Context,
    question: str = typer.Argument(metavar="QUESTION", help="What to ask."),
    max_tokens: int = typer.Option(800, "--max-tokens", help="How long the text may be."),
    as_of: str | None = typer.Option(None, "--as-of", metavar="TIME", help="What was true then."),
) -> None:
    """What search finds, packed for a prompt.

    \b
    Example:
      zettel context "Where does Ann live?" --max-tokens 400
    """
    options = common(ctx)
    with options.memory() as memory:
        text = memory.context(question, max_tokens=max_tokens, as_of=as_of)
    if options.json:
        say_json({"context": text})
    else:
        say(text)


def show_hits(out: Console, hits: Sequence[Hit], *, explained: int) -> None:
    """Hits as a table; the first ``explained`` of them have their reasons below."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("score", justify="right", style="bold green")
    table.add_column("date", no_wrap=True, style="cyan")
    table.add_column("who", no_wrap=True, style="magenta", max_width=14, overflow="ellipsis")
    table.add_column("text", overflow="fold")
    for place, hit in enumerate(hits):
        note = hit.note
        text = Text(f"{note.title}: " if note.title else "", style="bold")
        text.append(" ".join(note.content.split()), style="not bold")
        if hit.why.superseded_by:
            text.append(f"  (replaced by {hit.why.superseded_by})", style="not bold yellow")
        text.append(f"  {note.id}", style="not bold dim")
        grid = Table.grid(padding=(0, 1))
        for name, told in reasons(hit.why) if place < explained else ():
            grid.add_row(Text(f"  {name}"), Text(told), style="dim italic")
        day = note.occurred_at.date().isoformat() if note.occurred_at else ""
        table.add_row(f"{hit.score:.2f}", day, Text(note.role or ""), Group(text, grid) if place < explained else text)
    out.print(table)


def reasons(why: Why) -> list[tuple[str, str]]:
    """How a hit came about, as (what, told) pairs."""
    told = [("seeds", ", ".join(why.seeds) or "none: the walk alone brought it")]
    if why.path:
        told.append(("path", " ".join(_step(step) for step in why.path) + " this note"))
    if why.time:
        told.append(("time", why.time))
    weighed = sorted(why.features.items(), key=lambda item: -abs(item[1]))[:TELLING_FEATURES]
    told.append(("features", ", ".join(f"{name} {value:+.2f}" for name, value in weighed if value) or "none"))
    told.append(("scorer", f"{why.scorer}: near {why.near:.2f}, walk {why.walk:.4f}"))
    return told


def _step(step: Any) -> str:
    """``name ─OVER→``; over a link against its direction ``name ←OVER─``."""
    if step.over.startswith("~"):
        return f"{step.name} ←{step.over[1:]}─"
    return f"{step.name} ─{step.over}→"
