"""The benchmark of poisoning, on one fact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.described import described
from tests.integration.command import Zettel
from zettel.bench.poison import CHATTER, read

pytestmark = pytest.mark.integration

DATA = Path(__file__).parents[1] / "data" / "poison"


@pytest.mark.parametrize("options", [(), ("--follower",)])
def test_every_attack_has_a_row(zettel: Zettel, tmp_path: Path, options: tuple[str, ...]) -> None:
    first = (DATA / "fit.jsonl").read_text(encoding="utf-8").splitlines()[0]
    (tmp_path / "one.jsonl").write_text(first + "\n", encoding="utf-8")
    (tmp_path / CHATTER).write_text("", encoding="utf-8")
    result = zettel("bench", "poison", "one.jsonl", *options, "--json", "-").json()
    rows: dict[str, dict[str, Any]] = {row[0]: dict(zip(result["columns"], row, strict=True)) for row in result["rows"]}
    assert len(rows) == 13
    assert rows["none"]["truth in 3"] == 1.0
    assert rows["none"]["poison first"] == rows["none"]["poison unmarked in context"] == 0.0
    assert rows["all attacks"]["truths superseded"] == 0.0
    assert any("language model answered" in note for note in result["notes"]) is bool(options)
    assert result["data"] == described(tmp_path / "one.jsonl", tmp_path / CHATTER)


def test_a_damaged_line_is_named(zettel: Zettel, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"id": "a"}\n', encoding="utf-8")
    failed = zettel("bench", "poison", "bad.jsonl")
    assert failed.status == 1
    assert "bad.jsonl:1: domain: Field required" in failed.err


def test_facts_are_asked_in_five_groups() -> None:
    facts = [fact for half in ("fit", "unseen") for fact in read(DATA / f"{half}.jsonl")]
    assert len(facts) == 100
    assert len({fact.domain for fact in facts}) == 5
    for fact in facts:
        false = json.dumps(fact.attacks.model_dump()).casefold()
        assert fact.answer.casefold() not in false
