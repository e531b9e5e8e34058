"""The benchmarks as commands: a table on stdout, JSON where it is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from zettel.errors import InvalidInput

from .common import EVERYWHERE, common, console, remark, say_json, writable

if TYPE_CHECKING:
    from zettel.bench.machine import Cell, Result

_BESIDE_HELP = "Simple systems beside: bm25, vectors, rrf, minilm, amem; several with commas, or none. [default: all]"
_ABLATE_HELP = "Also leave out each part in turn."
_PLOT_HELP = "Draw what can be drawn into FOLDER, as SVG."
GAP = 2  # between columns of a table
JSON_HELP = "Write the result to FILE as JSON, with machine and versions; - is stdout."
"""Of the options of all commands that measure."""
_HELP = "Measure recall and speed on your own data."
_WITHOUT_HELP = "Leave out: windows, walk, text, vector, time, speaker, terms; several with commas."

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
    without: str = typer.Option("", "--without", metavar="PARTS", help=_WITHOUT_HELP),
    ablate: bool = typer.Option(False, "--ablate", help=_ABLATE_HELP),
    beside: str | None = typer.Option(None, "--beside", metavar="SYSTEMS", help=_BESIDE_HELP),
    plot: Path | None = typer.Option(None, "--plot", metavar="FOLDER", help=_PLOT_HELP),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """Evidence recall on LoCoMo, beside simple systems.

    With --with, recall on both data sets, in scopes of their own and mixed.

    \b
    Examples:
      zettel bench locomo locomo10.json
      zettel bench locomo locomo10.json --conversation 26 --without walk,windows --json result.json
      zettel bench locomo locomo10.json --ablate --plot pictures
      zettel bench locomo locomo10.json --with 2wiki/
    """
    options = common(ctx)
    readable(path, json)
    drawable(plot)
    if ablate and without:
        raise InvalidInput("--ablate leaves out each part in turn: do without --without")
    if with_ is not None and (ablate or beside is not None or plot is not None):
        raise InvalidInput("--with measures in its own way: do without --ablate, --beside and --plot")
    import anyio

    from zettel.bench import locomo as bench
    from zettel.bench import mixed

    chosen = tuple(conversation)
    with steps() as progress:
        if with_ is not None:
            result = anyio.run(mixed.run, path, with_, progress, chosen, _parts(without), options.embedder)
        else:
            ask = partial(bench.run, ablate=ablate, others=_others(beside))
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
    """
    options = common(ctx)
    readable(path, json, folder=True)
    drawable(plot)
    if ablate and without:
        raise InvalidInput("--ablate leaves out each part in turn: do without --without")
    import anyio

    from zettel.bench import two_wiki as bench

    with steps() as progress:
        ask = partial(bench.run, ablate=ablate, others=_others(beside))
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
        if json is not None and json != "-":
            writable(Path(json))
        from zettel.bench import sizes

        kept = Path(options.store) if options.store_named else None
        with steps() as progress:
            result = sizes.run(_whole_numbers(notes), progress, kept, options.embedder)
    tell(result, "-" if options.json else json, plot)


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
    from zettel.bench import everything as bench

    kept = Path(options.store) if options.store_named else None
    with steps() as progress:
        sizes, others = _whole_numbers(notes), _others(beside)
        for result in bench.run(data, into, plot, progress, sizes, kept, options.embedder, others):
            tell(result, "-" if options.json else None)


@app.command(epilog=EVERYWHERE)
def overlap(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="LoCoMo's JSON."),
    against: str | None = typer.Option(
        None, "--against", metavar="SPEC", help="The other store: a file, a URL or package.module:Class."
    ),
    notes: int = typer.Option(20_000, "--notes", metavar="N", min=0, help="Size of the made-up scope; 0: without."),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=JSON_HELP),
) -> None:
    """How many of the first ten hits two stores have in common. One is new and embedded, or --store.

    The other is by default the one of zettel's own tests that looks at every note. A store that is named gets
    scopes of its own for this, which are deleted again.

    \b
    Examples:
      zettel bench overlap locomo10.json
      zettel bench overlap locomo10.json --against other.db --notes 5000
    """
    options = common(ctx)
    readable(path, json)
    import anyio

    from zettel.bench import overlap as bench

    store = options.store if options.store_named else None
    with steps() as progress:
        result = anyio.run(bench.run, path, progress, against or bench.ORACLE, store, notes, options.embedder)
    tell(result, "-" if options.json else json)


def readable(path: Path, json: str | None, *, folder: bool = False) -> None:
    """Look at what is to be read and written before minutes are spent; raises ``InvalidInput`` naming it."""
    if not path.exists():
        raise InvalidInput(f"{path}: there is no such file")
    if path.is_dir() and not folder:
        raise InvalidInput(f"{path} is a folder; name a file in it")
    if json is not None and json != "-":
        writable(Path(json))


def drawable(folder: Path | None) -> None:
    """The same for pictures; raises ``InvalidInput`` naming a folder that is not there, ``MissingExtra``."""
    if folder is None:
        return
    if not folder.is_dir():
        raise InvalidInput(f"there is no folder {folder}; make it first")
    from zettel.bench.pictures import require_matplotlib

    require_matplotlib()


def _others(told: str | None) -> tuple[str, ...]:
    from zettel.bench.beside import ALL

    return ALL if told is None else () if told == "none" else _parts(told)


def _whole_numbers(told: str) -> list[int]:
    try:
        return [int(part) for part in _parts(told)]
    except ValueError:
        raise InvalidInput(f"--notes {told!r}: expected whole numbers with commas, such as 10000,100000") from None


def _parts(told: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in told.split(",") if part.strip())


def tell(result: Result, where: str | None, plot: Path | None = None) -> None:
    """Show a result, write it to the file ``where`` as JSON (``-``: JSON on stdout instead), draw it into ``plot``."""
    if plot is not None:
        from zettel.bench.pictures import draw

        for picture in draw(result, plot):
            remark(f"zettel: drawn to {picture}")
    if where == "-":
        say_json(result)
        return
    _show(result)
    if where is not None:
        result.write(Path(where))
        remark(f"zettel: written to {where}")


def _show(result: Result) -> None:
    from rich.table import Table
    from rich.text import Text

    from .layout import paragraph

    out = console()
    for places in bands([_width(result, place) for place in range(len(result.columns))], out.width + GAP):
        table = Table(box=None, header_style="dim", padding=(0, GAP, 0, 0), pad_edge=False)
        for place in places:
            head = "\n".join(result.columns[place].split())
            table.add_column(head, justify="right" if place else "left", vertical="bottom", no_wrap=True)
        for row in result.rows:
            table.add_row(*(Text(_cell(row[place])) for place in places))
        out.print(table)
    for note in result.notes:
        paragraph(out, Text(note, style="dim"))
    machine = result.machine
    packages = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    told = [
        ", ".join(f"{name} {value}" for name, value in result.ran_on.items()),
        ", ".join(f"{name} {value}" for name, value in result.settings.items() if value is not None),
        f"{machine.processor}, {machine.cores} cores, {machine.system}, Python {machine.python}",
        f"zettel {result.zettel}, {packages}",
    ]
    for line in told:
        paragraph(out, Text(line, style="dim"))


def bands(widths: Sequence[int], width: int) -> list[list[int]]:
    """Places of the columns that fit into ``width`` beside each other, the first one in every band."""
    found: list[list[int]] = [[0]]
    left = width - widths[0]
    for place in range(1, len(widths)):
        if left < widths[place] and len(found[-1]) > 1:
            found.append([0])
            left = width - widths[0]
        found[-1].append(place)
        left -= widths[place]
    return found


def _width(result: Result, place: int) -> int:
    heads = result.columns[place].split()
    return max(map(len, [*heads, *(_cell(row[place]) for row in result.rows)])) + GAP


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.3f}" if abs(cell) <= 1 else f"{cell:,.1f}"
    return str(cell)


@contextmanager
def steps() -> Iterator[Callable[[str, int, int], None]]:
    """What is being done, on stderr, where that is a terminal."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield lambda what, done, total: None
        return
    with err.status("starting") as status:
        yield lambda what, done, total: status.update(f"{what}: {done} of {total}")
