"""Numbers in the documentation and their sources. ``python -m tests.page_numbers`` lists what to mark or to correct.

A marker covers the text after it, up to the next marker or blank line. In a list item or a table row, it covers the
rest of that item or row. A marker in a line before a list or a table covers all of it. It is one of

- ``<!-- numbers: bench/speed.json, zettel.server.limits -->``: measurements and pages below docs/, and modules. All
  numbers are in the measurements or pages, rounded as shown, or are constants of the modules; with the source ``mean``
  also means of the same cell of all measurements. Numbers in code and in link targets are not compared, nor are places
  such as @10. A commit or a date must be that of a measurement.
- ``<!-- numbers: a single run, WHAT, COMMIT or DATE -->``: measured without a file. The text contains "single run".
- ``<!-- numbers: published, WHERE -->``: numbers of others. The text links to them.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
LOGS = {DOCS / "experiments.md"}
"""Pages whose head states that their numbers come from single runs."""

WITHOUT_A_FILE = ("a single run", "published")

_FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_MARKER = re.compile(r"<!-- numbers: ([^>]+?) -->")
_PART = re.compile(r"^(?= *(?:[-*] |\d+\. |\|))", re.MULTILINE)
_RULER = re.compile(r"^ *\|[ :|-]+\|$")
_CONSTANT = re.compile(r"`zettel[\w.]*:[A-Z]\w*`(?: = ([\d.,]*\d))?")
_NOT_PROSE = re.compile(r"`[^`]*`|\]\([^)]*\)|\[\d+\]|<[^>]+>|https?://\S+")
_COMMIT = re.compile(r"(?<![\w.,])(?=[a-f]*\d)[0-9a-f]{7,12}\b")
_MONTHS = "January February March April May June July August September October November December".split()
_DATE = re.compile(rf"\b(\d{{1,2}}) ({'|'.join(_MONTHS)}) (\d{{4}})\b")
_NUMBER = re.compile(r"(?<![\w.@])(?<![A-Za-z]-)[-+\u2212]?\d[\d,]*(?:\.\d+)?(?!\w|\.\d)(?: ?(%|[KMG]B|m?s)(?!\w))?")
_UNITS = {
    "%": [0.01],
    "KB": [1e3, 2**10],
    "MB": [1e6, 2**20],
    "GB": [1e9, 2**30],
    "s": [1e3],
    "ms": [1e-3],
}
"""Factors by which a number may differ from that in a file because of its unit, such as a percentage of a share."""

_MEASURED = re.compile(
    r"(?<![\w.\u2013-])(?:[01]\.\d\d+(?![\w.]*\d| or later)"
    r"|\d[\d,.]*(?: ?(?:\u00b5s|ms|[KMG]B|s)\b| seconds?\b| a second\b| times as\b| % of\b))"
)
_LIMITING = re.compile(
    r"\b(?:at most|at least|up to|within|below|above|less than|more than|every|each|after|limit|default|version)"
    r"(?: [^ .;|]+){0,3} $|\b[A-Z][A-Za-z]+ $"
)


class Part(NamedTuple):
    """A piece of a page with one marker, or without any."""

    page: Path
    line: int
    text: str
    marker: str | None
    block: str
    """The paragraph, list or table."""
    section: str
    """The text from one heading to the next."""

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def files(self) -> list[Path]:
        """The measurements that the marker names."""
        return [DOCS / name for name in self._sources() if name.endswith(".json")]

    def known(self) -> list[float]:
        """Return all numbers of the sources of the marker, and of the constants in the text."""
        found = quoted(self.text)
        for name in self._sources():
            if name.endswith(".json"):
                found += measured(DOCS / name)
            elif name == "mean":
                found += means(self.files)
            elif name.endswith(".md"):
                found += [_float(text) for part in parts(DOCS / name) for text, _unit in numbers(part.prose)]
            else:
                found += constants(name)
        return found

    def _sources(self) -> list[str]:
        return self.marker.split(", ") if self.marker else []

    @property
    def prose(self) -> str:
        """The text without code, link targets and constants; of a table row, the cells beside its name."""
        return re.sub(r"^ *\|[^|]*", "", plain(self.text))


def parts(page: Path) -> Iterator[Part]:
    """Yield the paragraphs, list items and table rows of a page, divided at their markers."""
    text = _FENCED.sub(lambda block: "\n" * block[0].count("\n"), page.read_text(encoding="utf-8"))
    line = 1
    for section in re.split(r"^(?=#+ )", text, flags=re.MULTILINE):
        for block in re.split(r"(\n(?: *\n)+)", section):
            yield from _parts_of_block(page, line, block, section)
            line += block.count("\n")


def _parts_of_block(page: Path, line: int, block: str, section: str) -> Iterator[Part]:
    pieces = _PART.split(block)
    ruler = next((at for at, piece in enumerate(pieces) if _RULER.match(piece.rstrip("\n"))), None)
    rows = range(ruler + 1, len(pieces)) if ruler is not None else range(0)
    marker = None
    for at, piece in enumerate(pieces):
        own = marker
        for number, text in enumerate(_MARKER.split(piece)):
            if number % 2:
                own = text
            else:
                if text.strip(" -*|\n") and (ruler is None or at in rows):
                    yield Part(page, line, text, own, block, section)
                line += text.count("\n")
        if not _PART.match(piece):
            marker = own


def plain(text: str) -> str:
    """Return a text without code, link targets and quoted constants."""
    return _NOT_PROSE.sub(" ", _CONSTANT.sub(" ", text))


def numbers(text: str) -> Iterator[tuple[str, str]]:
    """Yield the numbers of a text, each with its unit."""
    text = _COMMIT.sub(" ", _DATE.sub(" ", text))
    yield from ((match[0].removesuffix(match[1] or "").strip(" ,"), match[1] or "") for match in _NUMBER.finditer(text))


def dates(text: str) -> list[str]:
    """Return the dates of a text as in the files: 2026-11-23."""
    return [f"{year}-{_MONTHS.index(month) + 1:02}-{int(day):02}" for day, month, year in _DATE.findall(text)]


@cache
def content(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text(encoding="utf-8")))


@cache
def measured(file: Path) -> list[float]:
    """Return all numbers of a measurement, also those in its texts."""
    names = ("ran_on", "settings", "columns", "rows", "notes", "tests")
    return list(_values({name: content(file)[name] for name in names if name in content(file)}))


@cache
def constants(module: str) -> list[float]:
    """Return the numbers among the constants of a module and the defaults of its classes."""
    found = vars(importlib.import_module(module))
    own = [each for each in found.values() if isinstance(each, type) and each.__module__ == module]
    defaults = [
        value
        for each in own
        for name, value in {**vars(each), **getattr(each, "_field_defaults", {})}.items()
        if name.islower()
    ]
    return list(_values([[value for name, value in found.items() if name.isupper()], defaults]))


def means(files: list[Path]) -> list[float]:
    """Return the means of cells with the same place in all files."""
    tables = [{(row[0], at): cell for row in content(file)["rows"] for at, cell in enumerate(row)} for file in files]
    cells = [[table.get(place) for table in tables] for place in tables[0]]
    return [
        mean(values)
        for cell in cells
        if len(values := [one for one in cell if isinstance(one, int | float)]) == len(files)
    ]


def _values(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        yield from _values([*value, *value.values()])
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _values(part)
    elif isinstance(value, str):
        yield from (_float(text) for text, _unit in numbers(value))
    elif isinstance(value, int | float):
        yield float(value)


def _float(text: str) -> float:
    return abs(float(text.replace(",", "").lstrip("+-\u2212")))


def is_among(text: str, unit: str, known: list[float]) -> bool:
    """Return whether a number is one of the known ones, rounded as it is shown."""
    step = 10.0 ** -len(text.partition(".")[2])
    factors = [1.0, *_UNITS.get(unit, [])]
    return any(abs(abs(one) - _float(text) * by) <= step * by * 0.5001 for one in known for by in factors)


def quoted(text: str) -> list[float]:
    """Return the values of the constants that a text quotes, which another test compares with the code."""
    return [_float(value) for value in _CONSTANT.findall(text) if value]


def unmarked(part: Part) -> list[str]:
    """Return the measured quantities of a part without a marker, except limits, defaults and versions."""
    if part.marker is not None:
        return []
    text = re.sub(r"\s+", " ", part.prose)
    found = [match for match in _MEASURED.finditer(text) if not _LIMITING.search(text[: match.start()])]
    limits = quoted(part.text)
    return [match[0] for match in found if not is_among(next(numbers(match[0]))[0], "", limits)]


def unsupported(part: Part) -> list[str]:
    """Return the numbers, commits and dates of a part that the sources of its marker do not contain."""
    if part.marker is None or part.marker.startswith(WITHOUT_A_FILE):
        return []
    known = part.known()
    found = [text for text, unit in numbers(part.prose) if not is_among(text, unit, known)]
    texts = [file.read_text(encoding="utf-8") for file in part.files]
    stated = [*_COMMIT.findall(part.prose), *dates(part.prose)]
    return found + [one for one in stated if not any(one in text for text in texts)]


if __name__ == "__main__":
    for page in PAGES:
        for part in parts(page):
            if unmarked(part) and page not in LOGS:
                print(f"{part.where}: not marked: {unmarked(part)}: {' '.join(part.text.split())[:100]}")
            if unsupported(part):
                print(f"{part.where}: not in {part.marker}: {unsupported(part)}")
