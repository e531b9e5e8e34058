"""The docs are true: every block of code runs, what a page shows is what comes out, links and names resolve.

Blocks of one page run in order, in one folder and one namespace. In Python, ``#> `` lines are the output of the block
above them; in a ``console`` block, what follows a ``$ `` line is. Numbers, ids and white space are not compared.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import zettel.cli.app as cli
from tests import neo4j_servers
from tests.model_server import ModelServer
from tests.scripted_model import reply
from zettel import Memory
from zettel.query import Query
from zettel.scoring.fusion import FEATURES

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).parents[2]
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
EXECUTED = {"python", "console", "bash"}
MAY_NOT_RUN = 9
"""Blocks of all pages that need a network or another machine, at most."""

_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+?) -->\n+)?^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_SAID = re.compile(r"^ *#> ?(.*)$", re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
_CONSTANT = re.compile(r"`(?P<module>zettel[\w.]*):(?P<name>[A-Z][A-Z0-9_]+)` = (?P<value>[\d.,]*\d)")


class Block(NamedTuple):
    """A fenced block: the line its body starts at, and why it is not run, if it is not."""

    language: str
    body: str
    line: int
    reason: str | None


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("body")) + 1
        found.append(Block(match["language"], match["body"], line, match["reason"]))
    return [block for block in found if block.language in EXECUTED]


def name_of(page: Path) -> str:
    return page.relative_to(CHECKOUT).as_posix()


def without_numbers(text: str) -> list[str]:
    """What is compared: lines without ids, numbers, signs of a cut and white space at their ends and between words."""
    text = re.sub(r"\b([nejs])_[0-9a-f]{4,}…?", r"\1_ID", text)
    text = re.sub(r"\d[\d.,:]*", "#", text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


# ----------------------------------------------------------------------------------------------------------------- run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, with ``zettel`` on the path, even where it is not installed."""
    command = tmp_path / "bin" / "zettel"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m zettel.cli "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("COLUMNS", "160")
    for name in ("ZETTEL_STORE", "ZETTEL_EMBEDDER", "ZETTEL_LLM", "ZETTEL_BUDGET"):
        monkeypatch.delenv(name, raising=False)
    place = tmp_path / "page"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(reply) as server:
        yield server


def of_a_server(page: Path) -> bool:
    return "NEO4J_URI" in page.read_text(encoding="utf-8")


def name_with_server(page: Path) -> str:
    return f"{name_of(page)}-{neo4j_servers.NEWEST}" if of_a_server(page) else name_of(page)


@pytest.mark.timeout(300)  # some pages start a dozen processes
@pytest.mark.parametrize("page", PAGES, ids=name_with_server)
def test_blocks_run_and_show_what_comes_out(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if of_a_server(page):
        server = neo4j_servers.empty(neo4j_servers.NEWEST)
        for name, value in zip(("URI", "USERNAME", "PASSWORD"), (server.url, *server.auth), strict=True):
            monkeypatch.setenv(f"NEO4J_{name}", value)
    if "llm" in page.read_text(encoding="utf-8"):  # a model by rule stands where LiteLLM looks for OpenAI's
        model = request.getfixturevalue("model")
        monkeypatch.setenv("OPENAI_API_BASE", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
    names: dict[str, Any] = {"__name__": f"docs.{page.stem}"}
    left_out = 0
    for block in blocks(page):
        where = f"{name_of(page)}:{block.line}"
        if block.reason is not None:
            left_out += 1
            print(f"{where}: not run: {block.reason}")
        elif block.language == "python":
            run_python(block, where, names)
        else:
            for command, shown in commands(block):
                run_command(command, shown, where, folder.parent / "state")
    for value in names.values():
        if isinstance(value, Memory):
            value.close()
    print(f"{name_of(page)}: {len(blocks(page)) - left_out} blocks run, {left_out} not")


def run_python(block: Block, where: str, names: dict[str, Any]) -> None:
    padded = "\n" * (block.line - 1) + block.body  # so that a traceback tells the page's own lines
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(padded, where, "exec"), names)
    shown = "\n".join(_SAID.findall(block.body))
    if shown:
        assert without_numbers(out.getvalue()) == without_numbers(shown), f"{where} prints\n{out.getvalue()}"


def commands(block: Block) -> Iterator[tuple[str, str | None]]:
    """The command lines of a block, each with the output that the page shows for it, if any."""
    if block.language == "bash":
        yield block.body, None
        return
    for piece in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        lines = piece.splitlines()
        end = next(i for i, line in enumerate(lines) if not line.endswith("\\"))
        yield "\n".join(lines[: end + 1]), "\n".join(lines[end + 1 :]).strip() or None


def run_command(command: str, shown: str | None, where: str, state: Path) -> None:
    """Run it in bash; variables that a command of the page has set are there for those after it."""
    script = f"set -eu -o pipefail\n[ -f {state} ] && . {state}\nset -a\n{command}\nset +x; export -p > {state}\n"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, f"{where}: {command}\n{done.stdout}{done.stderr}"
    if shown is not None:
        assert without_numbers(done.stdout) == without_numbers(shown), f"{where}: {command}\n{done.stdout}"


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
        assert command in {*cli.COMMANDS, "bench", "embedder", "neo4j", "scorer"}, f"{name_of(page)}: zettel {command}"
    for method in re.findall(r"`(?:memory|Memory)\.(\w+)", prose(page)):
        assert hasattr(Memory, method), f"{name_of(page)}: memory.{method}"


def quoted() -> list[tuple[str, str, str]]:
    found = [match for page in PAGES for match in _CONSTANT.finditer(prose(page))]
    return [(match["module"], match["name"], match["value"]) for match in found]


@pytest.mark.parametrize(("module", "name", "value"), quoted())
def test_constants_are_quoted_as_they_are(module: str, name: str, value: str) -> None:
    assert getattr(importlib.import_module(module), name) == float(value.replace(",", ""))


def test_search_page_tells_every_feature_and_its_weight() -> None:
    page = (CHECKOUT / "docs" / "search.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(\w+)` \| (-?[\d.]+) \|", page, re.MULTILINE)
    assert {name: float(weight) for name, weight in told} == {feature.name: feature.weight for feature in FEATURES}


def test_search_page_tells_how_much_is_asked_for() -> None:
    page = (CHECKOUT / "docs" / "search.md").read_text(encoding="utf-8")
    defaults = {field.name: field.default for field in fields(Query)}
    assert f"up to {defaults['pool']} allowed notes" in page
    assert defaults["window"] == 3
    assert "up to three places away" in page
    assert len(quoted()) >= 10
