"""Weights of the default scorer from questions of one's own."""

from __future__ import annotations

from pathlib import Path

import typer

from .common import EVERYWHERE, common
from .measuring import JSON_HELP, readable, steps, tell

app = typer.Typer(help="Fit the scorer to questions of your own.", rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Fit the scorer to questions of your own."""


@app.command(epilog=EVERYWHERE)
def fit(
    ctx: typer.Context,
    paths: list[Path] = typer.Argument(metavar="PATH", help="Conversations with questions, in LoCoMo's layout."),
    test: list[Path] = typer.Option([], "--test", metavar="PATH", help="A conversation to measure on; repeatable."),
    documents: tuple[Path, Path] | None = typer.Option(
        None, "--documents", metavar="CORPUS QUESTIONS", help="Documents and questions to measure on, as JSON lines."
    ),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """Fit the default scorer's weights to labelled conversations, and show what they are worth on others.

    \b
    Examples:
      zettel scorer fit one.json two.json three.json
      zettel scorer fit one.json two.json --test three.json --documents passages.jsonl questions.jsonl
    """
    options = common(ctx)
    for path in (*paths, *test, *(documents or ())):
        readable(path, json)
    import anyio

    from zettel.bench import fitting

    with steps() as progress:
        result = anyio.run(fitting.run, paths, progress, test, documents, options.embedder)
    tell(result, "-" if options.json else json)
