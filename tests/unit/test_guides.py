"""The guides cover what they promise: every error class, the layouts of stores, the data of a citation."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
import yaml

from zettel import errors
from zettel.core import memory_file
from zettel.version import VERSION

CHECKOUT = Path(__file__).parents[2]
DOCS = CHECKOUT / "docs"
ERRORS = [name for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.ZettelError)]
TEMPLATES = sorted((CHECKOUT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


@pytest.mark.parametrize("name", [name for name in ERRORS if name != "ZettelError"])
def test_troubleshooting_has_a_row_for_every_error(name: str) -> None:
    """A row begins with the class, and has a cause and a remedy."""
    rows = re.findall(rf"^\| `{name}` \| (.+?) \| (.+?) \|$", (DOCS / "troubleshooting.md").read_text(), re.MULTILINE)
    assert len(rows) == 1


def test_troubleshooting_names_no_other_error() -> None:
    first_cells = re.findall(r"^\| `(\w+)` \|", (DOCS / "troubleshooting.md").read_text(), re.MULTILINE)
    assert set(first_cells) <= set(ERRORS)


def test_versions_state_the_current_layouts() -> None:
    page = (DOCS / "versioning.md").read_text()
    files = len(list((CHECKOUT / "graph" / "embedded" / "migrations").glob("*.sql")))
    databases = len(list((CHECKOUT / "cypher" / "schema").glob("[0-9]*.cypher")))
    assert f"| unreleased | {files} (`graph/embedded/migrations`) | {databases} (`cypher/schema`) |" in page
    assert f"memory file (`zettel`), format version {memory_file.VERSION} " in page


def test_glossary_is_sorted_and_has_no_word_twice() -> None:
    words = re.findall(r"^\| ([^|]+?) \| ", (DOCS / "glossary.md").read_text(), re.MULTILINE)[1:]
    keys = [word.strip("`").casefold().replace("_", "") for word in words if word != "---"]
    assert keys == sorted(set(keys))


def test_citation_names_the_released_version() -> None:
    citation = yaml.safe_load((CHECKOUT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= citation.keys()
    assert citation["version"] == VERSION
    changelog = (CHECKOUT / "CHANGELOG.md").read_text()
    assert f"## [{citation['version']}] - {citation['date-released']}" in changelog


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_issue_templates_are_complete(path: Path) -> None:
    template = yaml.safe_load(path.read_text())
    if path.stem == "config":
        assert template.keys() == {"blank_issues_enabled"}
        return
    assert {"name", "description", "body"} <= template.keys()
    inputs = [part for part in template["body"] if part["type"] != "markdown"]
    assert all(part["attributes"]["label"] for part in inputs)
    assert len({part["id"] for part in inputs}) == len(inputs) >= 2


def test_there_are_issue_templates() -> None:
    assert {path.stem for path in TEMPLATES} == {"answer", "bug", "config", "idea"}
