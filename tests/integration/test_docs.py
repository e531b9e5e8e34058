"""The docs are true: every block of code runs, what a page shows is what comes out, links and names resolve.

How blocks of code are run tells tests/pages.py; the pages of agent frameworks run where these are (tests/frameworks).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import zettel.cli.app as cli
from tests import neo4j_servers
from tests.frameworks.known import FRAMEWORKS
from tests.model_server import ModelServer
from tests.pages import CHECKOUT, PAGES, blocks, name_of, run_page, stand_in
from tests.scripted_model import reply
from tests.talk_server import TalkServer
from zettel import Memory
from zettel.ports.query import Query

pytestmark = pytest.mark.integration

FOR_FRAMEWORKS = {framework.page for framework in FRAMEWORKS}
MAY_NOT_RUN = 9
"""Blocks of all pages that need a network or another machine, at most."""

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
_CONSTANT = re.compile(r"`(?P<module>zettel[\w.]*):(?P<name>[A-Z][A-Z0-9_]+)` = (?P<value>[\d.,]*\d)")


# ----------------------------------------------------------------------------------------------------------------- run


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(reply) as server:
        yield server


@pytest.fixture
def talks() -> Iterator[TalkServer]:
    with TalkServer() as server:
        yield server


def of_a_server(page: Path) -> bool:
    return "NEO4J_URI" in page.read_text(encoding="utf-8")


def param(page: Path) -> Any:
    marks = [pytest.mark.neo4j(neo4j_servers.NEWEST)] if of_a_server(page) else []
    return pytest.param(page, id=name_of(page), marks=marks)


@pytest.mark.timeout(300)  # some pages start a dozen processes
@pytest.mark.parametrize("page", [param(page) for page in PAGES if page not in FOR_FRAMEWORKS])
def test_blocks_run_and_show_what_comes_out(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    stand_in(tmp_path, monkeypatch)
    if of_a_server(page):
        server = neo4j_servers.empty(neo4j_servers.NEWEST)
        for name, value in zip(("URI", "USERNAME", "PASSWORD"), (server.url, *server.auth), strict=True):
            monkeypatch.setenv(f"NEO4J_{name}", value)
    if "llm" in page.read_text(encoding="utf-8"):  # a model by rule stands where LiteLLM looks for OpenAI's
        model = request.getfixturevalue("model")
        monkeypatch.setenv("OPENAI_API_BASE", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
    if "OpenAI()" in page.read_text(encoding="utf-8"):  # one that talks
        talks = request.getfixturevalue("talks")
        monkeypatch.setenv("OPENAI_API_BASE", talks.url)
        monkeypatch.setenv("OPENAI_BASE_URL", talks.url)
    run_page(page, tmp_path / "state")


def test_few_blocks_are_not_run(record_property: Callable[[str, object], None]) -> None:
    left_out = [(name_of(page), block) for page in PAGES for block in blocks(page) if block.reason is not None]
    reasons = "; ".join(sorted({f"{name}: {block.reason}" for name, block in left_out}))
    record_property("left_out", f"{len(left_out)} blocks of the docs are not run ({reasons})")  # told at the end
    assert len(left_out) <= MAY_NOT_RUN
    ran = {block.language for page in PAGES for block in blocks(page) if block.reason is None}
    assert {"python", "console"} <= ran


# ------------------------------------------------------------------------------------------------------------- resolve


def prose(page: Path) -> str:
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ +(.+?) *$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for pair in _LINK.findall(prose(page)):
        link = pair[0] or pair[1]
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name_of(page)}: {link}"
        assert target.is_relative_to(CHECKOUT), f"{name_of(page)}: {link} leaves the repository"
        if anchor:
            assert anchor in anchors(target), f"{name_of(page)}: {link}: no such heading"


def test_every_page_is_in_the_index() -> None:
    index = CHECKOUT / "docs" / "README.md"
    linked = {(index.parent / pair[0].partition("#")[0]).resolve() for pair in _LINK.findall(prose(index))}
    assert set(PAGES[1:]) - {index} <= linked


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_and_methods_named_in_prose_exist(page: Path) -> None:
    for command in re.findall(r"`zettel ([a-z]\w*)", prose(page)):
        known = {*cli.COMMANDS, "bench", "embedder", "keys", "neo4j", "scorer"}
        assert command in known, f"{name_of(page)}: zettel {command}"
    for method in re.findall(r"`(?:memory|Memory)\.(\w+)", prose(page)):
        assert hasattr(Memory, method), f"{name_of(page)}: memory.{method}"


def quoted() -> list[tuple[str, str, str]]:
    found = [match for page in PAGES for match in _CONSTANT.finditer(prose(page))]
    return [(match["module"], match["name"], match["value"]) for match in found]


@pytest.mark.parametrize(("module", "name", "value"), quoted())
def test_constants_are_quoted_as_they_are(module: str, name: str, value: str) -> None:
    assert getattr(importlib.import_module(module), name) == float(value.replace(",", ""))


def test_search_page_tells_how_much_is_asked_for() -> None:
    page = (CHECKOUT / "docs" / "search.md").read_text(encoding="utf-8")
    defaults = {field.name: field.default for field in fields(Query)}
    assert f"up to {defaults['pool']} allowed notes" in page
    assert defaults["window"] == 3
    assert "up to three places away" in page
    assert len(quoted()) >= 10
