"""The benchmark of profiles, on one small chat."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.described import described
from tests.integration.command import Zettel

pytestmark = pytest.mark.integration

MESSAGES = ("I live in Ravn.", "Thank you, noted.", "I am a nurse.", "Good to know.")
SHEET = {"current": [{"kind": "home", "fact": "lives in Ravn", "any_of": ["Ravn"], "evidence": ["0"]}]}


def test_the_facts_of_a_sheet_are_counted_and_its_file_is_named(zettel: Zettel, tmp_path: Path) -> None:
    messages = [
        {"id": str(place), "role": ("user", "assistant")[place % 2], "session": 1, "when": "2024-03-03T10:00:00",
         "content": text}
        for place, text in enumerate(MESSAGES)
    ]  # fmt: skip
    chats, sheets = tmp_path / "chats", tmp_path / "sheets"
    for folder, content in ((chats, {"chat": "yard", "messages": messages, "questions": []}), (sheets, SHEET)):
        folder.mkdir()
        (folder / "yard.json").write_text(json.dumps(content), encoding="utf-8")
    result = zettel("bench", "profile", "chats", "--sheets", "sheets", "--json", "-").json()
    assert [row[:2] for row in result["rows"]] == [["yard", 1], ["all", 1]]
    assert result["data"] == described(chats / "yard.json", sheets / "yard.json", below=tmp_path)
