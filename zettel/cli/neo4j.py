"""``zettel neo4j``: a Neo4j of one's own, on this machine, without Docker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .common import EVERYWHERE, common, console, remark, say, say_json

if TYPE_CHECKING:
    from zettel.graph.neo4j.local.jars import Progress
    from zettel.graph.neo4j.local.server import LocalServer

FOLDER = "zettel-neo4j"

app = typer.Typer(help="Run a Neo4j on this machine.", rich_markup_mode=None)

_folder = typer.Argument(FOLDER, metavar="[FOLDER]", help=f"Where its data and settings are; {FOLDER} if not named.")


@app.callback()
def group() -> None:
    """Run a Neo4j on this machine, with Java and without Docker. Its jars are fetched with Maven, once."""


@app.command(epilog=EVERYWHERE)
def up(
    ctx: typer.Context,
    folder: Path = _folder,
    version: str | None = typer.Option(
        None, "--version", metavar="RELEASE", help="2026 or 5.26; by default the newest that the Java here can run."
    ),
    bolt_port: int | None = typer.Option(None, "--bolt-port", metavar="PORT", help="Where stores connect to it."),
    http_port: int | None = typer.Option(None, "--http-port", metavar="PORT", help="Where Neo4j Browser is."),
) -> None:
    """Start it, and wait until it answers. A new folder gets a new password, which is shown this once.

    Its own ports are 7687 and 7474; if they are taken, free ones are found.

    \b
    Examples:
      zettel neo4j up
      zettel neo4j up memories --version 5.26
    """
    from zettel.graph.neo4j.local.server import USER, up

    with progress() as told:
        started = up(folder, version=version, bolt=bolt_port, http=http_port, progress=told)
    server = started.server
    if common(ctx).json:
        say_json(_told(server) | {"user": USER, "password": started.password, "already": started.already})
        return
    from .layout import labelled

    say(f"Neo4j {server.version} {'ran already' if started.already else 'runs'}")
    rows = {"store": server.url, "browser": server.browser, "folder": str(server.home), "user": USER}
    if started.password is not None:
        rows["password"] = f"{started.password}  (not shown again: keep it)"
    labelled(console(), rows.items())


@app.command(epilog=EVERYWHERE)
def down(ctx: typer.Context, folder: Path = _folder) -> None:
    """End it, and wait until all is written. Its data stays in the folder.

    \b
    Example:
      zettel neo4j down
    """
    from zettel.graph.neo4j.local.server import down

    ran = down(folder)
    if common(ctx).json:
        say_json({"ended": ran})
    else:
        say("Neo4j has ended" if ran else "Neo4j did not run")


@app.command(epilog=EVERYWHERE)
def status(ctx: typer.Context, folder: Path = _folder) -> None:
    """Tell whether it runs, and where. Exits with 1 if it does not.

    \b
    Example:
      zettel neo4j status
    """
    from zettel.graph.neo4j.local.server import status

    server = status(folder)
    if common(ctx).json:
        say_json(_told(server))
    else:
        from .layout import labelled

        rows = {"folder": str(server.home), "log": str(server.log)}
        if server.pid is not None:
            rows = {"store": server.url, "browser": server.browser, "process": str(server.pid)} | rows
        say(f"Neo4j {server.version} {'runs' if server.pid is not None else 'does not run'}")
        labelled(console(), rows.items())
    if server.pid is None:
        raise typer.Exit(1)


def _told(server: LocalServer) -> dict[str, object]:
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
    """What is being done: a moving line in a terminal, else a line for each step."""
    out = console(stderr=True)
    with out.status("looking for Java") as line:

        def tell(step: str, files: int) -> None:
            if out.is_terminal:
                line.update(f"{step}: {files} files" if files else step)
            elif not files:
                remark(f"zettel: {step}")

        yield tell
