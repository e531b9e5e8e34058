"""The commands ``zettel neo4j``: a local Neo4j server without Docker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .common import EVERYWHERE, common, console, echo, notify, print_json

if TYPE_CHECKING:
    from zettel.graph.neo4j.local.jars import Progress
    from zettel.graph.neo4j.local.server import LocalServer

FOLDER = "zettel-neo4j"

app = typer.Typer(help="Run a Neo4j on this machine.", rich_markup_mode=None)

_folder = typer.Argument(FOLDER, metavar="[FOLDER]", help=f"Folder of its data and settings; by default {FOLDER}.")


@app.callback()
def group() -> None:
    """Run a Neo4j on this machine, with Java and without Docker. Maven downloads its jars once."""


@app.command(epilog=EVERYWHERE)
def up(
    ctx: typer.Context,
    folder: Path = _folder,
    version: str | None = typer.Option(
        None, "--version", metavar="RELEASE", help="2026 or 5.26; by default the newest for the installed Java."
    ),
    bolt_port: int | None = typer.Option(None, "--bolt-port", metavar="PORT", help="Port for stores."),
    http_port: int | None = typer.Option(None, "--http-port", metavar="PORT", help="Port of Neo4j Browser."),
) -> None:
    """Start Neo4j and wait until it answers. A new folder gets a new password, which is printed only once.

    The default ports are 7687 and 7474; if they are in use, free ports are chosen.

    \b
    Examples:
      zettel neo4j up
      zettel neo4j up memories --version 5.26
    """
    from zettel.graph.neo4j.local.server import USER, up

    with progress() as report:
        started = up(folder, version=version, bolt=bolt_port, http=http_port, progress=report)
    server = started.server
    if common(ctx).json:
        print_json(_fields(server) | {"user": USER, "password": started.password, "already": started.already})
        return
    from .layout import labelled

    echo(f"Neo4j {server.version} {'was already running' if started.already else 'is running'}")
    rows = {"store": server.url, "browser": server.browser, "folder": str(server.home), "user": USER}
    if started.password is not None:
        rows["password"] = f"{started.password}  (shown only once: save it)"
    labelled(console(), rows.items())


@app.command(epilog=EVERYWHERE)
def down(ctx: typer.Context, folder: Path = _folder) -> None:
    """Stop Neo4j and wait until all data is written. Its data stays in the folder.

    \b
    Examples:
      zettel neo4j down
    """
    from zettel.graph.neo4j.local.server import down

    ran = down(folder)
    if common(ctx).json:
        print_json({"ended": ran})
    else:
        echo("Neo4j is stopped" if ran else "Neo4j was not running")


@app.command(epilog=EVERYWHERE)
def status(ctx: typer.Context, folder: Path = _folder) -> None:
    """Show whether Neo4j is running, and its addresses. Exits with 1 if it is not running.

    \b
    Examples:
      zettel neo4j status
    """
    from zettel.graph.neo4j.local.server import status

    server = status(folder)
    if common(ctx).json:
        print_json(_fields(server))
    else:
        from .layout import labelled

        rows = {"folder": str(server.home), "log": str(server.log)}
        if server.pid is not None:
            rows = {"store": server.url, "browser": server.browser, "process": str(server.pid)} | rows
        echo(f"Neo4j {server.version} {'is running' if server.pid is not None else 'is not running'}")
        labelled(console(), rows.items())
    if server.pid is None:
        raise typer.Exit(1)


def _fields(server: LocalServer) -> dict[str, object]:
    return {
        "version": server.version,
        "running": server.pid is not None,
        "process": server.pid,
        "store": server.url,
        "browser": server.browser,
        "folder": server.home,
        "log": server.log,
    }


@contextmanager
def progress() -> Iterator[Progress]:
    """Show the current step: a live line in a terminal, else one line per step."""
    out = console(stderr=True)
    with out.status("looking for Java") as line:

        def report(step: str, files: int) -> None:
            if out.is_terminal:
                line.update(f"{step}: {files} files" if files else step)
            elif not files:
                notify(f"zettel: {step}")

        yield report
