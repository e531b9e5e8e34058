"""The command explore: saved queries for Neo4j Browser, with the values of this memory filled in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer

from zettel.errors import InvalidInput, LocalServerError

from .common import Common, common, console, echo, notify, print_json

if TYPE_CHECKING:
    from zettel.graph.neo4j.local.server import LocalServer

BOLT_PORT = 7687
HTTP_PORT = 7474
"""Default ports of Neo4j for drivers and for Neo4j Browser."""


def explore(
    ctx: typer.Context,
    name: str | None = typer.Argument(None, metavar="[NAME]", help="A saved query; leave it out to list them."),
    values: list[str] = typer.Argument(None, metavar="[VALUE=...]", help="Its values, such as day=2025-08-02."),
    params: bool = typer.Option(False, "--params", help="Print the values as :param lines above the query."),
    links: bool = typer.Option(False, "--links", help="Print URLs that open Neo4j Browser with the query."),
    browser: str | None = typer.Option(None, "--browser", metavar="URL", help="URL of Neo4j Browser."),
    write: Path | None = typer.Option(None, "--write", metavar="FOLDER", help="Write all queries to FOLDER."),
) -> None:
    """Explore the graph in Neo4j Browser. Lists saved queries, or prints one with its values filled in.

    \b
    Examples:
      zettel explore
      zettel explore topic topic=harbour
      zettel explore day day=2025-08-02 --user ann --links
      zettel explore --write queries
    """
    options = common(ctx)
    if write is not None:
        _write(options, write)
    elif name is not None:
        _show(options, name, _parse_values(values or []), browser_links(options, browser), params=params, links=links)
    else:
        _list(options, browser_links(options, browser), links=links)


def _show(
    options: Common,
    name: str,
    given_values: dict[str, str],
    address: Callable[[str], str],
    *,
    params: bool,
    links: bool,
) -> None:
    from zettel.cypher import explore

    query = explore.saved_query(name)
    values = explore.values_of(query, options.scope().key, given_values)
    ready = explore.with_values(query, values)
    for value in query.values:
        if value.name not in given_values and isinstance(value.example, str):
            notify(f"zettel: {value.name}={value.example} is an example: pass {value.name}=... ({value.meaning})")
    if options.json:
        fields = {"name": name, "title": query.title, "comment": query.comment, "query": query.body, "values": values}
        print_json(fields | {"link": address(ready)})
    elif links:
        echo(address(ready))
    elif params:
        echo(explore.params(values) + query.body)
    else:
        echo(ready.strip())


def _list(options: Common, address: Callable[[str], str], *, links: bool) -> None:
    from zettel.cypher import explore

    from .layout import labelled

    queries = explore.saved_queries()
    if options.json:
        print_json([{"name": query.name, "title": query.title, "comment": query.comment} for query in queries])
    elif not links:
        labelled(console(), [(query.name, f"{query.title}. {' '.join(query.comment.split())}") for query in queries])
    else:
        rows = [("style: run it once", f":style {explore.read_text(explore.STYLE)}")]
        for query in queries:
            rows.append((query.name, explore.with_values(query, explore.values_of(query, options.scope().key, {}))))
        for label, text in rows:  # never wrap a URL: terminals open only URLs on one line
            echo(f"{label}\n  {address(text)}")


def _write(options: Common, folder: Path) -> None:
    """Write all queries of this scope as favourites for Neo4j Browser, with the style and the guide."""
    from zettel.cypher import explore

    folder.mkdir(parents=True, exist_ok=True)
    queries = explore.saved_queries()
    for query in queries:
        text = explore.with_values(query, explore.values_of(query, options.scope().key, {}))
        (folder / f"{query.name}.cypher").write_text(text, encoding="utf-8")
    for name in (explore.STYLE, explore.GUIDE):
        (folder / name).write_text(explore.read_text(name), encoding="utf-8")
    if options.json:
        print_json({"folder": folder, "queries": [query.name for query in queries]})
    else:
        echo(f"{len(queries)} queries for {options.scope()}, {explore.STYLE} and {explore.GUIDE} are in {folder}")


def _parse_values(values: Sequence[str]) -> dict[str, str]:
    given_values = {}
    for pair in values:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidInput(f"{pair!r} is not NAME=VALUE: write a value such as topic=harbour")
        given_values[name] = value
    return given_values


def browser_links(options: Common, browser: str | None) -> Callable[[str], str]:
    """Return a function that makes a URL for Neo4j Browser: it opens a text and connects, except for the password."""
    from zettel.cypher import explore

    server = _started_here()
    if "://" in options.store:
        store = urlsplit(options.store)
    else:
        store = urlsplit(server.url if server else f"neo4j://localhost:{BOLT_PORT}")
    bolt = store.netloc.rpartition("@")[2]
    if browser is None and server is not None and server.url.endswith(f"//{bolt}"):
        browser = server.browser.partition("/browser/")[0]
    base = browser or f"http://{store.hostname}:{HTTP_PORT}"
    return lambda text: explore.link(base, text, f"{store.scheme}://neo4j@{bolt}")


def _started_here() -> LocalServer | None:
    """Return the server that ``zettel neo4j up`` started from this folder."""
    from zettel.graph.neo4j.local.server import status

    from .neo4j import FOLDER

    try:
        return status(FOLDER)
    except LocalServerError:
        return None
