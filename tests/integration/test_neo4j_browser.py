"""Neo4j Browser with the queries and the style of ``zettel explore``, and the demo on a Neo4j server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests import neo4j_servers
from zettel import Memory
from zettel.cli.app import run
from zettel.cypher import explore
from zettel.errors import ZettelError

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SANDY = "rgb(244, 227, 181)"  # the colour of notes in the style
TIMEOUT_MS = 60_000  # milliseconds that a step may take on a busy machine
POLL_MS = 250  # milliseconds
LOGINS = 3


@pytest.fixture(scope="module", params=neo4j_servers.EVERY[:1])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[neo4j_servers.Server]:
    """Return a server with the conversation of the demo, and set its address in the environment."""
    started = neo4j_servers.empty(request.param)
    if started.http is None:
        pytest.skip("NEO4J_URI names a server whose Browser has an unknown address")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("chat"))
        for name, value in zip(("URI", "USERNAME", "PASSWORD"), (started.url, *started.auth), strict=True):
            patch.setenv(f"NEO4J_{name}", value)
        Path("chat.json").write_bytes(files("zettel.cli.demo").joinpath("conversation.json").read_bytes())
        with Memory(started.url) as memory:
            memory.import_transcript("chat.json", "locomo")
            memory.flush()
        yield started


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Any]:
    """Return a browser page that can reach only this machine."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    from playwright.sync_api import sync_playwright

    def local_only(route: Any) -> None:
        if route.request.url.startswith(("http://127.0.0.1", "http://localhost", "data:", "blob:")):
            route.continue_()
        else:
            route.abort()  # Neo4j Browser requests fonts and scripts of other hosts

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        opened = browser.new_page(viewport={"width": 1440, "height": 900})
        opened.set_default_timeout(TIMEOUT_MS)
        opened.route("**/*", local_only)
        yield opened
        opened.screenshot(path=tmp_path / "last.png")  # shows the last state after a failure
        browser.close()


def address(server: neo4j_servers.Server, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return a link that ``zettel explore`` prints."""
    assert server.http is not None
    command = ["explore", *arguments, "--links", "--store", server.url, "--browser", server.http]
    assert run(command) == 0
    return capsys.readouterr().out.splitlines()[1 if len(arguments) == 0 else 0].strip()


def connect(page: Any, password: str) -> None:
    """Wait until the page is connected. A busy machine may lose the stored login: then log in as a person would."""
    from playwright.sync_api import TimeoutError as PageTimeout

    connected = page.get_by_text("You are connected as user").first
    form = page.locator("input[type=password]").first
    connected.or_(form).first.wait_for()
    for _ in range(LOGINS):
        if form.is_visible():
            form.fill(password)
            page.keyboard.press("Enter")
        try:
            connected.wait_for(timeout=TIMEOUT_MS / LOGINS)
        except PageTimeout:
            page.reload()
            connected.or_(form).first.wait_for()
        else:
            return
    raise AssertionError(f"Neo4j Browser did not connect in {LOGINS} logins")


def execute(page: Any, text: str) -> None:
    """Run the query that the address put into the editor."""
    page.locator(".view-lines", has_text=text).first.wait_for()
    page.locator("[data-testid=editor-Run]").click()


def wait_until_stored(page: Any, key: str, text: str) -> None:
    """Wait until the browser has stored a text for its next page."""
    for _ in range(TIMEOUT_MS // POLL_MS):
        if text in (page.evaluate("key => localStorage.getItem(key)", key) or ""):
            return
        page.wait_for_timeout(POLL_MS)
    raise AssertionError(f"{key} was not stored")


@pytest.mark.browser
def test_links_open_a_styled_graph_with_readable_notes(
    server: neo4j_servers.Server, page: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The first address contains the style. The login form lacks only the password, and the editor preserves its text.
    page.goto(address(server, capsys))
    connect(page, server.auth[1])
    execute(page, ":style")
    page.locator("pre", has_text="node.Note").wait_for()
    wait_until_stored(page, "neo4j.grass", "node.Note")
    wait_until_stored(page, "neo4j.connections", "password")

    # The graph of a topic.
    page.goto(address(server, capsys, "topic", "topic=tystie"))
    connect(page, server.auth[1])  # a query before the connection is lost
    execute(page, "HAS_TERM")
    notes = page.locator(f"g.node:has(circle[fill='{SANDY}'])")
    notes.first.wait_for()
    captions = [" ".join(text.split()) for text in notes.all_text_contents()]
    with Memory(server.url) as memory:
        known = {note.caption for note in memory.list(limit=1000).notes}
    assert len(captions) > 5
    for caption in captions:
        start = caption.rstrip("…. ").partition(" ")[0]
        assert start, "every note has a caption"
        assert any(start in full for full in known), caption
    page.locator("[title=Fullscreen]").first.click()
    page.get_by_label("zoom-to-fit").click()
    page.wait_for_timeout(3000)  # wait for a stable layout

    # A selected note shows its content and not its vector.
    notes.first.locator("circle").first.click(force=True)
    properties = page.locator("[data-testid=vizInspector], [data-testid=viz-details-pane-title]").first
    properties.wait_for()
    page.screenshot(path=tmp_path / "neo4j-browser.png")
    text = page.locator("body").inner_text()
    assert "content" in text
    assert "caption" in text
    assert "embedding" not in text


def test_every_saved_query_runs_and_returns_rows(server: neo4j_servers.Server) -> None:
    empty_queries = {"contradictions", "failed-jobs"}
    with Memory(server.url) as memory:
        for query in explore.saved_queries():
            values = explore.values_of(query, memory.scope.key, {})
            rows = memory.cypher(query.body, **values)
            assert bool(rows) is (query.name not in empty_queries), query.name
            if query.name != "this-week":  # its rows depend on the current time
                assert len(memory.cypher(explore.with_values(query, values))) == len(rows)


def test_saved_queries_read_one_scope(server: neo4j_servers.Server) -> None:
    with Memory(server.url) as memory:
        for query in explore.saved_queries():
            assert memory.cypher(query.body, **explore.values_of(query, "another", {})) == [], query.name


def test_a_memory_answers_read_only_cypher(server: neo4j_servers.Server) -> None:
    with Memory(server.url) as memory:
        id = memory.add("The regatta begins at nine.", title="Regatta", session="harbour")
        rows = memory.cypher("MATCH (n:Note {scope: $scope, id: $id}) RETURN n.title AS title, n.content AS text",
                             scope=memory.scope.key, id=id)  # fmt: skip
        assert rows == [{"title": "Regatta", "text": "The regatta begins at nine."}]
        with pytest.raises(ZettelError, match="would write"):
            memory.cypher("MATCH (n:Note {scope: $scope}) DETACH DELETE n", scope=memory.scope.key)
        assert memory.get(id).title == "Regatta"
        memory.delete(id)


def test_the_demo_stores_its_conversation_on_the_server(
    server: neo4j_servers.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--neo4j", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["stats"]["store"], report["stats"]["notes"], len(report["questions"])) == ("neo4j", 267, 6)
    assert report["folder"] is None, "the demo uses the server of the environment and starts no other"
    assert report["browser"].keys() == {"style", "topic"}
    assert all("/browser/?dbms=neo4j://neo4j@" in link for link in report["browser"].values())
    assert (tmp_path / "zettel-demo.html").is_file()
