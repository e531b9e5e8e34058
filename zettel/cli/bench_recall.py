"""The commands ``zettel bench`` that measure how well searches find and how well facts are read."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

import typer

from zettel.errors import InvalidInput

from .bench_options import (
    K_HELP,
    NOTES_HELP,
    Ablate,
    Beside,
    Conversations,
    K,
    LoCoMoFile,
    Plot,
    Scorers,
    Without,
    baseline_names,
    require_complete_scorer,
    separated,
)
from .benchmark_output import (
    JsonFile,
    QuestionFiles,
    measure,
    require_drawable,
    require_readable,
    require_result_writable,
)
from .common import common


def locomo(
    ctx: typer.Context,
    path: LoCoMoFile,
    conversation: Conversations = None,
    k: list[int] = typer.Option([10, 20], "-k", "--k", min=1, help=f"{K_HELP}; repeatable."),
    level: Literal["turn", "session"] = typer.Option("turn", "--level", help="Recall of turns or of sessions."),
    with_: Path | None = typer.Option(
        None, "--with", metavar="2WIKI", help="Add 2Wiki's passages (file or folder) to the scope of each conversation."
    ),
    notes: Path | None = typer.Option(None, "--notes", metavar="FILE", help=NOTES_HELP),
    without: Without = "",
    ablate: Ablate = False,
    scorer: Scorers = None,
    beside: Beside = None,
    plot: Plot = None,
    json: JsonFile = None,
) -> None:
    """Measure evidence recall on LoCoMo, beside baselines.

    --level session measures the recall of sessions, in the order of their first hit. --with measures recall on both
    data sets, in separate scopes and in the same scope. --notes measures recall with and without the recorded notes.

    \b
    Examples:
      zettel bench locomo locomo10.json
      zettel bench locomo locomo10.json --conversation 26 --without walk,windows --json result.json
      zettel bench locomo locomo10.json --ablate --plot pictures
      zettel bench locomo locomo10.json --scorer decoder --scorer cross-encoder
      zettel bench locomo locomo10.json --level session -k 1 -k 5
      zettel bench locomo locomo10.json --with 2wiki/
      zettel bench locomo locomo10.json --conversation 26 --notes notes.jsonl
    """
    options = common(ctx)
    require_readable(path, json)
    require_drawable(plot)
    require_complete_scorer(without, ablate, scorer)
    others = ablate or scorer or beside is not None or plot is not None or notes is not None or level == "session"
    if with_ is not None and others:
        raise InvalidInput("--with takes no --ablate, --scorer, --beside, --plot, --notes or --level: leave them out")
    if notes is not None:
        require_readable(notes, None)
    from zettel.bench import locomo as bench
    from zettel.bench import mixed

    chosen, parts = tuple(conversation or ()), separated(without)
    if with_ is not None:
        measure(lambda progress: mixed.run(path, with_, progress, chosen, parts, options.embedder), options, json)
        return
    run = partial(
        bench.run, ablate=ablate, baselines=baseline_names(beside), notes_file=notes, scorers=scorer or (), level=level
    )
    ks = sorted(set(k))
    measure(lambda progress: run(path, progress, chosen, ks, parts, options.embedder), options, json, plot)


def beam(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="Chats with labelled questions: a file, or a folder of chats."),
    chat: list[str] | None = typer.Option(None, "--chat", metavar="NAME", help="Only this chat; repeatable."),
    k: list[int] = typer.Option([1, 10, 40], "-k", "--k", min=1, help=f"{K_HELP}; repeatable."),
    without: Without = "",
    ablate: Ablate = False,
    scorer: Scorers = None,
    beside: Beside = None,
    changed: Path | None = typer.Option(
        None, "--changed", metavar="FILE", help="Changed facts with the messages of today's and the former value."
    ),
    plot: Plot = None,
    json: JsonFile = None,
) -> None:
    """Measure evidence recall in chats with an assistant, per kind of question, beside baselines.

    PATH is a folder of BEAM (such as chats/100K), or JSON in our layout: docs/benchmarks.md describes it.

    \b
    Examples:
      zettel bench beam BEAM/chats/100K
      zettel bench beam tests/data/chats --chat home-server --json result.json
      zettel bench beam chats.jsonl.gz --ablate --beside bm25,minilm
    """
    options = common(ctx)
    require_readable(path, json, folder=True)
    require_drawable(plot)
    require_complete_scorer(without, ablate, scorer)
    from zettel.bench import beam as bench

    if changed is not None:
        require_readable(changed, None)
    run = partial(bench.run, ablate=ablate, baselines=baseline_names(beside), scorers=scorer or (), changed=changed)
    chosen, ks = tuple(chat or ()), sorted(set(k))
    measure(lambda progress: run(path, progress, chosen, ks, separated(without), options.embedder), options, json, plot)


def changes(
    ctx: typer.Context,
    folder: Path = typer.Argument(metavar="FOLDER", help="Scopes as JSON lines of events, and questions.jsonl."),
    without: Without = "",
    recorded: Path | None = typer.Option(
        None, "--model", metavar="FOLDER",
        help="Recorded answers of a model, replayed over HTTP: notes.jsonl and replaces.jsonl.",
    ),
    json: JsonFile = None,
) -> None:  # fmt: skip
    """Measure changed facts: does the current answer rank first, and the earlier one with as_of?

    \b
    Examples:
      zettel bench changes tests/data/changes
      zettel bench changes tests/data/changes --model tests/data/changes/model
    """
    options = common(ctx)
    require_readable(folder, json, folder=True)
    from zettel.bench import changes as bench

    measure(lambda progress: bench.run(folder, progress, separated(without), options.embedder, recorded), options, json)


def pairs(
    ctx: typer.Context,
    files: list[Path] = typer.Argument(metavar="FILE", help="Pairs of messages, as JSON lines."),
    json: JsonFile = None,
) -> None:
    """Measure pairs of messages: which changes of a fact are linked without a model, and which links are wrong.

    \b
    Examples:
      zettel bench pairs tests/data/changes/pairs/plain.jsonl
    """
    options = common(ctx)
    for file in files:
        require_readable(file, json)
    from zettel.bench import pairs as bench

    measure(lambda progress: bench.run(files, progress, options.embedder), options, json)


def profile(
    ctx: typer.Context,
    paths: list[Path] = typer.Argument(metavar="PATH", help="Chats, as files or folders."),
    sheets: Path = typer.Option(..., "--sheets", metavar="FOLDER", help="Fact sheets, one per chat: NAME.json."),
    fit: Path | None = typer.Option(
        None, "--fit", metavar="FILE", help="Fit the cues of this language file to the chats instead."
    ),
    recorded: Path | None = typer.Option(
        None, "--model", metavar="FOLDER", help="Recorded profiles of a model, replayed over HTTP: NAME.json."
    ),
    json: JsonFile = None,
) -> None:
    """Measure the facts of fact sheets in the profile of a user, and outdated lines.

    \b
    Examples:
      zettel bench profile tests/data/chats/nurse-data.json --sheets tests/data/chats/facts
    """
    options = common(ctx)
    require_readable(sheets, json, folder=True)
    from zettel.bench import profiles as bench

    measure(lambda progress: bench.run(paths, sheets, progress, options.embedder, fit, recorded), options, json)


def poison(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="FILE", help="Facts with questions and attacks; chatter.jsonl beside it."),
    follower: bool = typer.Option(False, "--follower", help="With a language model that follows every false note."),
    json: JsonFile = None,
) -> None:
    """Measure poisoning: how often false notes of an outsider are the first hit, or hide the truth.

    \b
    Examples:
      zettel bench poison tests/data/poison/unseen.jsonl
      zettel bench poison tests/data/poison/unseen.jsonl --follower --json poison.json
    """
    options = common(ctx)
    require_readable(path, json)
    from zettel.bench import poison as bench

    measure(lambda progress: bench.run(path, progress, options.embedder, follower), options, json)


def overview(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="FOLDER", help="Conversations with labelled topics and abstract questions."),
    json: JsonFile = None,
) -> None:
    """Measure abstract questions: whether an insight that covers the right notes comes first.

    Also measures the borders of segments against labelled changes of topic.

    \b
    Examples:
      zettel bench overview tests/data/topics
      zettel bench overview tests/data/topics --json overview.json
    """
    options = common(ctx)
    require_readable(path, json, folder=True)
    from zettel.bench import overview as bench

    measure(lambda progress: bench.run(path, progress, options.embedder), options, json)


def ablation(
    ctx: typer.Context,
    data: list[str] = typer.Argument(metavar="NAME=PATH[,PATH]", help="Data with questions, and its column's name."),
    scorer: Scorers = None,
    json: JsonFile = None,
) -> None:
    """Measure what each part of the search adds to recall@10, on several data in one table.

    A path is a chat or a conversation, a folder of chats, or a folder with both files of 2Wiki.

    \b
    Examples:
      zettel bench ablation chats=tests/data/chats locomo=locomo10.json
      zettel bench ablation chats=tests/data/chats 2wiki=data/ --scorer decoder --json ablation.json
    """
    options = common(ctx)
    require_result_writable(json)
    from zettel.bench import ablation as bench

    measure(lambda progress: bench.run(data, progress, scorer or (), options.embedder), options, json)


def evolve(
    ctx: typer.Context, path: LoCoMoFile, conversation: Conversations = None, k: K = 10, json: JsonFile = None
) -> None:
    """Measure evidence recall on LoCoMo before and after evolving, with planted copies of turns.

    \b
    Examples:
      zettel bench evolve locomo10.json
      zettel bench evolve locomo10.json --conversation 26 --json result.json
    """
    options = common(ctx)
    require_readable(path, json)
    from zettel.bench import evolve as bench

    measure(lambda progress: bench.run(path, progress, tuple(conversation or ()), k, options.embedder), options, json)


def overlap(
    ctx: typer.Context,
    path: LoCoMoFile,
    against: list[str] = typer.Option(
        [], "--against", metavar="SPEC", help="Another store: a file, a URL or package.module:Class; repeatable."
    ),
    notes: int = typer.Option(20_000, "--notes", metavar="N", min=0, help="Size of the made-up scope; 0: without."),
    json: JsonFile = None,
) -> None:
    """Measure how many of the first ten hits two stores share. One of them is --store, or a new embedded store.

    By default the other one is the exhaustive store of zettel's tests. If several are given, each pair of stores is
    compared. The benchmark uses new scopes in a given store, and deletes them afterwards.

    \b
    Examples:
      zettel bench overlap locomo10.json
      zettel bench overlap locomo10.json --against other.db --notes 5000
      zettel bench overlap locomo10.json --against neo4j://localhost:7687 --against other.db
    """
    options = common(ctx)
    require_readable(path, json)
    from zettel.bench import overlap as bench

    store = options.store if options.store_given else None
    specs = tuple(against) or (bench.ORACLE,)
    measure(lambda progress: bench.run(path, progress, specs, store, notes, options.embedder), options, json)


def feedback(
    ctx: typer.Context,
    paths: QuestionFiles,
    uses: int = typer.Option(500, "--uses", min=1, metavar="N", help="Searches with feedback."),
    seeds: int = typer.Option(3, "--seeds", min=1, help="Simulated users per preference."),
    wrap: bool = typer.Option(False, "--wrap", help="Learn from answers through zettel.wrap, without feedback."),
    json: JsonFile = None,
) -> None:
    """Measure the gain of zettel scorer tune for simulated users, each with a hidden preference.

    With --wrap nobody gives feedback: a scripted model answers, and zettel learns from its answers by itself. Takes
    about half a minute per preference and seed; there are four preferences. Without --wrap it requires
    zettel-graph[torch].

    \b
    Examples:
      zettel bench feedback one.json two.json three.json --uses 100
      zettel bench feedback one.json two.json three.json --wrap
    """
    options = common(ctx)
    for path in paths:
        require_readable(path, json)
    if wrap:
        from zettel.bench import use

        measure(lambda progress: use.run(paths, progress, uses, seeds, options.embedder), options, json)
        return
    from zettel.scoring.device import require_torch

    require_torch("the memory decoder")
    from zettel.bench import feedback as bench

    measure(lambda progress: bench.run(paths, progress, uses, seeds, options.embedder), options, json)
