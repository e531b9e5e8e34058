"""``zettel scorer fit`` on two small conversations, from the files to the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from zettel.cli.app import run
from zettel.scoring.features import FEATURES

pytestmark = pytest.mark.integration

DATA = Path(__file__).parents[1] / "data"
TEAM, RESEARCH = DATA / "team.json", DATA / "conversations" / "research.json"


@pytest.fixture
def fitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, list[float | None]]:
    out = tmp_path / "fit.json"
    documents = [str(DATA / "documents.jsonl"), str(DATA / "documents-questions.jsonl")]
    travel = DATA / "conversations" / "travel.json"
    told = ["--test", str(travel), "--documents", *documents, "--json", str(out)]
    assert run(["scorer", "fit", str(TEAM), str(RESEARCH), *told]) == 0
    assert "left" in capsys.readouterr().out
    result = json.loads(out.read_text(encoding="utf-8"))
    assert result["columns"] == ["what", "fitted", "rounded", "shipped", "left out"]
    assert result["ran_on"]["fitted to"] == "team, research"
    assert result["ran_on"]["tested on"] == "travel"
    return {row[0]: row[1:] for row in result["rows"]}


def test_weights_of_two_conversations_point_the_same_way_and_find_as_much(
    fitted: dict[str, list[float | None]],
) -> None:
    shipped = {feature.name: feature.weight for feature in FEATURES}
    assert {name: fitted[name][2] for name in shipped} == pytest.approx(shipped)
    for name in ("vector", "speaker", "text_window_3", "brevity"):
        found = fitted[name][0]
        assert found is not None
        assert found * shipped[name] > 0
    for kind in range(4):
        found = fitted["recall@10 travel (test)"][kind]
        assert found is not None
        assert found > 0.5
    assert fitted["perfect@8 documents (test)"][2] == pytest.approx(56 / 60, abs=2 / 60)
    telling, strayed = fitted["AUROC of an answer (test)"], fitted["Brier score (test)"]
    assert telling[0] is not None
    assert telling[0] > 0.75
    assert strayed[0] is not None
    assert strayed[0] < 0.25  # what it would be for even odds, whatever is asked


def test_one_conversation_or_the_same_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scorer", "fit", str(TEAM)]) == 1
    assert "two conversations or more" in capsys.readouterr().err
    assert run(["scorer", "fit", str(TEAM), str(TEAM)]) == 1
    assert "two conversations 'team'" in capsys.readouterr().err
    assert run(["scorer", "fit", str(TEAM), "missing.json"]) == 1
    assert "missing.json does not exist" in capsys.readouterr().err


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scorer", "fit", "--help"]) == 0
    assert "zettel scorer fit one.json two.json" in capsys.readouterr().out
