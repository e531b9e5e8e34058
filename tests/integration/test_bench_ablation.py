"""The ablation of the search, on one small chat and one small set of passages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.described import described
from tests.integration.command import Zettel

pytestmark = pytest.mark.integration

TEXTS = ("The ferry's rudder is bent.", "Order a new rudder.", "Ida mended the kiln's door.", "The kiln is fine.")


def write(folder: Path) -> None:
    messages = [
        {"id": str(place), "role": "user", "session": 1, "when": "2024-03-03T10:00:00", "content": text}
        for place, text in enumerate(TEXTS)
    ]
    questions = [
        {"question": "Who mended the kiln?", "kind": "fact", "evidence": ["2"]},
        {"question": "Who lost the key?", "kind": "none", "evidence": []},
    ]
    (folder / "yard.json").write_text(json.dumps({"chat": "yard", "messages": messages, "questions": questions}))
    passages = [{"title": f"Text {place}", "text": text} for place, text in enumerate(TEXTS)]
    (folder / "2wiki-corpus.jsonl").write_text("\n".join(map(json.dumps, passages)))
    (folder / "2wiki-dev.jsonl").write_text(json.dumps({"question": "What is bent?", "titles": ["Text 0"]}))


def test_every_part_has_a_row(zettel: Zettel, tmp_path: Path) -> None:
    write(tmp_path)
    result = zettel("bench", "ablation", "chat=yard.json", f"2wiki={tmp_path}", "--json", "-").json()
    assert result["columns"] == ["recall", "chat", "± chat", "2wiki", "± 2wiki"]
    rows = {name: values for name, *values in result["rows"]}
    assert rows["zettel"] == [1.0, None, 1.0, None]
    assert rows["asked"] == [1, None, 1, None], "the question without an answer is left out"
    assert {"without walk", "without near-ties", "after evolve", "with the static embedder"} <= rows.keys()
    assert rows["without text"][0] <= 0.0
    assert result["data"] == described(
        tmp_path / "yard.json", tmp_path / "2wiki-corpus.jsonl", tmp_path / "2wiki-dev.jsonl"
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (["yard.json"], "must be NAME=PATH"),
        (["a=yard.json", "a=yard.json"], "each name once"),
        (["a=nowhere.json"], "the file nowhere.json does not exist"),
    ],
)
def test_wrong_data_is_a_one_line_error(zettel: Zettel, tmp_path: Path, data: list[str], message: str) -> None:
    write(tmp_path)
    failed = zettel("bench", "ablation", *data)
    assert (failed.status, failed.err.count("\n"), message in failed.err) == (2, 1, True)
