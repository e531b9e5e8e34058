"""``zettel explore``: saved queries for people in Neo4j Browser, with the values of this memory filled in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer

from zettel.errors import InvalidInput, LocalServerError

from .common import Common, common, console, remark, say, say_json

if TYPE_CHECKING:
    from zettel.graph.neo4j.local.server import LocalServer

BOLT_PORT = 7687
HTTP_PORT = 7474
"""Where a Neo4j answers drivers, and serves its Browser, unless it was told otherwise."""


def explore(
    ctx: typer.Context,
    name: str | None = typer.Argument(None, metavar="[NAME]", help="A saved query; without one they are listed."),
    values: list[str] = typer.Argument(None, metavar="[VALUE=...]", help="Its values, such as day=2025-08-02."),
    params: bool = typer.Option(False, "--params", help="Print the values as :param lines above the query."),
    links: bool = typer.Option(False, "--links", help="Print addresses that open Neo4j Browser with the query."),
    browser: str | None = typer.Option(None, "--browser", metavar="URL", help="Where Neo4j Browser is."),
    write: Path | None = typer.Option(None, "--write", metavar="FOLDER", help="Write all, with the style, there."),
) -> None:
    """Look around in Neo4j Browser. Lists saved queries, or prints one with its values filled in.

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
        _show(options, name, _given(values or []), opens(options, browser), params=params, links=links)
    else:
        _list(options, opens(options, browser), links=links)


def _show(
    options: Common,
    name: str,
    given: dict[str, str],
    address: Callable[[str], str],
    *,
    params: bool,
    links: bool,
) -> None:
    from zettel.cypher import explore

    query = explore.named(name)
    values = explore.values_of(query, options.scope().key, given)
    ready = explore.filled(query, values)
    for one in query.asked:
        if one.name not in given and isinstance(one.example, str):
            remark(f"zettel: {one.name}={one.example} is an example: name yours, as {one.name}=... ({one.meaning})")
    if options.json:
        told = {"name": name, "title": query.title, "comment": query.comment, "query": query.body, "values": values}
        say_json(told | {"link": address(ready)})
    elif links:
        say(address(ready))
    elif params:
        say(explore.params(values) + query.body)
    else:
        say(ready.strip())


def _list(options: Common, address: Callable[[str], str], *, links: bool) -> None:
    from zettel.cypher import explore

    from .layout import labelled

    if options.json:
        say_json([{"name": one.name, "title": one.title, "comment": one.comment} for one in explore.saved()])
    elif not links:
        labelled(console(), [(one.name, f"{one.title}. {' '.join(one.comment.split())}") for one in explore.saved()])
    else:
        rows = [("the style, to run once", f":style {explore.beside(explore.STYLE)}")]
        for one in explore.saved():
            rows.append((one.name, explore.filled(one, explore.values_of(one, options.scope().key, {}))))
        for label, text in rows:  # an address is one line, however long: else no terminal opens it
            say(f"{label}\n  {address(text)}")


def _write(options: Common, folder: Path) -> None:
    """All queries for this scope, as files for Neo4j Browser's favourites; the style and the guide beside them."""
    from zettel.cypher import explore

    folder.mkdir(parents=True, exist_ok=True)
    for one in explore.saved():
        text = explore.filled(one, explore.values_of(one, options.scope().key, {}))
        (folder / f"{one.name}.cypher").write_text(text, encoding="utf-8")
    for name in (explore.STYLE, explore.GUIDE):
        (folder / name).write_text(explore.beside(name), encoding="utf-8")
    if options.json:
        say_json({"folder": folder, "queries": [one.name for one in explore.saved()]})
    else:
        say(
            f"{len(explore.saved())} queries for {options.scope()}, {explore.STYLE} and {explore.GUIDE} are in {folder}"
        )


def _given(values: Sequence[str]) -> dict[str, str]:
    given = {}
    for one in values:
        name, equals, value = one.partition("=")
        if not equals:
            raise InvalidInput(f"{one!r} gives no value a name: write topic=harbour")
        given[name] = value
    return given


def opens(options: Common, browser: str | None) -> Callable[[str], str]:
    """Makes of a text the address that opens Neo4j Browser with it, logged in to the store's server but for the
    password."""
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
    """The server that ``zettel neo4j up`` started from this folder."""
    from zettel.graph.neo4j.local.server import status

    from .neo4j import FOLDER

    try:
        return status(FOLDER)
    except LocalServerError:
        return None
