"""The command ``zettel bench answers``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from zettel.errors import InvalidInput, ModelError

from .bench_options import separated
from .benchmark_output import JsonFile, print_result, require_readable, steps
from .common import Common, common, notify, require_writable
from .model_costs import consent, estimated, used

if TYPE_CHECKING:
    from zettel.bench.answers.answering import Answers
    from zettel.bench.answers.judging import Verdicts
    from zettel.bench.answers.records import AnswerRecord, Key
    from zettel.bench.answers.run import Contexts, Run
    from zettel.llm.lite import LiteLLM


def answers(
    ctx: typer.Context,
    dataset: str = typer.Argument(metavar="DATASET", help="locomo, longmemeval, beam or halumem."),
    path: Path = typer.Argument(metavar="PATH", help="A file of that data set; for beam also a folder of chats."),
    contexts: str = typer.Option(
        "zettel,vectors,bm25,full", "--contexts", metavar="SYSTEMS", help="Contexts to compare; several with commas."
    ),
    max_tokens: int = typer.Option(1500, "--max-tokens", min=1, help="Tokens of each context, except for full."),
    answer_model: str | None = typer.Option(
        None, "--answer-model", metavar="NAME", help="LiteLLM name of the model that answers."
    ),
    judge_model: str | None = typer.Option(
        None, "--judge-model", metavar="NAME", help="LiteLLM name of the model that grades the answers."
    ),
    judge: Literal["published", "strict"] = typer.Option(
        "published", "--judge", help="Grade by the criteria of the data set's judge, or strictly."
    ),
    questions: int | None = typer.Option(
        None, "--questions", metavar="N", min=1, help="Only N questions, at equal distances in the file."
    ),
    window: int | None = typer.Option(
        None, "--window", metavar="TOKENS", min=1, help="Tokens that the answering model reads, if LiteLLM lacks them."
    ),
    out: Path | None = typer.Option(
        None, "--out", metavar="FOLDER", help="Folder for the records of the run. [default: answers-DATASET]"
    ),
    write_contexts: Path | None = typer.Option(
        None, "--write-contexts", metavar="FILE", help="Only write the contexts, for people or other programs."
    ),
    answers: Path | None = typer.Option(
        None, "--answers", metavar="FILE", help="Read answers: JSON lines with id, system and answer."
    ),
    verdicts: Path | None = typer.Option(
        None, "--verdicts", metavar="FILE", help="Read verdicts: JSON lines with id, system and score (0 to 1)."
    ),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask before calling a model."),
    json: JsonFile = None,
) -> None:
    """Measure how well a model answers from contexts of zettel, flat vectors, BM25 and the full text.

    A second model grades the answers. The cost is estimated and confirmed beforehand; --budget limits it. An
    interrupted run continues with the same command.

    \b
    Examples:
      zettel bench answers locomo locomo10.json --answer-model openai/gpt-4o-mini --judge-model openai/gpt-4o-mini
      zettel bench answers beam BEAM/chats/100K --questions 50 --answer-model NAME --judge-model NAME --budget usd=2
      zettel bench answers locomo locomo10.json --write-contexts contexts.jsonl
      zettel bench answers locomo locomo10.json --answers answers.jsonl --judge-model NAME --judge strict
    """
    options = common(ctx)
    _require_consistent(answer_model, judge_model, write_contexts, answers, verdicts)
    require_readable(path, json, folder=dataset == "beam")
    options.spending_limit()  # report an invalid budget before the work starts
    from zettel.bench.answers import files
    from zettel.bench.answers.asking import load_model_with_key
    from zettel.bench.answers.contexts import require_systems
    from zettel.bench.answers.judging import Verdicts
    from zettel.bench.answers.result import result
    from zettel.bench.answers.run import ANSWERS, Contexts, Run

    systems = separated(contexts)
    require_systems(systems)
    models = {name: load_model_with_key(name) for name in (answer_model, judge_model) if name is not None}
    with steps() as progress:
        progress("reading questions", 0, 1)
        run = Run(dataset, path, out or Path(f"answers-{dataset}"), questions)
    if write_contexts is not None:
        require_writable(write_contexts)
        _write_contexts(Contexts(run, systems, max_tokens, options.embedder), write_contexts)
        return
    run.open_folder()
    answering, remarks = None, list[str]()
    if answer_model is not None:
        built = Contexts(run, systems, max_tokens, options.embedder)
        answering, remarks = _answering(run, built, models[answer_model], window)
    found = files.read_answers(answers, run) if answers is not None else {}
    judging = None if judge_model is None else Verdicts(run, models[judge_model], judge)
    cost = _ask(options, run, answering, judging, found, yes)
    if answering is not None:
        found = answering.records
    if judging is None and verdicts is None:
        file = run.folder / ANSWERS
        notify(f"zettel: {len(found)} answers are in {file}; grade them with --judge-model or --verdicts")
        return
    graded = files.read_verdicts(verdicts, run) if verdicts is not None else {}
    if judging is not None:
        graded = judging.records(found)
    given = [file for file in (answers, verdicts) if file is not None]
    print_result(result(run, found, graded, max_tokens, [*remarks, *cost], given), options, json)


def _require_consistent(
    answer_model: str | None,
    judge_model: str | None,
    contexts: Path | None,
    answers: Path | None,
    verdicts: Path | None,
) -> None:
    """Check that the options fit together, and that files exist. Raises ``InvalidInput``."""
    if contexts is not None and (answer_model or judge_model or answers or verdicts):
        raise InvalidInput("--write-contexts calls no model and reads no answers: leave the other options out")
    if answer_model and answers:
        raise InvalidInput("answers come from --answer-model or from --answers: leave one out")
    if judge_model and verdicts:
        raise InvalidInput("verdicts come from --judge-model or from --verdicts: leave one out")
    if contexts is None and not answer_model and not answers:
        raise InvalidInput(
            "name a model with --answer-model, pass a file with --answers, or write the contexts with --write-contexts"
        )
    if answers is not None and not judge_model and not verdicts:
        raise InvalidInput("name a model with --judge-model, or pass a file with --verdicts")
    for file in (answers, verdicts):
        if file is not None:
            require_readable(file, None)


def _write_contexts(contexts: Contexts, file: Path) -> None:
    import anyio

    with steps() as progress:
        count = anyio.run(contexts.write, file, progress)
    notify(f'zettel: {count} contexts written to {file}; add "answer" to each line, and pass the file with --answers')


def _answering(run: Run, contexts: Contexts, model: LiteLLM, window: int | None) -> tuple[Answers, list[str]]:
    """Build the contexts; return the answers to ask for, and remarks about contexts that are left out."""
    import anyio

    from zettel.bench.answers.answering import Answers, without_long
    from zettel.bench.answers.asking import context_window

    with steps() as progress:
        built = anyio.run(contexts.build, progress)
    fitting, remarks = without_long(built, model.name, window or context_window(model.name))
    for remark in remarks:
        notify(f"zettel: {remark}")
    return Answers(run, fitting, model), remarks


def _ask(
    options: Common,
    run: Run,
    answering: Answers | None,
    judging: Verdicts | None,
    answers: Mapping[Key, AnswerRecord],
    yes: bool,
) -> list[str]:
    """Ask for missing answers and verdicts, after consent to their cost; return a line about the real cost.

    Raises the errors of the models, after a line about the records so far.
    """
    import anyio

    from zettel.bench.answers.ask_all import ask_all

    estimates = []
    if answering is not None:
        estimates.append(("answers", answering.estimate()))
    if judging is not None:
        keys = answers if answering is None else answering.keys
        estimates.append(("verdicts", judging.estimate(keys, answers if answering is None else answering.records)))
    costs = [f"{what}: {estimated(estimate)}" for what, estimate in estimates if estimate.calls]
    if not costs:
        return []
    within = f", within the budget {options.budget}" if options.budget else ""
    if not consent(f"{'; '.join(costs)}{within}", yes):
        notify("zettel: no model was called")
        raise typer.Exit(1)
    try:
        with steps() as progress:
            spent = anyio.run(ask_all, run, answering, judging, answers, options.spending_limit(), progress)
    except ModelError:
        notify(f"zettel: the answers and verdicts so far are in {run.folder}; the same command continues")
        raise
    line = used(spent)
    return [f"This run: {line}."] if line else []
