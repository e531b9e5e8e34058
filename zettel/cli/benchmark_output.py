"""Shared options, path checks, progress and result output of the bench and scorer commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from zettel.errors import InvalidInput

from .common import Common, console, notify, print_json, require_writable

if TYPE_CHECKING:
    from zettel.bench.evaluation import Progress
    from zettel.bench.results import Cell, Result

GAP = 2  # between columns of a table
FILES, HASH_CHARS = 8, 12  # of the data that are printed
_LEAST = 0.0005  # smaller values would print as 0.000

JsonFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="FILE", help="Write the result to FILE as JSON, with machine and versions; - is stdout."
    ),
]
QuestionFiles: TypeAlias = Annotated[
    list[Path], typer.Argument(metavar="PATH", help="Conversations with questions, in LoCoMo's layout.")
]


def require_readable(path: Path, json: str | None, *, folder: bool = False) -> None:
    """Check the input and output paths before the work starts. Raises ``InvalidInput``."""
    if not path.exists():
        raise InvalidInput(f"the file {path} does not exist")
    if path.is_dir() and not folder:
        raise InvalidInput(f"{path} is a folder: name a file in it")
    require_result_writable(json)


def require_result_writable(json: str | None) -> None:
    """Check that the result can be written. Raises ``InvalidInput``."""
    if json is not None and json != "-":
        require_writable(Path(json))


def require_drawable(folder: Path | None) -> None:
    """Check that pictures can be drawn. Raises ``InvalidInput`` for a missing folder, ``MissingExtra``."""
    if folder is None:
        return
    if not folder.is_dir():
        raise InvalidInput(f"the folder {folder} does not exist: create it first")
    from zettel.bench.plots import require_matplotlib

    require_matplotlib()


def measure(
    run: Callable[[Progress], Result | Awaitable[Result]],
    options: Common,
    json: str | None = None,
    plot: Path | None = None,
) -> None:
    """Run a benchmark, print its result, write it to the file ``json``, and plot it into the folder ``plot``."""
    import anyio

    with steps() as progress:
        result = run(progress)
        if isinstance(result, Awaitable):
            awaited = result
            result = anyio.run(lambda: awaited)
    print_result(result, options, json, plot)


def print_result(result: Result, options: Common, json: str | None = None, plot: Path | None = None) -> None:
    """Write a result to the file ``json``, plot it into the folder ``plot``, and print it.

    It is written first, because the reader of the output may stop early (``| head``). With the common option
    ``--json``, and if ``json`` is ``-``, only JSON is printed.
    """
    if json is not None and json != "-":
        result.write(Path(json))
    if plot is not None:
        from zettel.bench.plots import draw

        for picture in draw(result, plot):
            notify(f"zettel: drawn to {picture}")
    if options.json or json == "-":
        print_json(result)
        return
    _print_table(result)
    if json is not None:
        notify(f"zettel: written to {json}")


def _print_table(result: Result) -> None:
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
    files = [f"{file.name} ({file.size:,} bytes, SHA-256 {file.sha256[:HASH_CHARS]}…)" for file in result.data[:FILES]]
    if more := len(result.data) - len(files):
        files.append(f"{more} more files, which --json names")
    lines = [
        ", ".join(files),
        ", ".join(f"{name} {value}" for name, value in result.ran_on.items()),
        ", ".join(f"{name} {value}" for name, value in result.settings.items() if value is not None),
        f"{machine.processor}, {machine.cores} cores, {machine.system}, Python {machine.python}",
        f"zettel {result.zettel}{f' at {result.commit}' if result.commit else ''}, {packages}",
    ]
    for line in filter(None, lines):
        paragraph(out, Text(line, style="dim"))


def bands(widths: Sequence[int], width: int) -> list[list[int]]:
    """Split columns into groups that fit into ``width``; every group begins with the first column."""
    groups: list[list[int]] = [[0]]
    free = width - widths[0]
    for place in range(1, len(widths)):
        if free < widths[place] and len(groups[-1]) > 1:
            groups.append([0])
            free = width - widths[0]
        groups[-1].append(place)
        free -= widths[place]
    return groups


def _width(result: Result, place: int) -> int:
    heads = result.columns[place].split()
    return max(map(len, [*heads, *(_cell(row[place]) for row in result.rows)])) + GAP


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        if 0 < abs(cell) < _LEAST:
            return f"{cell:.4f}"  # a p-value is never 0
        return f"{cell:.3f}" if abs(cell) <= 1 else f"{cell:,.1f}"
    return str(cell)


@contextmanager
def steps() -> Iterator[Callable[[str, int, int], None]]:
    """Show the current step on stderr if it is a terminal."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield lambda what, done, total: None
        return
    with err.status("starting") as status:
        yield lambda what, done, total: status.update(f"{what}: {done} of {total}")
