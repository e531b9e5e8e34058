"""The command demo: imports a year of messages, draws their graph and answers questions, without a network."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from zettel.cli.common import Common, common, console, print_json, require_writable
from zettel.cli.hits import show_hits
from zettel.cli.layout import paragraph
from zettel.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from zettel import Memory

    from .picture import Answered

PAGE = "zettel-demo.html"
TITLE = "Nora and Idris"
SUBTITLE = "A year of messages between a baker and a boatbuilder, remembered by zettel"
TOPIC = ("topic", ("topic", "tystie"))
"""The saved query that is opened in Neo4j Browser, and its values."""
SHOWN_HITS = 3
"""Hits printed for each question."""
DRAWN_HITS = 5
"""Hits in the page for each question."""


def demo(
    ctx: typer.Context,
    out: Path | None = typer.Option(
        None, "--out", metavar="FILE", help=f"HTML file for the drawing of the graph; by default {PAGE}."
    ),
    evolution: bool = typer.Option(False, "--evolution", help="Show how notes evolve instead."),
    neo4j: bool = typer.Option(False, "--neo4j", help="Store it in Neo4j: NEO4J_URI, or a server started here."),
) -> None:
    """Run a short tour. It stores an invented year of messages, draws its graph and asks six questions.

    --evolution stores a few messages instead and shows how their notes change, are reverted and deleted. The memory is
    deleted afterwards, unless --store names a file for it.

    \b
    Examples:
      zettel demo
      zettel demo --store demo.db --out demo.html
      zettel demo --evolution
      zettel demo --neo4j
    """
    options = common(ctx)
    if evolution and neo4j:
        raise InvalidInput("--evolution requires an embedded store: leave out --neo4j")
    if evolution:
        _run_evolution(options, out)
        return
    out = out or Path(PAGE)
    require_writable(out)
    if neo4j:
        _run_in_neo4j(options, out)
        return
    with TemporaryDirectory(prefix="zettel-demo-") as folder:
        keep_store = options.store_given
        where = options if keep_store else replace(options, store=str(Path(folder) / "demo.db"))
        with where.memory(create=True) as memory:
            report = _run_tour(memory, where, out, keep_store=keep_store)
    if options.json:
        print_json(report)


def _run_evolution(options: Common, out: Path | None) -> None:
    from .evolution import PAGE, run_tour

    page = out or Path(PAGE)
    require_writable(page)
    with TemporaryDirectory(prefix="zettel-demo-") as folder:
        where = options if options.store_given else replace(options, store=str(Path(folder) / "demo.db"))
        with where.memory(create=True) as memory:
            report = run_tour(memory, console(stderr=options.json), page)
    if options.json:
        print_json(report)


def _run_in_neo4j(options: Common, page: Path) -> None:
    """Run the tour on a Neo4j server and print links to Neo4j Browser."""
    from rich.text import Text

    from zettel.cli.explore import browser_links
    from zettel.cypher import explore

    from .server import served

    server = served()
    where = replace(options, store=server.url, store_given=True)
    with where.memory(create=True, auth=server.auth) as memory:
        report = _run_tour(memory, where, page, keep_store=True)
    address = browser_links(where, server.browser)
    topic = explore.saved_query(TOPIC[0])
    links = {
        "style": address(f":style {explore.read_text(explore.STYLE)}"),
        "topic": address(explore.with_values(topic, explore.values_of(topic, where.scope().key, dict(TOPIC[1:])))),
    }
    if options.json:
        print_json(report | {"browser": links, "user": server.auth[0], "folder": server.folder})
        return
    terminal = console()
    whose = f"as {server.auth[0]}" + (f" with the password {server.auth[1]}" if server.folder else "")
    paragraph(terminal, Text(f"\nIn Neo4j Browser, {whose}; run the text in its editor with Ctrl+Enter", style="bold"))
    for name, label in (("style", "First run the style once"), ("topic", "Then query all notes about a boat")):
        # Never wrap a URL, so that it can be clicked and copied.
        terminal.print(Text(f"{label}: ").append(links[name], style=f"cyan link {links[name]}"), soft_wrap=True)
    more = f"zettel explore --links --store {server.url}" + (f" --browser {server.browser}" if server.browser else "")
    paragraph(terminal, Text(f"More queries: {more}", style="dim"))
    if server.folder:
        stop = f"The server is still running: stop it with zettel neo4j down {server.folder}"
        paragraph(terminal, Text(stop, style="dim"))


def _run_tour(memory: Memory, options: Common, page: Path, *, keep_store: bool) -> dict[str, Any]:
    from rich.text import Text

    terminal = console(stderr=options.json)
    began = time.perf_counter()
    with as_file(files(__package__).joinpath("conversation.json")) as path:
        report = memory.import_transcript(path, "locomo")
    memory.flush()
    seconds = time.perf_counter() - began
    stats = memory.stats(scope=options.scope())
    known = report.existing + report.revised + report.deleted
    paragraph(terminal, Text(f"{TITLE}: {SUBTITLE[0].lower()}{SUBTITLE[1:]}", style="bold"))
    imported = f"{report.added} messages added in {seconds:.1f} s" if not known else f"{known} messages existed already"
    terminal.print(Text(f"{imported}; {_counts(stats)}.\n"))
    answered = _ask(memory, terminal)
    scorer = next((hit.why.scorer for item in answered for hit in item.hits), "none")
    components = _components(stats, options, scorer, keep_store=keep_store)
    _draw(memory, page, answered, [line for line, _ in components])
    paragraph(terminal, Text("Its graph, to open in a browser: ").append(str(page), style="bold cyan"))
    for line, option in components:
        paragraph(terminal, Text(line).append(f"  {option}", style="dim"), hang=2)
    return {
        "seconds": round(seconds, 2),
        "stats": stats,
        "page": str(page),
        "questions": [
            {"question": item.question, "as_of": item.as_of, "answer": item.answer, "hits": list(item.hits)}
            for item in answered
        ],
    }


def _ask(memory: Memory, terminal: Console) -> Sequence[Answered]:
    """Ask all questions, and print the best hits with explanations."""
    from rich.text import Text

    from .picture import Answered

    entries = json.loads(files(__package__).joinpath("questions.json").read_text(encoding="utf-8"))
    answered = []
    for entry in entries:
        hits = memory.search(entry["question"], k=DRAWN_HITS, as_of=entry["as_of"], explain=True)
        answered.append(Answered(entry["question"], entry["as_of"], entry["answer"], hits))
        heading = Text(entry["question"], style="bold")
        if entry["as_of"]:
            heading.append(f"  as of {entry['as_of']}", style="cyan")
        paragraph(terminal, heading)
        paragraph(terminal, Text(f"Expected answer: {entry['answer']}", style="italic dim"))
        terminal.print()
        show_hits(terminal, hits[:SHOWN_HITS], explained=1)
        terminal.print("\n")
    return answered


def _draw(memory: Memory, path: Path, answered: Sequence[Answered], components: Sequence[str]) -> None:
    from .graph import read_graph
    from .picture import render_page

    path.write_text(render_page(read_graph(memory), TITLE, SUBTITLE, answered, components), encoding="utf-8")


def _components(stats: dict[str, Any], options: Common, scorer: str, *, keep_store: bool) -> list[tuple[str, str]]:
    """Return the parts of this memory, each with the option that changes it."""
    store = f"{stats['store']} store in {options.store}" if keep_store else f"{stats['store']} store, now deleted"
    return [
        (f"Annotator: {stats['annotator']}, no language model", "Memory(annotator=...)"),
        (f"Embedder: {stats['embedder']}, {stats['dimension']} dimensions", "--embedder NAME, Memory(embedder=...)"),
        (f"Store: {store}", "--store FILE, Memory(FILE)"),
        (f"Scorer: {scorer}, local score and graph score", "Memory(scorer=...)"),
    ]


def _counts(stats: dict[str, Any]) -> str:
    named = ("events", "notes", "terms", "links")
    return ", ".join(f"{stats[name]:,} {name}" for name in named if name in stats)
