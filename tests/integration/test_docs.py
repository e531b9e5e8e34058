"""The docs are correct: code blocks run and print the output shown, links and names resolve.

tests/pages.py runs the blocks; tests/frameworks runs the pages of agent frameworks, where these are installed.
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
from tests.pages import CHECKOUT, PAGES, blocks, enter_folder, name_of, run_page
from tests.scripted_model import reply
from tests.talk_server import TalkServer
from zettel import Memory
from zettel.ports.query import Query

pytestmark = pytest.mark.integration

FOR_FRAMEWORKS = {framework.page for framework in FRAMEWORKS}
LINKING = [*PAGES, *sorted(set(CHECKOUT.glob("*.md")) - set(PAGES)), CHECKOUT / "examples" / "README.md"]
"""Pages whose links are checked: those with blocks, and the texts beside them."""
MAY_NOT_RUN = 10
"""Largest number of blocks that do not run, because they need a network or another machine."""

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
_CONSTANT = re.compile(r"`(?P<module>zettel[\w.]*):(?P<name>[A-Z][A-Z0-9_]+)` = (?P<value>[\d.,]*\d)")


# ----------------------------------------------------------------------------------------------------------------- run


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(reply) as server:
        yield server


@pytest.fixture
def talk_server() -> Iterator[TalkServer]:
    with TalkServer() as server:
        yield server


def needs_server(page: Path) -> bool:
    return "NEO4J_URI" in page.read_text(encoding="utf-8")


def param(page: Path) -> Any:
    marks = [pytest.mark.neo4j(neo4j_servers.NEWEST)] if needs_server(page) else []
    return pytest.param(page, id=name_of(page), marks=marks)


@pytest.mark.timeout(300)  # some pages start a dozen processes
@pytest.mark.parametrize("page", [param(page) for page in PAGES if page not in FOR_FRAMEWORKS])
def test_blocks_run_and_print_the_output_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    enter_folder(tmp_path, monkeypatch)
    if needs_server(page):
        server = neo4j_servers.empty(neo4j_servers.NEWEST)
        for name, value in zip(("URI", "USERNAME", "PASSWORD"), (server.url, *server.auth), strict=True):
            monkeypatch.setenv(f"NEO4J_{name}", value)
    if "llm" in page.read_text(encoding="utf-8"):  # LiteLLM calls a rule-based model instead of OpenAI
        model = request.getfixturevalue("model")
        monkeypatch.setenv("OPENAI_API_BASE", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
    if re.search(r"OpenAI\(\)|OPENAI_BASE_URL", page.read_text(encoding="utf-8")):
        # The OpenAI client calls a rule-based chat model.
        talk_server = request.getfixturevalue("talk_server")
        monkeypatch.setenv("OPENAI_API_BASE", talk_server.url)
        monkeypatch.setenv("OPENAI_BASE_URL", talk_server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
    run_page(page, tmp_path / "state")


def test_few_blocks_are_not_run(record_property: Callable[[str, object], None]) -> None:
    not_run = [(name_of(page), block) for page in PAGES for block in blocks(page) if block.reason is not None]
    reasons = "; ".join(sorted({f"{name}: {block.reason}" for name, block in not_run}))
    record_property("left_out", f"{len(not_run)} blocks of the docs are not run ({reasons})")
    assert len(not_run) <= MAY_NOT_RUN
    languages = {block.language for page in PAGES for block in blocks(page) if block.reason is None}
    assert {"python", "console"} <= languages


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_name_their_language(page: Path) -> None:
    """A block without a language would not run, and nobody would notice."""
    fences = re.findall(r"^```(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert all(fences[::2]), f"{name_of(page)}: mark a block that is not run as text"


# ------------------------------------------------------------------------------------------------------------- resolve


def prose(page: Path) -> str:
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ +(.+?) *$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKING, ids=name_of)
def test_links_have_a_target(page: Path) -> None:
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
        known = {*cli.COMMANDS, "audit", "bench", "embedder", "keys", "neo4j", "scorer", "webhooks"}
        assert command in known, f"{name_of(page)}: zettel {command}"
    for method in re.findall(r"`(?:memory|Memory)\.(\w+)", prose(page)):
        assert hasattr(Memory, method), f"{name_of(page)}: memory.{method}"


def quoted_constants() -> list[tuple[str, str, str]]:
    matches = [match for page in PAGES for match in _CONSTANT.finditer(prose(page))]
    return [(match["module"], match["name"], match["value"]) for match in matches]


@pytest.mark.parametrize(("module", "name", "value"), quoted_constants())
def test_quoted_constants_have_the_current_value(module: str, name: str, value: str) -> None:
    assert getattr(importlib.import_module(module), name) == float(value.replace(",", ""))


def test_search_page_states_the_number_of_candidates() -> None:
    page = (CHECKOUT / "docs" / "search.md").read_text(encoding="utf-8")
    defaults = {field.name: field.default for field in fields(Query)}
    assert f"add up to {defaults['pool']} notes each" in page
    assert defaults["window"] == 3
    assert "at most three places away" in page
    assert len(quoted_constants()) >= 10
