"""Weights of the scorers from questions of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from zettel.errors import InvalidInput, ScorerError

from .common import EVERYWHERE, Common, common, remark, say, say_json, writable
from .measuring import JSON_HELP, drawable, readable, steps, tell

if TYPE_CHECKING:
    from zettel.model import Scope

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
        [], "--without", metavar="PART",
        help="Leave out gates, setwise, biases (or of these talk, alike, time, links) or vectors; repeatable.",
    ),
    bank: int = typer.Option(0, "--bank", min=0, metavar="SLOTS", help="Give each scope so many slots of its own."),
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
    import anyio

    from zettel.scoring.device import require_torch

    require_torch("the memory decoder")
    from zettel.bench import decoding
    from zettel.scoring.training import Settings

    with steps() as progress:
        result = anyio.run(
            decoding.learn, paths, progress, out, test, documents, without, options.embedder,
            Settings(epochs=epochs, seed=seed), bank,
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
    import anyio

    from zettel.scoring.device import require_torch

    require_torch("the memory decoder")
    from zettel.bench import decoding

    with steps() as progress:
        result = anyio.run(decoding.judge, decoder, paths, progress, documents, options.embedder)
    tell(result, "-" if options.json else json)


@app.command(epilog=EVERYWHERE)
def slots(
    ctx: typer.Context,
    scorer: str = typer.Option(..., "--scorer", metavar="NAME", help="A memory decoder with a bank: decoder:FOLDER."),
    rebuild: bool = typer.Option(False, "--rebuild", help="Write all notes anew."),
) -> None:
    """Write the notes that are not there yet to the scope's slots. Only a decoder trained with --bank has slots.

    \b
    Examples:
      zettel scorer train *.json --out decoder --bank 16
      zettel scorer slots --scorer decoder:decoder
      zettel scorer slots --scorer decoder:decoder --rebuild
    """
    options = common(ctx)
    with options.memory() as memory:
        notes = memory.write_slots(anew=rebuild, scorer=scorer)
    if options.json:
        say_json({"notes": notes})
    else:
        say(f"{notes:,} notes stand in the slots")


@app.command(epilog=EVERYWHERE)
def ablate(
    ctx: typer.Context,
    paths: list[Path] = typer.Argument(metavar="PATH", help="Conversations with questions, in LoCoMo's layout."),
    test: list[Path] = typer.Option([], "--test", metavar="PATH", help="A conversation to measure on; repeatable."),
    other: list[Path] = typer.Option(
        [], "--other", metavar="PATH", help="A file to measure on in a column of its own; repeatable."
    ),
    documents: tuple[Path, Path] | None = typer.Option(
        None, "--documents", metavar="CORPUS QUESTIONS", help="Documents and questions to learn from as well."
    ),
    seeds: int = typer.Option(3, "--seeds", min=1, help="Times that each is trained."),
    bank: list[int] = typer.Option([4, 16], "--bank", min=1, metavar="SLOTS", help="Also with so many slots."),
    size: list[int] = typer.Option([], "--size", metavar="N", help="Also from so many conversations; repeatable."),
    only: list[str] = typer.Option([], "--only", metavar="VARIANT", help="Only the one of this name; repeatable."),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """Train the memory decoder without each of its parts, and show what that costs on what it never saw.

    Takes half a minute to a minute for each variant and seed.

    \b
    Examples:
      zettel scorer ablate one.json two.json three.json --test four.json
      zettel scorer ablate *.json --test mine.json --seeds 5 --size 10 --size 20 --json ablation.json
      zettel scorer ablate *.json --test mine.json --only whole --only "without gates"
    """
    options = common(ctx)
    for path in (*paths, *test, *other, *(documents or ())):
        readable(path, json)
    import anyio

    from zettel.scoring.device import require_torch

    require_torch("the memory decoder")
    from zettel.bench import ablation

    with steps() as progress:
        result = anyio.run(
            ablation.run, paths, progress, test, other, documents, seeds, bank, size, only, options.embedder
        )
    tell(result, "-" if options.json else json)


@app.command(epilog=EVERYWHERE)
def tune(
    ctx: typer.Context,
    into: Path = typer.Option(..., "--into", metavar="FOLDER", help="Where to write the scorer, and to go on from."),
    decoder: Path | None = typer.Option(None, "--decoder", metavar="FOLDER", help="A decoder to begin with."),
    also: list[str] = typer.Option([], "--also", metavar="USER", help="Learn of this user too; repeatable."),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """Learn from feedback what is of use in a scope, and keep it if it is better on feedback that was held back.

    Needs zettel-graph[torch], and some 30 searches in which something was of use.

    \b
    Examples:
      zettel scorer tune --into mine
      zettel scorer tune --user ann --into anns
      zettel search "Where is the key?" --user ann --scorer decoder:anns
    """
    options = common(ctx)
    where = "-" if options.json else json
    if where is not None and where != "-":
        writable(Path(where))
    scopes = _scopes(options, also)
    with options.memory() as memory, steps() as progress:
        told = memory.tune(into, decoder=decoder, scopes=scopes, on_progress=progress)
    if where == "-":
        say_json(told._asdict())
    elif where is not None:
        Path(where).write_text(dumps(told._asdict(), indent=2) + "\n", encoding="utf-8")
    gain = f"{told.before:.3f} before, {told.after:.3f} tuned (standard error {told.error:.3f})"
    if not told.accepted:
        raise ScorerError(
            f"not better on the feedback held back, so nothing is written: gain {gain}, {told.useful} searches with "
            "something of use"
        )
    remark(f"better on the feedback held back: gain {gain}, {told.useful} searches with something of use")
    remark(f"zettel: written to {into}; search with --scorer decoder:{into}")


@app.command(epilog=EVERYWHERE)
def export(
    ctx: typer.Context,
    paths: list[Path] = typer.Argument(None, metavar="[PATH]...", help="Conversations; none: the log of a scope."),
    to: Path = typer.Option(..., "--to", metavar="FILE.jsonl", help="Where to write the questions."),
    also: list[str] = typer.Option([], "--also", metavar="USER", help="The log of this user too; repeatable."),
) -> None:
    """Write labelled questions and the notes they are about as JSON lines, to train on elsewhere.

    Of a scope these are the searches that feedback was told of, of conversations their questions. The file is one that
    zettel scorer train, eval and fit read.

    \b
    Examples:
      zettel scorer export --user ann --to ann.jsonl
      zettel scorer export one.json two.json --to both.jsonl
      zettel scorer train ann.jsonl ben.jsonl --out decoder
    """
    options = common(ctx)
    for path in paths or ():
        readable(path, None)
    if to.suffix != ".jsonl":
        raise InvalidInput(f"--to {to}: end it in .jsonl, so that it is known again")
    writable(to)
    from zettel.bench import labels
    from zettel.bench.fitting import read

    if paths:
        lines = [line for path in paths for one in read(path) for line in labels.from_collection(one)]
    else:
        scopes = _scopes(options, also)
        with options.memory() as memory:
            lines = [line for scope in scopes for line in labels.from_log(memory, scope)]
        if not lines:
            raise InvalidInput("the log has no search of which something was told: see zettel feedback")
    count = labels.write(lines, to)
    if options.json:
        say_json({"to": to, "questions": count})
    else:
        say(f"{count:,} questions written to {to}")


def _scopes(options: Common, also: Sequence[str]) -> list[Scope]:
    """The scope that was named, and those of other users beside it."""
    from zettel.model import Scope

    return [options.scope(), *(Scope(tenant=options.tenant, user=user, agent=options.agent) for user in also)]
