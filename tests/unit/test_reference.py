"""The reference pages match the code, and the hooks of the site rewrite pages as they promise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from docs.hooks import (
    command_page,
    error_page,
    http_page,
    llms_txt,
    mermaid_svg,
    own_host,
    repository_pages,
    value_page,
)
from docs.hooks.nav_patterns import _expanded
from zettel import errors, model
from zettel.cli.app import app
from zettel.server.app import openapi
from zettel.server.limits import Limits
from zettel.transcripts.formats import events_jsonl

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
ERRORS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.ZettelError)]


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_has_a_cause_and_a_cure(kind: type[errors.ZettelError]) -> None:
    cause, cure = error_page.cause_and_cure(kind)
    assert cause.endswith(".")
    assert cure.endswith(".")
    section = error_page.errors_text().split(f"## {kind.__name__}\n")[1].split("\n## ")[0]
    assert cause in section
    assert cure in section


def test_every_command_and_option_is_on_the_page() -> None:
    text = command_page.commands_text()
    root: Any = typer.main.get_command(app)
    for name, command in command_page.commands(root):
        section = re.split(r"\n## ", text.split(f"## zettel {name}\n")[1])[0]
        options = [option for parameter in command.params for option in parameter.opts if option.startswith("--")]
        assert [option for option in options if option not in section] == [], name


def test_every_route_is_on_the_page() -> None:
    text = http_page.routes_text()
    description = openapi()
    for path, operations in description["paths"].items():
        assert [verb for verb in operations if f"### {verb.upper()} {path}\n" not in text] == []
    anchors = {heading.lower().replace(" ", "-") for heading in re.findall(r"^### ([\w-]+)$", text, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= anchors


def test_marks_of_generated_parts_are_on_the_pages() -> None:
    for page, hook in (("errors", error_page), ("cli", command_page), ("http", http_page)):
        text = (REFERENCE / f"{page}.md").read_text(encoding="utf-8")
        assert hook.MARK in text
        assert hook.MARK not in hook.on_page_markdown(text, None, None, None)


def test_public_values_are_on_the_page() -> None:
    text = (REFERENCE / "values.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^::: zettel\.model\.(\w+)$", text, re.MULTILINE))
    rendered = value_page.on_page_markdown(text, None, None, None)
    assert rendered.count("| Field | Type |") + rendered.count("One of `") == len(
        re.findall("^::: ", text, re.MULTILINE)
    )
    assert [field for field in model.Note.model_fields if f"| `{field}` |" not in rendered] == []
    public = {name for name in model.__all__ if isinstance(getattr(model, name), type)}
    internal = {"CauseKind", "Checkpoint", "Frozen", "NoteIndex", "TermUse", "TimeRange", "Trait"}
    assert public - named == internal & public


def test_types_are_written_as_in_code() -> None:
    assert value_page.type_text(model.Event.model_fields["occurred_at"].annotation) == "datetime | None"
    assert value_page.type_text(model.Why.model_fields["disputed"].annotation) == "tuple[int, int] | None"
    assert value_page.type_text(model.Retention.model_fields["then"].annotation) == "'delete' | 'archive'"


def test_limits_of_a_server_are_on_the_page() -> None:
    text = (REFERENCE / "limits.md").read_text(encoding="utf-8").partition("<!-- limits of a server -->")[2]
    documented = {name: float(value.replace(",", "")) for name, value in re.findall(r"\| `(\w+)` \| ([\d,]+) \|", text)}
    assert documented == {name: value for name, value in Limits()._asdict().items() if name != "rates"}


def test_fields_of_json_lines_are_on_the_page() -> None:
    text = (REFERENCE / "file-formats.md").read_text(encoding="utf-8").partition("## Events")[2].partition("```")[0]
    documented = set(re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in re.findall(r"^\| `.*$", text, re.M))))
    assert documented == {*model.Event.model_fields, "id"}
    assert events_jsonl.name in text


# --------------------------------------------------------------------------------------------------------------- hooks


class Site:
    """The files and the configuration of a small site."""

    def __init__(self, pages: list[str], repo_url: str | None = None) -> None:
        self.pages, self.repo_url = pages, repo_url

    def get_file_from_path(self, path: str) -> Any:
        return Page(path) if path in self.pages else None


class Page:
    """A page and its file."""

    def __init__(self, path: str) -> None:
        self.file, self.src_uri, self.url = self, path, path.replace(".md", ".html")


def rewritten(text: str, page: str, repo_url: str | None = None) -> str:
    site = Site(["index.md", "tutorial.md", "how-to/page.md", "pictures/a.svg"], repo_url)
    return repository_pages.on_page_markdown(text, Page(page), site, site)


def test_links_lead_to_pages_of_the_site() -> None:
    assert rewritten("[T](docs/tutorial.md#a)", "index.md") == "[T](tutorial.md#a)"
    assert rewritten("[R](../../README.md)", "how-to/page.md") == "[R](../index.md)"
    assert rewritten("[`a` and b](../tutorial.md)", "how-to/page.md") == "[`a` and b](../tutorial.md)"
    assert rewritten('<img src="docs/pictures/a.svg">', "index.md") == '<img src="pictures/a.svg">'
    assert rewritten('<a href="docs/how-to/page.md#b">', "index.md") == '<a href="how-to/page.html#b">'


def test_links_to_other_files_lead_to_the_repository_or_become_code() -> None:
    link = "[the models](../zettel/model/__init__.py)"
    assert rewritten(link, "tutorial.md") == "`the models`"
    host = "https://git.example/zettel"
    assert rewritten(link, "tutorial.md", host) == f"[the models]({host}/blob/main/zettel/model/__init__.py)"
    assert rewritten("[examples](../examples)", "tutorial.md", host) == f"[examples]({host}/tree/main/examples)"


@pytest.mark.parametrize("text", ["`[a](b.md)`", "```\n[a](b.md)\n```", "[a](https://a.example/b.md)", "[a](#b)"])
def test_code_and_absolute_links_stay(text: str) -> None:
    assert rewritten(text, "tutorial.md") == text


def test_bars_in_code_are_not_escaped() -> None:
    assert rewritten(r"| `a \| b` | c \| d |", "tutorial.md") == r"| `a | b` | c \| d |"


def test_patterns_in_the_navigation_name_the_remaining_pages() -> None:
    nav = [{"A": [{"One": "a/one.md"}, "a/*.md"]}, {"B": ["b/*.md", {"No": "b/no.md"}]}]
    pages = ["a/one.md", "a/three.md", "a/two.md", "c.md"]
    assert _expanded(nav, pages[1:], frozenset(pages)) == [{"A": [{"One": "a/one.md"}, "a/three.md", "a/two.md"]}]


def test_resources_of_other_hosts_are_found() -> None:
    assert own_host.foreign_resources('<a href="https://a.example">') == []
    assert own_host.foreign_resources('<script src="app.js">') == []
    for html in (
        '<script async src="https://a.example/b.js">',
        '<link rel="stylesheet" href="//a.example/b.css">',
        '<link href="https://a.example/b" rel="preconnect">',
        "<style>@import url(https://a.example/b.css)</style>",
        '<img alt="" src="https://a.example/b.png">',
    ):
        assert own_host.foreign_resources(html), html


def test_diagrams_become_svg() -> None:
    page = mermaid_svg.on_page_markdown("A\n\n```mermaid\ngraph TD\n    a --> b\n```\n", None, None, None)
    assert "<svg" in page
    assert "```" not in page


def test_text_for_language_models() -> None:
    page = "# Title\n\nRead [this](a.md) when it is late. More.\n"
    assert llms_txt.opening(page) == "Read this when it is late."
    text = llms_txt.documentation("zettel.Memory")
    assert "### search(self, question: 'str'" in text
    assert "Example" in text
