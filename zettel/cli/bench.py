"""The benchmarks as commands: a table on stdout, JSON where it is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .common import EVERYWHERE, common, console, remark, say_json

if TYPE_CHECKING:
    from zettel.bench.machine import Cell, Result

_HELP = "Measure recall and speed on your own data."
_JSON_HELP = "Write the result to FILE as JSON, with machine and versions; - is stdout."
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
    k: int = typer.Option(10, "-k", "--k", min=1, help="Places that hits may take."),
    without: str = typer.Option("", "--without", metavar="PARTS", help=_WITHOUT_HELP),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=_JSON_HELP),
) -> None:
    """Evidence recall on LoCoMo, beside BM25 and flat vectors.

    \b
    Examples:
      zettel bench locomo locomo10.json
      zettel bench locomo locomo10.json --conversation 26 --without walk,windows --json result.json
    """
    options = common(ctx)
    import anyio

    from zettel.bench import locomo as bench

    with _steps() as progress:
        result = anyio.run(
            bench.run, path, progress, tuple(conversation), k, _parts(without), options.embedder
        )  # fmt: skip
    _tell(result, "-" if options.json else json)


@app.command("2wiki", epilog=EVERYWHERE)
def two_wiki(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="The passages (JSON lines), or a folder with both files."),
    questions: Path | None = typer.Argument(None, metavar="[QUESTIONS]", help="The questions, if not beside them."),
    k: int = typer.Option(8, "-k", "--k", min=1, help="Places that hits may take."),
    without: str = typer.Option("", "--without", metavar="PARTS", help=_WITHOUT_HELP),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=_JSON_HELP),
) -> None:
    """All needed passages of 2WikiMultihopQA found at once, beside BM25 and flat vectors.

    \b
    Examples:
      zettel bench 2wiki data/
      zettel bench 2wiki passages.jsonl questions.jsonl --without walk
    """
    options = common(ctx)
    import anyio

    from zettel.bench import two_wiki as bench

    with _steps() as progress:
        result = anyio.run(bench.run, path, progress, questions, k, _parts(without), options.embedder)
    _tell(result, "-" if options.json else json)


@app.command(epilog=EVERYWHERE)
def speed(
    ctx: typer.Context,
    path: Path = typer.Argument(metavar="PATH", help="A transcript to import."),
    minilm: str = typer.Option("all-MiniLM-L6-v2", "--minilm", metavar="MODEL", help="Its name or folder."),
    json: str | None = typer.Option(None, "--json", metavar="FILE", help=_JSON_HELP),
) -> None:
    """Import rate beside MiniLM's, search times, and how long the first answer takes.

    \b
    Example:
      zettel bench speed locomo10.json --json speed.json
    """
    options = common(ctx)
    from zettel.bench import speed as bench

    with _steps() as progress:
        result = bench.run(path, progress, minilm=minilm, embedder=options.embedder)
    _tell(result, "-" if options.json else json)


def _parts(told: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in told.split(",") if part.strip())


def _tell(result: Result, where: str | None) -> None:
    if where == "-":
        say_json(result)
        return
    _show(result)
    if where is not None:
        Path(where).write_text(result.model_dump_json(indent=2) + "\n", encoding="utf-8")
        remark(f"zettel: written to {where}")


def _show(result: Result) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for place, column in enumerate(result.columns):
        table.add_column(column, justify="right" if place else "left")
    for row in result.rows:
        table.add_row(*(Text(_cell(cell)) for cell in row))
    out.print(table)
    for note in result.notes:
        out.print(Text(note, style="dim"))
    machine = result.machine
    packages = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    told = [
        ", ".join(f"{name} {value}" for name, value in result.ran_on.items()),
        ", ".join(f"{name} {value}" for name, value in result.settings.items() if value is not None),
        f"{machine.processor}, {machine.cores} cores, {machine.system}, Python {machine.python}",
        f"zettel {result.zettel}, {packages}",
    ]
    for line in told:
        out.print(Text(line, style="dim"))


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.3f}" if abs(cell) <= 1 else f"{cell:,.1f}"
    return str(cell)


@contextmanager
def _steps() -> Iterator[Callable[[str, int, int], None]]:
    """What is being done, on stderr, where that is a terminal."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield lambda what, done, total: None
        return
    with err.status("starting") as status:
        yield lambda what, done, total: status.update(f"{what}: {done} of {total}")
