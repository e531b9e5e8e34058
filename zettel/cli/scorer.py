"""Commands that fit, train and measure scorers."""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from zettel.errors import InvalidInput, ScorerError

from .benchmark_output import JsonFile, QuestionFiles, measure, require_drawable, require_readable, steps
from .common import EVERYWHERE, Common, common, echo, notify, print_json, require_writable

if TYPE_CHECKING:
    from zettel.model import Scope

TestFiles: TypeAlias = Annotated[
    list[Path] | None, typer.Option("--test", metavar="PATH", help="A conversation to measure on; repeatable.")
]
Documents: TypeAlias = Annotated[
    tuple[Path, Path] | None,
    typer.Option(
        "--documents", metavar="CORPUS QUESTIONS", help="Documents and questions to measure on, as JSON lines."
    ),
]
TrainingDocuments: TypeAlias = Annotated[
    tuple[Path, Path] | None,
    typer.Option("--documents", metavar="CORPUS QUESTIONS", help="Documents and questions to train on as well."),
]
OtherUsers: TypeAlias = Annotated[
    list[str] | None, typer.Option("--also", metavar="USER", help="Also read the log of this user; repeatable.")
]

app = typer.Typer(help="Fit and train scorers on questions of your own.", rich_markup_mode=None)


@app.command(epilog=EVERYWHERE)
def fit(
    ctx: typer.Context,
    paths: QuestionFiles,
    test: TestFiles = None,
    documents: TrainingDocuments = None,
    out: Path | None = typer.Option(None, "--out", metavar="FOLDER", help="Where to write the weights."),
    networks: int = typer.Option(6, "--networks", min=1, help="Networks to fit and average."),
    epochs: int = typer.Option(12, "--epochs", min=1, help="Passes over all questions, for each network."),
    json: JsonFile = None,
) -> None:
    """Fit the default scorer to labelled memories, and measure it on others.

    A PATH contains chats with an assistant, conversations in LoCoMo's layout, or labelled questions (see export).
    Requires zettel-graph[torch].

    \b
    Examples:
      zettel scorer fit one.json two.json three.json
      zettel scorer fit chats/*.json --test three.json --documents passages.jsonl questions.jsonl --out weights
    """
    options = common(ctx)
    for path in (*paths, *(test or ()), *(documents or ())):
        require_readable(path, json)
    if out is not None and not out.is_dir():
        raise InvalidInput(f"the folder {out} does not exist: create it first")
    from zettel.scoring.device import require_torch

    require_torch("fitting the default scorer")
    from zettel.bench import fitting
    from zettel.scoring.network_fit import FitSettings

    settings = FitSettings(networks=networks, epochs=epochs)
    measure(
        lambda progress: fitting.run(paths, progress, test or (), documents, options.embedder, out, settings),
        options, json,
    )  # fmt: skip


@app.command(epilog=EVERYWHERE)
def train(
    ctx: typer.Context,
    paths: QuestionFiles,
    out: Path = typer.Option(..., "--out", metavar="FOLDER", help="Where to write the decoder."),
    test: TestFiles = None,
    documents: TrainingDocuments = None,
    vectors: bool = typer.Option(True, "--vectors/--no-vectors", help="Read the notes' vectors."),
    device: str = typer.Option("cpu", "--device", help="Where to train: cpu, cuda or mps."),
    epochs: int = typer.Option(10, "--epochs", min=1, help="Maximum number of passes over all questions."),
    seed: int = typer.Option(0, "--seed", help="Seed of the random numbers; the same seed gives the same weights."),
    json: JsonFile = None,
    plot: Path | None = typer.Option(None, "--plot", metavar="FOLDER", help="Draw the training curve there, as SVG."),
) -> None:
    """Train a memory decoder on labelled conversations, and measure it on others.

    Some conversations only select the epoch. Requires zettel-graph[torch].

    \b
    Examples:
      zettel scorer train one.json two.json three.json --out decoder
      zettel scorer train *.json --out decoder --no-vectors --seed 1
      zettel search "Where is the key?" --scorer decoder:decoder
    """
    options = common(ctx)
    for path in (*paths, *(test or ()), *(documents or ())):
        require_readable(path, json)
    require_drawable(plot)
    from zettel.scoring.device import require_torch

    require_torch("the memory decoder")
    from zettel.bench import decoder_training
    from zettel.scoring.training import TrainingSettings

    learn, settings = decoder_training.learn, TrainingSettings(epochs=epochs, seed=seed, device=device)
    measure(
        lambda progress: learn(
            paths, progress, out, test or (), documents, vectors, options.embedder, settings
        ), options, json, plot,
    )  # fmt: skip


@app.command(name="eval", epilog=EVERYWHERE)
def evaluate(
    ctx: typer.Context,
    paths: QuestionFiles,
    decoder: str | None = typer.Option(None, "--decoder", metavar="FOLDER", help="By default the shipped decoder."),
    documents: Documents = None,
    json: JsonFile = None,
) -> None:
    """Measure a memory decoder on labelled conversations, beside the default scorer.

    \b
    Examples:
      zettel scorer eval mine.json
      zettel scorer eval mine.json --decoder decoder
    """
    options = common(ctx)
    for path in (*paths, *(documents or ())):
        require_readable(path, json)
    from zettel.scoring.device import require_torch

    require_torch("the memory decoder")
    from zettel.bench import decoder_training

    run = decoder_training.judge
    measure(lambda progress: run(decoder, paths, progress, documents, options.embedder), options, json)


@app.command(epilog=EVERYWHERE)
def ablate(
    ctx: typer.Context,
    paths: QuestionFiles,
    test: TestFiles = None,
    other: list[Path] = typer.Option(
        [], "--other", metavar="PATH", help="A file to measure on in a column of its own; repeatable."
    ),
    documents: TrainingDocuments = None,
    seeds: int = typer.Option(3, "--seeds", min=1, help="Training runs of each variant."),
    size: list[int] = typer.Option([], "--size", metavar="N", help="Also train on N conversations; repeatable."),
    only: list[str] = typer.Option([], "--only", metavar="VARIANT", help="Train only this variant; repeatable."),
    json: JsonFile = None,
) -> None:
    """Train the memory decoder without each of its parts, and measure each variant on unseen conversations.

    Each variant and seed takes up to a minute.

    \b
    Examples:
      zettel scorer ablate one.json two.json three.json --test four.json
      zettel scorer ablate *.json --test mine.json --seeds 5 --size 10 --size 20 --json ablation.json
      zettel scorer ablate *.json --test mine.json --only whole --only "without gates"
    """
    options = common(ctx)
    for path in (*paths, *(test or ()), *other, *(documents or ())):
        require_readable(path, json)
    from zettel.scoring.device import require_torch

    require_torch("the memory decoder")
    from zettel.bench import decoder_ablation as ablation

    run, tests = ablation.run, test or ()
    measure(
        lambda progress: run(paths, progress, tests, other, documents, seeds, size, only, options.embedder),
        options, json,
    )  # fmt: skip


@app.command(epilog=EVERYWHERE)
def tune(
    ctx: typer.Context,
    into: Path = typer.Option(..., "--into", metavar="FOLDER", help="Where to write the scorer, or to continue from."),
    decoder: Path | None = typer.Option(None, "--decoder", metavar="FOLDER", help="A decoder to start from."),
    also: OtherUsers = None,
    json: JsonFile = None,
) -> None:
    """Learn from feedback which notes are useful in a scope, and save the scorer if cross-validation shows a gain.

    Requires zettel-graph[torch] and about 30 searches with a useful hit.

    \b
    Examples:
      zettel scorer tune --into mine
      zettel scorer tune --user ann --into anns
      zettel search "Where is the key?" --user ann --scorer decoder:anns
    """
    options = common(ctx)
    where = "-" if options.json else json
    if where is not None and where != "-":
        require_writable(Path(where))
    scopes = _scopes(options, also)
    with options.memory() as memory, steps() as progress:
        tuned = memory.tune(into, decoder=decoder, scopes=scopes, on_progress=progress)
    if where == "-":
        print_json(tuned._asdict())
    elif where is not None:
        Path(where).write_text(dumps(tuned._asdict(), indent=2) + "\n", encoding="utf-8")
    gain = f"{tuned.before:.3f} before, {tuned.after:.3f} tuned (standard error {tuned.error:.3f})"
    if not tuned.accepted:
        raise ScorerError(
            f"the tuned scorer shows no significant gain in cross-validation, so nothing is written: gain {gain}, "
            f"{tuned.useful} searches with a useful hit"
        )
    notify(f"better in cross-validation: gain {gain}, {tuned.useful} searches with a useful hit")
    notify(f"zettel: written to {into}; search with --scorer decoder:{into}")


@app.command(epilog=EVERYWHERE)
def export(
    ctx: typer.Context,
    paths: list[Path] = typer.Argument(None, metavar="[PATH]...", help="Conversations; by default the log of a scope."),
    to: Path = typer.Option(..., "--to", metavar="FILE.jsonl", help="Where to write the questions."),
    also: OtherUsers = None,
) -> None:
    """Write labelled questions and their notes as JSON lines, for training elsewhere.

    A scope exports its searches with feedback, a conversation its questions. zettel scorer train, eval and fit read
    the file.

    \b
    Examples:
      zettel scorer export --user ann --to ann.jsonl
      zettel scorer export one.json two.json --to both.jsonl
      zettel scorer train ann.jsonl ben.jsonl --out decoder
    """
    options = common(ctx)
    for path in paths or ():
        require_readable(path, None)
    if to.suffix != ".jsonl":
        raise InvalidInput(f"--to {to} must end in .jsonl")
    require_writable(to)
    from zettel.bench import labelled_questions
    from zettel.bench.fitting import read

    if paths:
        lines = [line for path in paths for each in read(path) for line in labelled_questions.from_collection(each)]
    else:
        scopes = _scopes(options, also)
        with options.memory() as memory:
            lines = [line for scope in scopes for line in labelled_questions.from_log(memory, scope)]
        if not lines:
            raise InvalidInput("the log has no search with feedback: give some with zettel feedback")
    count = labelled_questions.write(lines, to)
    if options.json:
        print_json({"to": to, "questions": count})
    else:
        echo(f"{count:,} questions written to {to}")


def _scopes(options: Common, also: Sequence[str] | None) -> list[Scope]:
    """Return the selected scope, and the scopes of other users."""
    from zettel.model import Scope

    return [options.scope(), *(Scope(tenant=options.tenant, user=user, agent=options.agent) for user in also or ())]
