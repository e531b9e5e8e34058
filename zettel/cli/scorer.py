"""Weights of the scorers from questions of one's own."""

from __future__ import annotations

from pathlib import Path

import typer

from zettel.scoring.device import require_torch

from .common import EVERYWHERE, common
from .measuring import JSON_HELP, drawable, readable, steps, tell

app = typer.Typer(help="Fit and train scorers on questions of your own.", rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Fit and train scorers on questions of your own."""


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


@app.command(epilog=EVERYWHERE)
def train(
    ctx: typer.Context,
    paths: list[Path] = typer.Argument(metavar="PATH", help="Conversations with questions, in LoCoMo's layout."),
    out: Path = typer.Option(..., "--out", metavar="FOLDER", help="Where to write the decoder."),
    test: list[Path] = typer.Option([], "--test", metavar="PATH", help="A conversation to measure on; repeatable."),
    documents: tuple[Path, Path] | None = typer.Option(
        None, "--documents", metavar="CORPUS QUESTIONS", help="Documents and questions to learn from."
    ),
    without: list[str] = typer.Option(
        [], "--without", metavar="PART", help="Leave out gates, setwise, biases or vectors; repeatable."
    ),
    epochs: int = typer.Option(10, "--epochs", min=1, help="Times that all questions are learned from, at most."),
    seed: int = typer.Option(0, "--seed", help="The same one gives the same weights."),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
    plot: Path | None = typer.Option(None, "--plot", metavar="FOLDER", help="Draw the curve of learning there."),
) -> None:
    """Train a memory decoder on labelled conversations, and show what it is worth on others.

    A few conversations are held back: they choose the epoch. Needs zettel-graph[torch].

    \b
    Examples:
      zettel scorer train one.json two.json three.json --out decoder
      zettel scorer train *.json --out decoder --without vectors --seed 1
      zettel search "Where is the key?" --scorer decoder:decoder
    """
    options = common(ctx)
    for path in (*paths, *test, *(documents or ())):
        readable(path, json)
    drawable(plot)
    require_torch("the memory decoder")
    import anyio

    from zettel.bench import decoding
    from zettel.scoring.training import Settings

    with steps() as progress:
        result = anyio.run(
            decoding.learn, paths, progress, out, test, documents, without, options.embedder,
            Settings(epochs=epochs, seed=seed),
        )  # fmt: skip
    tell(result, "-" if options.json else json, plot)


@app.command(name="eval", epilog=EVERYWHERE)
def evaluate(
    ctx: typer.Context,
    paths: list[Path] = typer.Argument(metavar="PATH", help="Conversations with questions, in LoCoMo's layout."),
    decoder: str | None = typer.Option(None, "--decoder", metavar="FOLDER", help="A decoder; else the one shipped."),
    documents: tuple[Path, Path] | None = typer.Option(
        None, "--documents", metavar="CORPUS QUESTIONS", help="Documents and questions to measure on, as JSON lines."
    ),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """Show what a memory decoder is worth on labelled conversations, beside the default scorer.

    \b
    Examples:
      zettel scorer eval mine.json
      zettel scorer eval mine.json --decoder decoder
    """
    options = common(ctx)
    for path in (*paths, *(documents or ())):
        readable(path, json)
    require_torch("the memory decoder")
    import anyio

    from zettel.bench import decoding

    with steps() as progress:
        result = anyio.run(decoding.judge, decoder, paths, progress, documents, options.embedder)
    tell(result, "-" if options.json else json)
