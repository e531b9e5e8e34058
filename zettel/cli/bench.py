"""The benchmarks as commands: a table on stdout, JSON where it is wanted."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer

from zettel.errors import InvalidInput

from .benchmark_output import JSON_HELP, drawable, landing, readable, steps, tell
from .common import EVERYWHERE, Common, common, say_json

_BESIDE_HELP = "Simple systems beside: bm25, vectors, rrf, minilm, amem; several with commas, or none. [default: all]"
_ABLATE_HELP = "Also leave out each part in turn."
_SCORER_HELP = "Rank by this scorer too, in a row of its own: decoder, cross-encoder, effort:high, …; repeatable."
_PLOT_HELP = "Draw what can be drawn into FOLDER, as SVG."
_HELP = "Measure recall and speed on your own data."
_WITHOUT_HELP = "Leave out: windows, walk, text, vector, time, speaker, terms, spread, statements; several with commas."

app = typer.Typer(help=_HELP, rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Measure recall and speed on your own data."""


@app.command(epilog=EVERYWHERE)
def locomo(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="LoCoMo's JSON."),
    conversation: list[str] = typer.Option([], "--conversation", metavar="N", help="Only this one; repeatable."),
    k: list[int] = typer.Option([10, 20], "-k", "--k", min=1, help="Places that hits may take; repeatable."),
    with_: Path | None = typer.Option(
        None, "--with", metavar="2WIKI", help="Put 2Wiki's passages (file or folder) into every conversation's scope."
    ),
    notes: Path | None = typer.Option(
        None, "--notes", metavar="FILE", help="What a model once wrote of the turns of the conversation, as JSON lines."
    ),
    without: str = typer.Option("", "--without", metavar="PARTS", help=_WITHOUT_HELP),
    ablate: bool = typer.Option(False, "--ablate", help=_ABLATE_HELP),
    scorer: list[str] = typer.Option([], "--scorer", metavar="NAME", help=_SCORER_HELP),
    beside: str | None = typer.Option(None, "--beside", metavar="SYSTEMS", help=_BESIDE_HELP),
    plot: Path | None = typer.Option(None, "--plot", metavar="FOLDER", help=_PLOT_HELP),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """Evidence recall on LoCoMo, beside simple systems.

    With --with, recall on both data sets, in scopes of their own and mixed. With --notes, recall with the notes that a
    model wrote, beside recall without.

    \b
    Examples:
      zettel bench locomo locomo10.json
      zettel bench locomo locomo10.json --conversation 26 --without walk,windows --json result.json
      zettel bench locomo locomo10.json --ablate --plot pictures
      zettel bench locomo locomo10.json --scorer decoder --scorer effort:high
      zettel bench locomo locomo10.json --with 2wiki/
      zettel bench locomo locomo10.json --conversation 26 --notes notes.jsonl
    """
    options = common(ctx)
    readable(path, json)
    drawable(plot)
    _require_whole(without, ablate, scorer)
    if with_ is not None and (ablate or scorer or beside is not None or plot is not None or notes is not None):
        others = "--ablate, --scorer, --beside, --plot and --notes"
        raise InvalidInput(f"--with measures in its own way: do without {others}")
    if notes is not None:
        readable(notes, None)
    import anyio

    from zettel.bench import locomo as bench
    from zettel.bench import mixed

    chosen = tuple(conversation)
    with steps() as progress:
        if with_ is not None:
            result = anyio.run(mixed.run, path, with_, progress, chosen, _parts(without), options.embedder)
        else:
            ask = partial(bench.run, ablate=ablate, baselines=_baselines(beside), notes_file=notes, scorers=scorer)
            result = anyio.run(ask, path, progress, chosen, sorted(set(k)), _parts(without), options.embedder)
    tell(result, "-" if options.json else json, plot)


@app.command("2wiki", epilog=EVERYWHERE)
def two_wiki(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="The passages (JSON lines), or a folder with both files."),
    questions: Path | None = typer.Argument(None, metavar="QUESTIONS", help="The questions, if not beside them."),
    k: int = typer.Option(8, "-k", "--k", min=1, help="Places that hits may take."),
    without: str = typer.Option("", "--without", metavar="PARTS", help=_WITHOUT_HELP),
    ablate: bool = typer.Option(False, "--ablate", help=_ABLATE_HELP),
    scorer: list[str] = typer.Option([], "--scorer", metavar="NAME", help=_SCORER_HELP),
    beside: str | None = typer.Option(None, "--beside", metavar="SYSTEMS", help=_BESIDE_HELP),
    plot: Path | None = typer.Option(None, "--plot", metavar="FOLDER", help=_PLOT_HELP),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """All needed passages of 2WikiMultihopQA found at once, beside simple systems.

    \b
    Examples:
      zettel bench 2wiki data/
      zettel bench 2wiki passages.jsonl questions.jsonl --without walk
      zettel bench 2wiki data/ --ablate --beside bm25,vectors
      zettel bench 2wiki data/ --scorer decoder
    """
    options = common(ctx)
    readable(path, json, folder=True)
    drawable(plot)
    _require_whole(without, ablate, scorer)
    import anyio

    from zettel.bench import two_wiki as bench

    with steps() as progress:
        ask = partial(bench.run, ablate=ablate, baselines=_baselines(beside), scorers=scorer)
        result = anyio.run(ask, path, progress, questions, k, _parts(without), options.embedder)
    tell(result, "-" if options.json else json, plot)


@app.command(epilog=EVERYWHERE)
def speed(
    ctx: typer.Context,
    path: Path | None = typer.Argument(None, metavar="PATH", help="A transcript to import."),
    notes: str = typer.Option(
        "", "--notes", metavar="SIZES", help="Made-up scopes of so many notes instead; several with commas."
    ),
    minilm: str = typer.Option("all-MiniLM-L6-v2", "--minilm", metavar="MODEL", help="Its name or folder."),
    plot: Path | None = typer.Option(None, "--plot", metavar="FOLDER", help=_PLOT_HELP),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """Import rate, search times, how long the first answer takes; with --notes also memory, beside a flat index.

    A million notes take long to import: --store FOLDER keeps the made-up stores for the next run.

    \b
    Examples:
      zettel bench speed locomo10.json --json speed.json
      zettel bench speed --notes 10000,100000 --store made-up --plot pictures
    """
    options = common(ctx)
    if (path is None) == (not notes):
        raise InvalidInput("name a transcript to import, or sizes of made-up scopes with --notes")
    drawable(plot)
    if path is not None:
        readable(path, json)
        from zettel.bench import speed as bench

        with steps() as progress:
            result = bench.run(path, progress, minilm=minilm, embedder=options.embedder)
    else:
        landing(json)
        kept = _kept(options)
        from zettel.bench import sizes

        with steps() as progress:
            result = sizes.run(_whole_numbers(notes), progress, kept, options.embedder)
    tell(result, "-" if options.json else json, plot)


@app.command(epilog=EVERYWHERE)
def llm(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="LoCoMo's JSON."),
    notes: Path = typer.Option(
        ..., "--notes", metavar="FILE", help="What a model once wrote of the turns of the conversation, as JSON lines."
    ),
    conversation: str | None = typer.Option(None, "--conversation", metavar="N", help="Which one of several."),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """What a language model costs and gives: calls, tokens, recall, and how long add takes beside it.

    No model is asked: a server on this machine answers with the notes of FILE, also with some of them damaged.

    \b
    Examples:
      zettel bench llm locomo10.json --conversation 26 --notes notes.jsonl
      zettel bench llm locomo10.json --conversation 26 --notes notes.jsonl --json llm-26.json
    """
    options = common(ctx)
    readable(path, json)
    readable(notes, None)
    import anyio

    from zettel.bench import llm as bench

    with steps() as progress:
        result = anyio.run(bench.run, path, notes, progress, conversation, options.embedder)
    tell(result, "-" if options.json else json)


@app.command(epilog=EVERYWHERE)
def changes(
    ctx: typer.Context,
    folder: Path = typer.Argument(metavar="FOLDER", help="Scopes as JSON lines of events, and questions.jsonl."),
    without: str = typer.Option("", "--without", metavar="PARTS", help=_WITHOUT_HELP),
    recorded: Path | None = typer.Option(
        None, "--model", metavar="FOLDER", help="What a model says: notes.jsonl and replaces.jsonl, replayed over HTTP."
    ),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """Changes of fact: is today's answer first, and the one from before under as_of?

    \b
    Examples:
      zettel bench changes tests/data/changes
      zettel bench changes tests/data/changes --model tests/data/changes/model
    """
    options = common(ctx)
    readable(folder, json, folder=True)
    import anyio

    from zettel.bench import changes as bench

    with steps() as progress:
        result = anyio.run(bench.run, folder, progress, _parts(without), options.embedder, recorded)
    tell(result, "-" if options.json else json)


@app.command(epilog=EVERYWHERE)
def evolve(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="LoCoMo's JSON."),
    conversation: list[str] = typer.Option([], "--conversation", metavar="N", help="Only this one; repeatable."),
    k: int = typer.Option(10, "-k", "--k", min=1, help="Places that hits may take."),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """Evidence recall on LoCoMo before and after evolving, with planted copies of turns; how many notes it touches.

    
    Examples:
      zettel bench evolve locomo10.json
      zettel bench evolve locomo10.json --conversation 26 --json result.json
    """
    options = common(ctx)
    readable(path, json)
    import anyio

    from zettel.bench import evolve as bench

    with steps() as progress:
        result = anyio.run(bench.run, path, progress, tuple(conversation), k, options.embedder)
    tell(result, "-" if options.json else json)


@app.command("all", epilog=EVERYWHERE)
def everything(
    ctx: typer.Context,
    data: Path = typer.Argument(metavar="DATA", help="A folder with LoCoMo's file and the two of 2Wiki."),
    into: Path = typer.Option(Path("docs/bench"), "--into", metavar="FOLDER", help="Write results there, as JSON."),
    plot: Path = typer.Option(Path("docs/pictures"), "--plot", metavar="FOLDER", help=_PLOT_HELP),
    notes: str = typer.Option("10000,100000,1000000", "--notes", metavar="SIZES", help="Sizes of made-up scopes."),
    beside: str | None = typer.Option(None, "--beside", metavar="SYSTEMS", help=_BESIDE_HELP),
) -> None:
    """All benchmarks of the documentation, one after the other; takes hours at a million notes.

    \b
    Examples:
      zettel bench all data/
      zettel bench all data/ --notes 10000 --into results --plot results
    """
    options = common(ctx)
    readable(data, None, folder=True)
    for folder in (into, plot):
        drawable(folder)
    from zettel.bench import run_all as bench

    kept = Path(options.store) if options.store_given else None
    with steps() as progress:
        sizes, others = _whole_numbers(notes), _baselines(beside)
        results = []
        for result in bench.run(data, into, plot, progress, sizes, kept, options.embedder, others):
            results.append(result)
            if not options.json:
                tell(result, None)
    if options.json:
        say_json(results)


@app.command(epilog=EVERYWHERE)
def neo4j(
    ctx: typer.Context,
    notes: str = typer.Option("10000,100000", "--notes", metavar="SIZES", help="Sizes of made-up scopes to search."),
    keep: Path | None = typer.Option(
        None, "--keep", metavar="FOLDER", help="Keep the made-up scopes in the server, and embedded ones in FOLDER."
    ),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """A Neo4j server: writes beside bare statements, searches and add beside the embedded store.

    User and password are NEO4J_USERNAME and NEO4J_PASSWORD of the environment. What is made in the server has scopes of
    its own, which are deleted again unless they are kept.

    \b
    Examples:
      zettel bench neo4j --store neo4j://localhost:7687
      zettel bench neo4j --store neo4j://localhost:7687 --notes 10000,100000 --keep made-up --json neo4j.json
    """
    options = common(ctx)
    from zettel.graph import NEO4J

    if options.store.partition("://")[0].lower() not in NEO4J:
        raise InvalidInput("name the server to measure: --store neo4j://localhost:7687")
    sizes = _whole_numbers(notes)
    landing(json)
    from zettel.bench import neo4j as bench

    with steps() as progress:
        result = bench.run(options.store, sizes, progress, keep, options.embedder)
    tell(result, "-" if options.json else json)


@app.command("import", epilog=EVERYWHERE)
def import_(
    ctx: typer.Context,
    sizes: str = typer.Option(
        "10000,100000,1000000", "--sizes", metavar="SIZES", help="How many short messages; several with commas."
    ),
    scope_size: int = typer.Option(5000, "--scope-size", metavar="N", min=1, help="Messages of a scope."),
    long: int | None = typer.Option(
        None, "--long", metavar="N", help="Instead: one file of N messages of 5 KB in one scope, beside one of 4,000."
    ),
    runner: str | None = typer.Option(None, "--runner", metavar="NAME", help="Who does the jobs, as in zettel import."),
    plot: Path | None = typer.Option(None, "--plot", metavar="FOLDER", help=_PLOT_HELP),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """Importing made-up messages from files: rate, memory, disk, and searches afterwards, by size.

    --store FOLDER has the files and stores made there, and leaves them.

    \b
    Examples:
      zettel bench import --sizes 10000,100000 --json import.json --plot pictures
      zettel bench import --runner process
      zettel bench import --long 40000
    """
    options = common(ctx)
    drawable(plot)
    landing(json)
    kept = _kept(options)
    from zettel.bench import imports as bench

    with steps() as progress:
        if long is not None:
            result = bench.run_long(long, progress, kept, options.embedder, runner)
        else:
            result = bench.run(_whole_numbers(sizes, "--sizes"), progress, scope_size, kept, options.embedder, runner)
    tell(result, "-" if options.json else json, plot)


@app.command(epilog=EVERYWHERE)
def overlap(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="LoCoMo's JSON."),
    against: list[str] = typer.Option(
        [], "--against", metavar="SPEC", help="The other store: a file, a URL or package.module:Class; repeatable."
    ),
    notes: int = typer.Option(20_000, "--notes", metavar="N", min=0, help="Size of the made-up scope; 0: without."),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """How many of the first ten hits two stores have in common. One is new and embedded, or --store.

    The other is by default the one of zettel's own tests that looks at every note; with several, every two of all
    stores are compared. A store that is named gets scopes of its own for this, which are deleted again.

    \b
    Examples:
      zettel bench overlap locomo10.json
      zettel bench overlap locomo10.json --against other.db --notes 5000
      zettel bench overlap locomo10.json --against neo4j://localhost:7687 --against other.db
    """
    options = common(ctx)
    readable(path, json)
    import anyio

    from zettel.bench import overlap as bench

    store = options.store if options.store_given else None
    with steps() as progress:
        specs = tuple(against) or (bench.ORACLE,)
        result = anyio.run(bench.run, path, progress, specs, store, notes, options.embedder)
    tell(result, "-" if options.json else json)


@app.command(epilog=EVERYWHERE)
def feedback(
    ctx: typer.Context,
    paths: list[Path] = typer.Argument(metavar="PATH", help="Conversations with questions, in LoCoMo's layout."),
    uses: int = typer.Option(500, "--uses", min=1, metavar="N", help="Searches that are told of."),
    seeds: int = typer.Option(3, "--seeds", min=1, help="Simulated users of each preference."),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """What zettel scorer tune is worth to simulated users, each with a preference that nobody told.

    Takes about half a minute for each of four preferences and each seed. Needs zettel-graph[torch].

    \b
    Examples:
      zettel bench feedback one.json two.json three.json --uses 100
    """
    options = common(ctx)
    for path in paths:
        readable(path, json)
    from zettel.scoring.device import require_torch

    require_torch("the memory decoder")
    import anyio

    from zettel.bench import feedback as bench

    with steps() as progress:
        result = anyio.run(bench.run, paths, progress, uses, seeds, options.embedder)
    tell(result, "-" if options.json else json)


@app.command(epilog=EVERYWHERE)
def serve(
    ctx: typer.Context,
    notes: int = typer.Option(10_000, "--notes", metavar="N", min=1, help="Size of the made-up scope."),
    clients: int = typer.Option(16, "--clients", metavar="N", min=1, help="That ask at the same time."),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """Searches a second over HTTP, beside as many threads that call a memory in their own process.

    --store FOLDER has the store made there, and leaves it. Needs zettel-graph[server].

    \b
    Examples:
      zettel bench serve
      zettel bench serve --store made-up --json serve.json
    """
    options = common(ctx)
    landing(json)
    kept = _kept(options)
    from zettel.server.serving import require_server

    require_server()
    from zettel.bench import http_server

    with steps() as progress:
        result = http_server.run(notes, clients, progress, kept, options.embedder)
    tell(result, "-" if options.json else json)


def _require_whole(without: str, ablate: bool, scorers: list[str]) -> None:
    if without and ablate:
        raise InvalidInput("--ablate leaves out each part in turn: do without --without")
    if without and scorers:
        raise InvalidInput("--scorer ranks after the whole default scorer: do without --without")


def _baselines(told: str | None) -> tuple[str, ...]:
    from zettel.bench.baselines import ALL

    return ALL if told is None else () if told == "none" else _parts(told)


def _whole_numbers(told: str, option: str = "--notes") -> list[int]:
    try:
        return [int(part) for part in _parts(told)]
    except ValueError:
        raise InvalidInput(f"{option} {told!r}: expected whole numbers with commas, such as 10000,100000") from None


def _parts(told: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in told.split(",") if part.strip())


def _kept(options: Common) -> Path | None:
    """The folder in which what is made up stays, if one is named."""
    if not options.store_given:
        return None
    if "://" in options.store:
        raise InvalidInput("--store names a folder here; `zettel bench neo4j` measures a server")
    return Path(options.store)
