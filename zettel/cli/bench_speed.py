"""The commands ``zettel bench`` that measure time, memory, disk and price."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer

from zettel.errors import InvalidInput

from .bench_options import NOTES_HELP, LoCoMoFile, Plot, ServerFolder, Sizes, whole_numbers
from .benchmark_output import JsonFile, measure, require_drawable, require_readable, require_result_writable
from .common import Common, common


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

        run = partial(sizes.run, whole_numbers(notes), folder=folder, embedder=options.embedder)
    measure(run, options, json, plot)


def llm(
    ctx: typer.Context,
    path: LoCoMoFile,
    notes: Path = typer.Option(..., "--notes", metavar="FILE", help=NOTES_HELP),
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
    url, sizes = _server_url(options), whole_numbers(notes)
    require_result_writable(json)
    from zettel.bench import neo4j as bench

    measure(lambda progress: bench.run(url, sizes, progress, keep, options.embedder, server), options, json)


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
    url, counts = _server_url(options), whole_numbers(workers, "--workers")
    require_result_writable(json)
    from zettel.bench import cluster as bench

    measure(lambda progress: bench.run(url, counts, progress, rounds, options.embedder, server), options, json)


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
    counts = whole_numbers(sizes, "--sizes")
    measure(lambda progress: run(counts, progress), options, json, plot)


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
