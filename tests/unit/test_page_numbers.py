"""Numbers in the documentation: each comes from a file with a commit, or the text calls it a single run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import page_numbers
from tests.page_numbers import DOCS, LOGS, PAGES, ROOT, WITHOUT_A_FILE, Part, unmarked, unsupported

ALL = [part for page in PAGES for part in page_numbers.parts(page)]
COMPARED = [part for part in ALL if part.marker and not part.marker.startswith(WITHOUT_A_FILE)]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", sorted({part.page for part in COMPARED}), ids=name_of)
def test_marked_numbers_are_in_their_sources(page: Path) -> None:
    found = [
        (part.where, wrong, part.marker) for part in COMPARED if part.page == page and (wrong := unsupported(part))
    ]
    assert not found, "\n".join(f"{where}: {', '.join(wrong)} not in {marker}" for where, wrong, marker in found)


def test_files_name_the_commit_that_they_measured() -> None:
    """Older results of soak tests contain only a date. For other results without a commit, the text gives the date."""
    for file in sorted({file for part in COMPARED for file in part.files}):
        content = page_numbers.content(file)
        if content.get("commit") or content.get("finished"):
            continue
        date = content["taken_at"][:10]
        texts = {part.section for part in COMPARED if file in part.files}
        assert all(date in page_numbers.dates(text) for text in texts), (
            f"{file.name} names no commit: measure it again, or write its date {date} beside its numbers"
        )


@pytest.mark.parametrize("page", [page for page in PAGES if page not in LOGS], ids=name_of)
def test_measured_numbers_are_marked(page: Path) -> None:
    found = [(part.where, missed) for part in ALL if part.page == page and (missed := unmarked(part))]
    assert not found, "mark these numbers as in tests/page_numbers.py\n" + "\n".join(map(str, found))


def test_single_runs_are_called_so() -> None:
    for part in ALL:
        if part.marker and part.marker.startswith("a single run"):
            _kind, what, when = part.marker.split(", ", 2)
            assert what, part.where
            assert re.fullmatch(r"[0-9a-f]{7,}|\d{1,2} \w+ \d{4}", when), f"{part.where}: name a commit or a date"
            text = part.section if part.text.startswith("|") else part.block
            assert re.search(r"\bsingle runs?\b", text), f"{part.where}: write 'in a single run'"
        if part.marker and part.marker.startswith("published"):
            assert "https://" in part.block, f"{part.where}: link to the source"


def test_logs_state_that_their_numbers_are_single_runs() -> None:
    for page in LOGS:
        head = page.read_text(encoding="utf-8").partition("\n## ")[0]
        assert "single run" in head, page.name


def test_marked_files_exist_and_many_parts_are_marked() -> None:
    assert [part.where for part in COMPARED if not part.known()] == []
    assert len(COMPARED) >= 100
    assert len({part.marker for part in COMPARED}) >= 25
    assert all(file.is_relative_to(DOCS) for part in COMPARED for file in part.files)


def test_parts_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        """# A title of 0.11

Recall is 0.22. <!-- numbers: bench/a.json -->
Now 0.33 of `0.44` and [0.55](bench/0.66.json) @10,
in version 2.2.1 of all-MiniLM-L6-v2 <!-- numbers: a single run, x, 1 May 2026 --> and 0.88.

<!-- numbers: bench/b.json -->
- one of 12 ms
- <!-- numbers: bench/c.json --> two of 1,234 KB

| name 1 | head 2 |
| --- | ---: |
| row 3 | 4.5 ms <!-- numbers: bench/d.json --> \u2212678 |

```text
0.99
```
"""
    )
    found = [
        (part.line, part.marker, list(page_numbers.numbers(part.prose)), unmarked(part))
        for part in page_numbers.parts(page)
    ]
    run = "a single run, x, 1 May 2026"
    assert found == [
        (1, None, [("0.11", "")], ["0.11"]),
        (3, None, [("0.22", "")], ["0.22"]),
        (3, "bench/a.json", [("0.33", ""), ("0.55", "")], []),
        (5, run, [("0.88", "")], []),
        (8, "bench/b.json", [("12", "ms")], []),
        (9, "bench/c.json", [("1,234", "KB")], []),
        (13, None, [("4.5", "ms")], ["4.5 ms"]),
        (13, "bench/d.json", [("\u2212678", "")], []),
    ]


@pytest.mark.parametrize(
    ("text", "unit", "known", "among"),
    [
        ("0.79", "", [0.7899], True),
        ("0.80", "", [0.7899], False),
        ("1,900", "", [1900.4], True),
        ("-0.02", "", [0.0208], True),
        ("47", "%", [0.4712], True),
        ("1.9", "KB", [1934], True),
        ("1.9", "KB", [2034], False),
        ("1.0", "s", [1045], True),
    ],
)
def test_numbers_are_compared_as_rounded(text: str, unit: str, known: list[float], among: bool) -> None:
    assert page_numbers.is_among(text, unit, known) is among


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("recall is 0.79 and 1.00", ["0.79", "1.00"]),
        ("a search takes 12 ms", ["12 ms"]),
        ("1,000 notes a second", []),
        ("it adds 1,000 a second, 3 times as many", ["1,000 a second", "3 times as"]),
        ("waits at most 30 seconds, above 0.35, for Python 3.10 and Codex 0.171", []),
        ("install 0.19 or later", []),
        ("`zettel.a:B` = 0.35 is 0.35", []),
    ],
)
def test_measured_quantities_are_found(text: str, found: list[str]) -> None:
    assert unmarked(Part(DOCS / "page.md", 1, text, None, text, text)) == found
