"""``zettel bench llm`` on a small conversation with recorded notes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.described import described
from tests.integration.command import Zettel
from tests.integration.test_bench import CHECKOUT, TALK
from zettel.bench import llm

pytestmark = pytest.mark.integration

NOTES = [
    {
        "id": "D1:1",
        "context": "On 3 March 2024 Ann saw the heron at the pond.",
        "keywords": ["heron"],
        "tags": ["birds"],
    },
    {"id": "D1:2", "context": "Ben mended his oak boat on 1 March 2024.", "keywords": ["boat"], "tags": ["boats"]},
    {"id": "D1:3", "context": "Ann's sister Nell keeps bees.", "keywords": ["bees", "Nell"], "tags": ["animals"]},
]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    for name, value in {"ADDS": 4, "WARM_UPS": 2, "PACE": 0.05, "SLOW": 0.2}.items():
        monkeypatch.setattr(llm, name, value)
    (tmp_path / "talk.json").write_text(json.dumps(TALK))
    (tmp_path / "notes.jsonl").write_text("\n".join(map(json.dumps, NOTES)))
    return ("bench", "llm", "talk.json", "--notes", "notes.jsonl")


def test_the_table_contains_cost_recall_and_add_latency(
    zettel: Zettel, files: tuple[str, ...], tmp_path: Path
) -> None:
    result: dict[str, Any] = zettel(*files, "--conversation", "pond", "--json", "-").json()
    assert result["columns"] == ["measured", "no model", "default", "lean", "damaged", "unit"]
    rows = {row[0]: row[1:-1] for row in result["rows"]}
    assert rows["recall @10"] == [1.0, 1.0, 1.0, 1.0]
    assert rows["notes with the model's fields"][:3] == [None, 1.0, 1.0]
    assert rows["filler"] == [0.0] * 4
    without_model, default, lean, _ = rows["calls"]
    assert without_model is None
    assert 0.33 < lean <= default <= 1
    assert 0 < rows["tokens"][2] < rows["tokens"][1]
    assert rows["- of answers"][0] is None
    prices = rows["1,000 turns, openai/gpt-4o-mini"]
    assert prices[0] is None
    assert 0 < prices[2] < prices[1] < 10, "USD"
    assert 0 < rows["- of answers"][1] < rows["- of answers"][2] < 1, "lean sends less for as long an answer"
    assert all(value > 0 for name in ("add p50", "add p95") for value in rows[name][:2])
    assert rows["add p95 ÷ without"][0] == 1.0
    assert result["ran_on"]["conversation"] == "pond"
    assert result["data"] == described(tmp_path / "talk.json", tmp_path / "notes.jsonl")
    assert result["machine"]["packages"]["litellm"]


def test_notes_of_another_conversation_are_refused(zettel: Zettel, files: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text(json.dumps(NOTES[0] | {"id": "D9:9"}))
    result = zettel(*files)
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert "no note of this conversation" in result.err


def test_several_conversations_require_the_conversation_option(
    zettel: Zettel, files: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "talk.json").write_text(json.dumps([*TALK, TALK[0] | {"sample_id": "lake"}]))
    result = zettel(*files)
    assert (result.status, result.out) == (2, "")
    assert "--conversation" in result.err
