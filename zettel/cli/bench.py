"""The commands ``zettel bench``: each prints its result as a table or as JSON."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from zettel.errors import InvalidInput

from .benchmark_output import (
    JsonFile,
    QuestionFiles,
    measure,
    print_result,
    require_drawable,
    require_readable,
    require_result_writable,
    steps,
)
from .common import EVERYWHERE, Common, common, print_json

_PLOT_HELP = "Draw the result into FOLDER, as SVG."
_NOTES_HELP = "Recorded notes of a model about the turns of the conversation, as JSON lines."
_K_HELP = "Number of hits to evaluate"

LoCoMoFile: TypeAlias = Annotated[Path, typer.Argument(metavar="PATH", help="LoCoMo's JSON file.")]
Conversations: TypeAlias = Annotated[
    list[str] | None, typer.Option("--conversation", metavar="N", help="Only this conversation; repeatable.")
]
K: TypeAlias = Annotated[int, typer.Option("-k", "--k", min=1, help=f"{_K_HELP}.")]
Without: TypeAlias = Annotated[
    str,
    typer.Option(
        "--without", metavar="PARTS",
        help="Parts of the scorer to leave out: text, vector, windows, role, length, speaker, time, form, walk, terms, "
        "statements; several with commas.",
    ),
]  # fmt: skip
Ablate: TypeAlias = Annotated[bool, typer.Option("--ablate", help="Also leave out each part of the scorer in turn.")]
Scorers: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--scorer", metavar="NAME", help="Also measure this scorer: decoder, cross-encoder, …; repeatable."
    ),
]
Beside: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--beside", metavar="SYSTEMS",
        help="Baselines beside zettel: bm25, vectors, rrf, minilm, amem; several with commas, or none. [default: all]",
    ),
]  # fmt: skip
Plot: TypeAlias = Annotated[Path | None, typer.Option("--plot", metavar="FOLDER", help=_PLOT_HELP)]
ServerFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--server", metavar="FOLDER", help="Folder of `zettel neo4j up`: also measure the server's processor time."
    ),
]
Sizes: TypeAlias = Annotated[
    str, typer.Option("--notes", metavar="SIZES", help="Sizes of the made-up scopes in notes; several with commas.")
]

app = typer.Typer(help="Measure recall and speed on your own data.", rich_markup_mode=None)


@app.command(epilog=EVERYWHERE)
def locomo(
    ctx: typer.Context,
    path: LoCoMoFile,
    conversation: Conversations = None,
    k: list[int] = typer.Option([10, 20], "-k", "--k", min=1, help=f"{_K_HELP}; repeatable."),
    level: Literal["turn", "session"] = typer.Option("turn", "--level", help="Recall of turns or of sessions."),
    with_: Path | None = typer.Option(
        None, "--with", metavar="2WIKI", help="Add 2Wiki's passages (file or folder) to the scope of each conversation."
    ),
    notes: Path | None = typer.Option(None, "--notes", metavar="FILE", help=_NOTES_HELP),
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


@app.command(epilog=EVERYWHERE)
def beam(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="Chats with labelled questions: a file, or a folder of chats."),
    chat: list[str] | None = typer.Option(None, "--chat", metavar="NAME", help="Only this chat; repeatable."),
    k: list[int] = typer.Option([1, 10, 40], "-k", "--k", min=1, help=f"{_K_HELP}; repeatable."),
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


@app.command(epilog=EVERYWHERE)
def speed(
    ctx: typer.Context,
    path: Path | None = typer.Argument(None, metavar="PATH", help="A transcript to import."),
    notes: Sizes = "",
    minilm: str = typer.Option("all-MiniLM-L6-v2", "--minilm", metavar="MODEL", help="Name or folder of MiniLM."),
    plot: Plot = None,
    json: JsonFile = None,
) -> None:
    """Measure import rate, search times and the time to the first answer.

    --notes imports made-up notes instead, and also measures memory and a flat index. A million notes take long to
    import: --store FOLDER keeps the made-up stores for the next run.

    \b
    Examples:
      zettel bench speed locomo10.json --json speed.json
      zettel bench speed --notes 10000,100000 --store made-up --plot pictures
    """
    options = common(ctx)
    if (path is None) == (not notes):
        raise InvalidInput("pass either a transcript to import, or sizes of made-up scopes with --notes")
    require_drawable(plot)
    if path is not None:
        require_readable(path, json)
        from zettel.bench import speed as bench

        run = partial(bench.run, path, minilm=minilm, embedder=options.embedder)
    else:
        require_result_writable(json)
        folder = _store_folder(options)
        from zettel.bench import sizes

        run = partial(sizes.run, _whole_numbers(notes), folder=folder, embedder=options.embedder)
    measure(run, options, json, plot)


@app.command(epilog=EVERYWHERE)
def llm(
    ctx: typer.Context,
    path: LoCoMoFile,
    notes: Path = typer.Option(..., "--notes", metavar="FILE", help=_NOTES_HELP),
    conversation: str | None = typer.Option(
        None, "--conversation", metavar="N", help="The conversation; required if the file has several."
    ),
    json: JsonFile = None,
) -> None:
    """Measure the cost and the gain of a language model: calls, tokens, recall, and the duration of add meanwhile.

    No model is called: a server on this machine answers with the recorded notes, in one run with damaged ones.

    \b
    Examples:
      zettel bench llm locomo10.json --conversation 26 --notes notes.jsonl
      zettel bench llm locomo10.json --conversation 26 --notes notes.jsonl --json llm-26.json
    """
    options = common(ctx)
    require_readable(path, json)
    require_readable(notes, None)
    from zettel.bench import llm as bench

    measure(lambda progress: bench.run(path, notes, progress, conversation, options.embedder), options, json)


@app.command(epilog=EVERYWHERE)
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


@app.command(epilog=EVERYWHERE)
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


@app.command(epilog=EVERYWHERE)
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


@app.command(epilog=EVERYWHERE)
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


@app.command(epilog=EVERYWHERE)
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


@app.command(epilog=EVERYWHERE)
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


@app.command(epilog=EVERYWHERE)
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


@app.command("all", epilog=EVERYWHERE)
def everything(
    ctx: typer.Context,
    data: Path = typer.Argument(metavar="DATA", help="A folder with LoCoMo's file and both files of 2Wiki."),
    into: Path = typer.Option(Path("docs/bench"), "--into", metavar="FOLDER", help="Folder for the results, as JSON."),
    plot: Path = typer.Option(Path("docs/pictures"), "--plot", metavar="FOLDER", help=_PLOT_HELP),
    notes: Sizes = "10000,100000,1000000",
    beside: Beside = None,
) -> None:
    """Run all benchmarks of the documentation. A million notes take hours.

    \b
    Examples:
      zettel bench all data/
      zettel bench all data/ --notes 10000 --into results --plot results
    """
    options = common(ctx)
    require_readable(data, None, folder=True)
    for folder in (into, plot):
        require_drawable(folder)
    from zettel.bench import run_all as bench

    stores = Path(options.store) if options.store_given else None
    with steps() as progress:
        sizes, others = _whole_numbers(notes), baseline_names(beside)
        results = []
        for result in bench.run(data, into, plot, progress, sizes, stores, options.embedder, others):
            results.append(result)
            if not options.json:
                print_result(result, options)
    if options.json:
        print_json(results)


@app.command(epilog=EVERYWHERE)
def neo4j(
    ctx: typer.Context,
    notes: Sizes = "10000,100000",
    keep: Path | None = typer.Option(
        None, "--keep", metavar="FOLDER", help="Keep the made-up scopes on the server, and embedded stores in FOLDER."
    ),
    server: ServerFolder = None,
    json: JsonFile = None,
) -> None:
    """Measure a Neo4j server: writes beside bare statements, and searches and add beside the embedded store.

    NEO4J_USERNAME and NEO4J_PASSWORD set the login. The made-up scopes are deleted from the server at the end, unless
    --keep is given.

    \b
    Examples:
      zettel bench neo4j --store neo4j://localhost:7687
      zettel bench neo4j --store neo4j://localhost:7687 --notes 10000,100000 --keep made-up --json neo4j.json
    """
    options = common(ctx)
    url, sizes = _server_url(options), _whole_numbers(notes)
    require_result_writable(json)
    from zettel.bench import neo4j as bench

    measure(lambda progress: bench.run(url, sizes, progress, keep, options.embedder, server), options, json)


@app.command(epilog=EVERYWHERE)
def cluster(
    ctx: typer.Context,
    workers: str = typer.Option("1,2,4", "--workers", metavar="N", help="Numbers of workers; several with commas."),
    rounds: int = typer.Option(2, "--rounds", metavar="N", min=1, help="Runs with each number of workers."),
    server: ServerFolder = None,
    json: JsonFile = None,
) -> None:
    """Measure jobs on a local Ray cluster of two nodes, by number of workers: jobs that compute, and jobs that wait.

    A server on this machine replaces the language model, and takes three seconds for each answer. NEO4J_USERNAME and
    NEO4J_PASSWORD set the login of the Neo4j server. Its made-up scopes are deleted at the end. Requires
    zettel-graph[ray,llm].

    \b
    Examples:
      zettel bench cluster --store neo4j://localhost:7687
      zettel bench cluster --store neo4j://localhost:7687 --workers 1,8 --rounds 3 --json cluster.json
    """
    options = common(ctx)
    url, counts = _server_url(options), _whole_numbers(workers, "--workers")
    require_result_writable(json)
    from zettel.bench import cluster as bench

    measure(lambda progress: bench.run(url, counts, progress, rounds, options.embedder, server), options, json)


@app.command(epilog=EVERYWHERE)
def features(ctx: typer.Context, json: JsonFile = None) -> None:
    """Measure what encryption, the audit log, webhooks and a search of several scopes add to a call.

    Requires zettel-graph[encryption].

    \b
    Examples:
      zettel bench features --json features.json
    """
    options = common(ctx)
    require_result_writable(json)
    from zettel.bench import features as bench

    measure(lambda progress: bench.run(progress, options.embedder), options, json)


@app.command("import", epilog=EVERYWHERE)
def import_(
    ctx: typer.Context,
    sizes: str = typer.Option(
        "10000,100000,1000000", "--sizes", metavar="SIZES", help="Numbers of short messages; several with commas."
    ),
    scope_size: int = typer.Option(5000, "--scope-size", metavar="N", min=1, help="Messages per scope."),
    long: int | None = typer.Option(
        None, "--long", metavar="N", help="Import N messages of 5 KB into one scope instead, and compare with 4,000."
    ),
    runner: str | None = typer.Option(None, "--runner", metavar="NAME", help="Runner of jobs, as in zettel import."),
    plot: Plot = None,
    json: JsonFile = None,
) -> None:
    """Measure imports of made-up messages by size: rate, memory, disk, and later searches.

    --store FOLDER keeps the files and stores.

    \b
    Examples:
      zettel bench import --sizes 10000,100000 --json import.json --plot pictures
      zettel bench import --runner process
      zettel bench import --long 40000
    """
    options = common(ctx)
    require_drawable(plot)
    require_result_writable(json)
    folder = _store_folder(options)
    from zettel.bench import imports as bench

    if long is not None:
        measure(lambda progress: bench.run_long(long, progress, folder, options.embedder, runner), options, json, plot)
        return
    run = partial(bench.run, scope_size=scope_size, folder=folder, embedder=options.embedder, runner=runner)
    counts = _whole_numbers(sizes, "--sizes")
    measure(lambda progress: run(counts, progress), options, json, plot)


@app.command(epilog=EVERYWHERE)
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


@app.command(epilog=EVERYWHERE)
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


@app.command(epilog=EVERYWHERE)
def serve(
    ctx: typer.Context,
    notes: int = typer.Option(10_000, "--notes", metavar="N", min=1, help="Size of the made-up scope."),
    clients: int = typer.Option(16, "--clients", metavar="N", min=1, help="Concurrent clients."),
    json: JsonFile = None,
) -> None:
    """Measure searches per second over HTTP, beside as many threads that search a memory in one process.

    --store FOLDER keeps the store. Requires zettel-graph[server].

    \b
    Examples:
      zettel bench serve
      zettel bench serve --store made-up --json serve.json
    """
    options = common(ctx)
    require_result_writable(json)
    folder = _store_folder(options)
    from zettel.server.serving import require_server

    require_server()
    from zettel.bench import http_server

    measure(lambda progress: http_server.run(notes, clients, progress, folder, options.embedder), options, json)


@app.command(epilog=EVERYWHERE)
def flame(
    ctx: typer.Context,
    notes: int = typer.Option(10_000, "--notes", metavar="N", min=1, help="Size of the made-up scope."),
    pictures: Path | None = typer.Option(None, "--plot", metavar="FOLDER", help="Draw flame graphs into FOLDER."),
    json: JsonFile = None,
) -> None:
    """Measure where time goes in searches, add and an import, by module of zettel.

    py-spy takes the samples: pip install py-spy. --store FOLDER keeps the store.

    \b
    Examples:
      zettel bench flame
      zettel bench flame --store made-up --plot flames --json flame.json
    """
    options = common(ctx)
    require_result_writable(json)
    from zettel.bench import flame as bench

    folder = _store_folder(options)
    measure(lambda progress: bench.run(notes, progress, folder, pictures, options.embedder), options, json)


def require_complete_scorer(without: str, ablate: bool, scorers: list[str] | None) -> None:
    """Check that the options of a comparison fit together. Raises ``InvalidInput``."""
    if without and ablate:
        raise InvalidInput("--ablate leaves out each part in turn: pass --ablate or --without, not both")
    if without and scorers:
        raise InvalidInput("--scorer reranks the hits of the complete default scorer: leave --without out")


def baseline_names(names: str | None) -> tuple[str, ...]:
    """Return the names of ``--beside``, which are separated with commas; all without the option."""
    from zettel.bench.baselines import ALL

    return ALL if names is None else () if names == "none" else separated(names)


def _whole_numbers(text: str, option: str = "--notes") -> list[int]:
    try:
        return [int(part) for part in separated(text)]
    except ValueError:
        raise InvalidInput(f"{option} {text!r}: expected whole numbers with commas, such as 10000,100000") from None


def separated(text: str) -> tuple[str, ...]:
    """Return the parts of a text between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _server_url(options: Common) -> str:
    """Return the Neo4j server of ``--store``. Raises ``InvalidInput``."""
    from zettel.graph import NEO4J

    if options.store.partition("://")[0].lower() not in NEO4J:
        raise InvalidInput("pass the server to measure: --store neo4j://localhost:7687")
    return options.store


def _store_folder(options: Common) -> Path | None:
    """Return the folder of ``--store`` that keeps made-up stores; None if the option is not given."""
    if not options.store_given:
        return None
    if "://" in options.store:
        raise InvalidInput("--store must be a folder here: use `zettel bench neo4j` to measure a server")
    return Path(options.store)
