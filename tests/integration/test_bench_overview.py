"""The benchmark of abstract questions, on one small chat."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.described import described
from tests.integration.command import Zettel
from zettel.bench.overview import read

pytestmark = pytest.mark.integration

DATA = Path(__file__).parents[1] / "data" / "topics"
KILN = ("The kiln reached its heat.", "Good, let the kiln cool.", "Ida mended the kiln's door.", "The kiln is fine.")
BOAT = ("The ferry's rudder is bent.", "Order a new rudder.", "The ferry waits for the rudder.", "A month, usually.")
LABELS = {
    "of": "chat.json", "part": "fit", "borders": ["S1:5"], "topics": {"kiln": "S1:1-4", "ferry": "S1:5-8"},
    "questions": [{"question": "What do I know about the kiln?", "topics": ["kiln"]},
                  {"question": "What are the main topics?", "topics": ["kiln", "ferry"]},
                  {"question": "Recap our conversation of 3 March 2024.", "session": "1"}],
}  # fmt: skip


def write(folder: Path, **changes: object) -> None:
    messages = [
        {"id": f"S1:{place}", "role": ("assistant", "user")[place % 2], "session": 1, "when": "2024-03-03T10:00:00",
         "content": text}
        for place, text in enumerate((*KILN, *BOAT), 1)
    ]  # fmt: skip
    chat = {"chat": "yard", "messages": messages, "questions": []}
    folder.mkdir()
    (folder / "labels.json").write_text(json.dumps(LABELS | changes), encoding="utf-8")
    (folder.parent / "chat.json").write_text(json.dumps(chat), encoding="utf-8")


def test_each_part_has_a_row(zettel: Zettel, tmp_path: Path) -> None:
    write(tmp_path / "labels", of="../chat.json")
    result = zettel("bench", "overview", "labels", "--json", "-").json()
    (row,) = (dict(zip(result["columns"], row, strict=True)) for row in result["rows"])
    assert (row["part"], row["questions"], row["insight first"], row["covered"]) == ("fit", 3, 1.0, 1.0)
    assert row["F1 chats"] == 1.0
    assert row["F1 talks"] is None
    assert result["data"] == described(tmp_path / "labels" / "labels.json", tmp_path / "chat.json")


def test_unknown_topics_are_refused(zettel: Zettel, tmp_path: Path) -> None:
    write(tmp_path / "labels", of="../chat.json", questions=[{"question": "Recap it.", "topics": ["moon"]}])
    failed = zettel("bench", "overview", "labels")
    assert failed.status == 1
    assert "unknown message or topic 'moon'" in failed.err


def test_our_labels_are_complete() -> None:
    labels = [labels for labels, _ in read(DATA).values()]
    assert sum(len(each.questions) for each in labels if each.part == "fit") == 39
    assert sum(len(each.questions) for each in labels if each.part == "test") == 30
