"""The commands ``zettel bench``: each prints its result as a table or as JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

from . import bench_answers, bench_field, bench_peers, bench_recall, bench_speed
from .bench_options import PLOT_HELP, Beside, Sizes, baseline_names, whole_numbers
from .benchmark_output import print_result, require_drawable, require_readable, steps
from .common import EVERYWHERE, common, print_json


def everything(
    ctx: typer.Context,
    data: Path = typer.Argument(metavar="DATA", help="A folder with LoCoMo's file and both files of 2Wiki."),
    into: Path = typer.Option(Path("docs/bench"), "--into", metavar="FOLDER", help="Folder for the results, as JSON."),
    plot: Path = typer.Option(Path("docs/pictures"), "--plot", metavar="FOLDER", help=PLOT_HELP),
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
        sizes, others = whole_numbers(notes), baseline_names(beside)
        results = []
        for result in bench.run(data, into, plot, progress, sizes, stores, options.embedder, others):
            results.append(result)
            if not options.json:
                print_result(result, options)
    if options.json:
        print_json(results)


COMMANDS: dict[str, Callable[..., None]] = {
    "locomo": bench_recall.locomo,
    "beam": bench_recall.beam,
    "speed": bench_speed.speed,
    "llm": bench_speed.llm,
    "changes": bench_recall.changes,
    "pairs": bench_recall.pairs,
    "profile": bench_recall.profile,
    "poison": bench_recall.poison,
    "overview": bench_recall.overview,
    "ablation": bench_recall.ablation,
    "evolve": bench_recall.evolve,
    "all": everything,
    "neo4j": bench_speed.neo4j,
    "cluster": bench_speed.cluster,
    "features": bench_speed.features,
    "import": bench_speed.import_,
    "overlap": bench_recall.overlap,
    "feedback": bench_recall.feedback,
    "serve": bench_speed.serve,
    "flame": bench_speed.flame,
    "longmemeval": bench_field.longmemeval,
    "multihop": bench_field.multihop,
    "personamem": bench_field.personamem,
    "memoryagentbench": bench_field.memoryagentbench,
    "halumem": bench_field.halumem,
    "answers": bench_answers.answers,
    "peers": bench_peers.peers,
}

app = typer.Typer(help="Measure recall and speed on your own data.", rich_markup_mode=None)
for name, command in COMMANDS.items():
    app.command(name, epilog=EVERYWHERE)(command)
