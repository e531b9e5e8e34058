"""``zettel evolve`` and its benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.command import Zettel

pytestmark = pytest.mark.integration

TURNS = [
    "The heron came back to the pond behind the old mill.",
    "I mended the oak boat on Friday and it floats again.",
    "My sister Nell keeps nine hives of bees near the mill.",
    "Nell sells the honey of her bees in jars at the market.",
]


def test_changes_are_reported_once(zettel: Zettel) -> None:
    for place, text in enumerate([*TURNS, f"Well, {TURNS[0]}"]):
        assert zettel("add", text, "--speaker", "Ann", "--id", str(place), "--at", "2024-03-03").status == 0
    result = zettel("evolve")
    assert result.status == 0
    assert "merged" in result.out
    assert zettel("evolve", "--json").json() == {"revised": 0, "merged": 0, "insights": 0, "archived": 0}
    assert zettel("evolve").out == "nothing to change\n"
    hits = zettel("search", TURNS[0], "--json").json()
    assert [hit["note"]["kind"] for hit in hits] == ["episodic"] * len(TURNS)
    assert zettel("search", TURNS[0], "--kind", "insight", "--json").json()


def test_a_missing_store_is_an_error(zettel: Zettel) -> None:
    result = zettel("evolve")
    assert result.status == 1
    assert "no store" in result.err


def test_the_benchmark_reports_merges_and_recall_before_and_after(zettel: Zettel, tmp_path: Path) -> None:
    talk = {
        "sample_id": "mill",
        "conversation": {
            "session_1_date_time": "7:05 pm on 3 March, 2024",
            "session_1": [
                {"speaker": "Ann", "text": text, "dia_id": f"D1:{nth}"} for nth, text in enumerate(TURNS, start=1)
            ],
        },
        "qa": [{"question": "Who keeps bees?", "evidence": ["D1:3"], "category": 4}],
    }
    (tmp_path / "talk.json").write_text(json.dumps([talk]))
    result = zettel("bench", "evolve", "talk.json", "-k", "3", "--json", "-").json()
    rows = [dict(zip(result["columns"], row, strict=True)) for row in result["rows"]]
    assert [row["conversation"] for row in rows] == ["mill", "all"]
    for row in rows:
        assert row["planted copies"] == row["merged of them"] == len(TURNS)
        assert row["merged beside"] == 0
        assert row["recall @3 before"] == row["recall @3 after"] == 1.0
