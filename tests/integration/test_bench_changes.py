"""The benchmark of changed facts, on one small scope."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.described import described
from tests.integration.command import Zettel
from zettel.bench.changes import NOTES, QUESTIONS, REPLACES, place_of
from zettel.model import Hit

pytestmark = pytest.mark.integration

EVENTS = [
    ("a", "2024-01-05T10:00:00Z", "Tilda keeps her boat in Ravn harbour."),
    ("b", "2024-01-09T10:00:00Z", "Ferdinand bakes bread with walnuts."),
    ("c", "2024-03-01T10:00:00Z", "Tilda keeps her boat in Solby harbour."),
]
QUESTION = {
    "scope": "harbour", "question": "In which harbour does Tilda keep her boat?", "now": "c", "before": "a",
    "as_of": "2024-02-01T00:00:00Z", "kind": "home", "marked": False,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "changes"
    path.mkdir()
    rows = (
        {"id": id, "speaker": "Ann", "session": f"s-{id}", "occurred_at": when, "content": text}
        for id, when, text in EVENTS
    )
    (path / "harbour.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (path / QUESTIONS).write_text(json.dumps(QUESTION) + "\n")
    return path


def test_each_kind_of_change_has_a_row(zettel: Zettel, folder: Path) -> None:
    result = zettel("bench", "changes", folder.name, "--json", "-").json()
    rows: dict[str, dict[str, Any]] = {row[0]: dict(zip(result["columns"], row, strict=True)) for row in result["rows"]}
    assert list(rows) == ["all", "home", "new implies it"]
    every = rows["all"]
    assert every["asked"] == 1
    assert every["as_of: before first"] == 1.0, "the new one was not yet true"
    assert every["today in 10"] == every["as_of: before in 10"] == 1.0
    assert every["today: neither first"] == 0.0
    assert every["today first"] + every["today: before above now"] == 1.0


def test_recorded_model_answers_decide_what_is_superseded(zettel: Zettel, folder: Path) -> None:
    model = folder / "model"
    model.mkdir()
    facts = {"a": "Tilda keeps her boat in Ravn.", "b": "", "c": "Tilda keeps her boat in Solby."}
    notes = (
        {"id": id, "context": f"Ann says: {text}", "keywords": ["harbour"], "tags": [],
         "facts": list(filter(None, [facts[id]]))}
        for id, _, text in EVENTS
    )  # fmt: skip
    (model / NOTES).write_text("".join(json.dumps(note) + "\n" for note in notes))
    (model / REPLACES).write_text(json.dumps({"scope": "harbour", "newer": facts["c"], "older": facts["a"]}) + "\n")
    result = zettel("bench", "changes", folder.name, "--model", f"{folder.name}/model", "--json", "-").json()
    row = dict(zip(result["columns"], result["rows"][0], strict=True))
    assert (row["today first"], row["as_of: before first"]) == (1.0, 1.0)
    assert result["data"] == described(folder / QUESTIONS, folder / "harbour.jsonl", model / NOTES, model / REPLACES)
    assert "100.0% of the replaced facts were offered" in " ".join(result["notes"])
    (model / REPLACES).write_text('{"scope": "harbour"}\n')
    failed = zettel("bench", "changes", folder.name, "--model", f"{folder.name}/model")
    assert (failed.status, failed.err.count("\n")) == (1, 1)
    assert REPLACES in failed.err


def test_a_hit_based_on_both_statements_counts_for_neither() -> None:
    class Note:
        def __init__(self, *events: str) -> None:
            self.event_ids = events

    hits = [Hit.model_construct(note=Note(*events)) for events in (("e1", "e2"), ("e2",), ("e1",))]
    keys = {"e1": "old", "e2": "new"}
    assert place_of(hits, keys, "new", "old") == 1
    assert place_of(hits, keys, "old", "new") == 2
    assert place_of(hits[:1], keys, "new", "old") is None


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"now": "z"}, 2, "'z'"),
        ({"as_of": "soon"}, 1, "as_of"),
        ({"scope": "elsewhere"}, 2, "elsewhere.jsonl"),
    ],
)
def test_invalid_questions_are_one_line_errors(
    zettel: Zettel, folder: Path, change: dict[str, str], status: int, message: str
) -> None:
    (folder / QUESTIONS).write_text(json.dumps(QUESTION | change) + "\n")
    result = zettel("bench", "changes", folder.name)
    assert (result.status, result.out, result.err.count("\n")) == (status, "", 1)
    assert message in result.err


def test_a_folder_without_questions_is_an_error(zettel: Zettel, folder: Path) -> None:
    (folder / QUESTIONS).unlink()
    result = zettel("bench", "changes", folder.name)
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert QUESTIONS in result.err
