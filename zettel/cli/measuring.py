"""What commands that measure have in common: a look at the files first, the steps, the table or JSON at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from zettel.errors import InvalidInput

from .common import console, remark, say_json, writable

if TYPE_CHECKING:
    from zettel.bench.machine import Cell, Result

GAP = 2  # between columns of a table
JSON_HELP = "Write the result to FILE as JSON, with machine and versions; - is stdout."
"""Of the options of all commands that measure."""


def readable(path: Path, json: str | None, *, folder: bool = False) -> None:
    """Look at what is to be read and written before minutes are spent; raises ``InvalidInput`` naming it."""
    if not path.exists():
        raise InvalidInput(f"{path}: there is no such file")
    if path.is_dir() and not folder:
        raise InvalidInput(f"{path} is a folder; name a file in it")
    landing(json)


def landing(json: str | None) -> None:
    """The same for where the result goes alone."""
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
