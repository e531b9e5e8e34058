"""``zettel bench pairs`` on three pairs of messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.described import described
from tests.integration.command import Zettel

pytestmark = pytest.mark.integration


def pair(first: str, second: str, change: str) -> dict[str, Any]:
    one, two = ({"role": "user", "content": text} for text in (first, second))
    times = {"occurred_at": "2024-01-05T10:00"}, {"occurred_at": "2024-03-05T10:00"}
    return {"first": one | times[0], "second": two | times[1], "change": change, "kind": "home", "note": "because"}


PAIRS = [
    pair("I live in Porto.", "I moved to Braga.", "yes"),
    pair("My sister lives in Porto.", "I live in Porto.", "no"),
    pair("We meet on Tuesdays.", "Could you shift whatever clashes with pottery?", "later"),
]


def test_found_changes_and_other_links_are_counted(zettel: Zettel, tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PAIRS))
    result = zettel("bench", "pairs", "own.jsonl", "--json", "-").json()
    assert result["columns"] == ["pairs", "in all", "changes", "found", "recall", "other links", "precision"]
    assert result["rows"] == [["own", 3, 2, 1, 0.5, 0, 1.0]]
    assert result["data"] == described(tmp_path / "own.jsonl")


def test_a_wrong_link_lowers_the_precision(zettel: Zettel, tmp_path: Path) -> None:
    rows = [PAIRS[0], PAIRS[0] | {"change": "no"}]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert zettel("bench", "pairs", "own.jsonl", "--json", "-").json()["rows"] == [["own", 2, 1, 1, 1.0, 1, 0.5]]


def test_damaged_files_are_named(zettel: Zettel, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "bad.jsonl").write_text(json.dumps(PAIRS[0] | {"change": "perhaps"}) + "\n")
    (tmp_path / "picture.jsonl").write_bytes(b"\x89PNG\r\n")
    for name, message in (
        ("picture.jsonl", "picture.jsonl cannot be read: 'utf-8' codec"),
        ("missing.jsonl", "missing.jsonl does not exist"),
        ("empty.jsonl", "empty.jsonl contains no pairs: add one per line"),
        ("bad.jsonl", "bad.jsonl:1: change: Input should be 'yes', 'later' or 'no'"),
    ):
        refused = zettel("bench", "pairs", name)
        assert refused.status in (1, 2)
        assert message in refused.err


def test_a_result_is_written_before_the_table(
    zettel: Zettel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "own.jsonl").write_text(json.dumps(PAIRS[0]) + "\n")
    monkeypatch.setattr("zettel.cli.benchmark_output._print_table", interrupted)
    assert zettel("bench", "pairs", "own.jsonl", "--json", "result.json").status == 130
    assert json.loads((tmp_path / "result.json").read_text())["rows"] == [["own", 1, 1, 1, 1.0, 0, 1.0]]
