"""Numbers in the documentation: each table that names a measurement shows what its file contains."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
_TABLE = re.compile(r"<!-- numbers: (?P<files>[^>]+?) -->\n(?P<rows>(?:\|.*\n)+)(?P<after>\n(?:.*\n){0,2})")
_NUMBER = re.compile(r"(?<![\w.])[-+\u2212]?\d[\d,]*(?:\.\d+)?")


def _tables() -> Iterator[Any]:
    for page in [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]:
        for match in _TABLE.finditer(page.read_text()):
            name = f"{page.relative_to(DOCS.parent)}: {match['files']}"
            yield pytest.param([DOCS / file for file in match["files"].split(", ")], match["rows"], id=name)


def _numbers(value: Any) -> Iterator[float]:
    """Yield all numbers of a measurement, also those in its texts."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)
    elif isinstance(value, str):
        yield from (float(text.replace(",", "").replace("\u2212", "-")) for text in _NUMBER.findall(value))
    elif value is not None:
        yield float(value)


def _shown(rows: str) -> Iterator[tuple[str, str]]:
    """Yield the numbers in the cells of a table beside its names, each with its row."""
    for row in rows.splitlines()[2:]:
        for cell in row.strip("| ").split("|")[1:]:
            yield from ((text, row) for text in _NUMBER.findall(cell))


@pytest.mark.parametrize(("files", "rows"), list(_tables()))
def test_tables_show_what_their_files_contain(files: list[Path], rows: str) -> None:
    measured: list[float] = []
    for file in files:
        content = json.loads(file.read_text())
        assert content.get("commit"), f"{file.name} does not name the commit that it measured: run it again"
        measured += _numbers(
            {name: content[name] for name in ("ran_on", "settings", "rows", "notes") if name in content}
        )
    wrong = [(text, row) for text, row in _shown(rows) if not _is_among(text, measured)]
    assert wrong == []


def _is_among(text: str, measured: list[float]) -> bool:
    """Return whether a number is one of the measured ones, rounded as it is shown."""
    digits = text.replace(",", "").replace("\u2212", "-")
    step = 10.0 ** -len(digits.partition(".")[2])
    return any(abs(abs(number) - abs(float(digits))) <= step * 0.5001 for number in measured)


def test_there_are_tables() -> None:
    assert len(list(_tables())) >= 10
