"""``zettel scorer fit`` on two small conversations."""

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
    options = ["--test", str(travel), "--documents", *documents, "--json", str(out)]
    assert run(["scorer", "fit", str(TEAM), str(RESEARCH), *options]) == 0
    assert "left" in capsys.readouterr().out
    result = json.loads(out.read_text(encoding="utf-8"))
    assert result["columns"] == ["what", "fitted", "rounded", "shipped", "left out"]
    assert result["ran_on"]["fitted to"] == "team, research"
    assert result["ran_on"]["tested on"] == "travel"
    return {row[0]: row[1:] for row in result["rows"]}


def test_fitted_weights_agree_with_the_shipped_ones(
    fitted: dict[str, list[float | None]],
) -> None:
    shipped = {feature.name: feature.weight for feature in FEATURES}
    assert {name: fitted[name][2] for name in shipped} == pytest.approx(shipped)
    for name in ("vector", "speaker", "text_window_3", "brevity"):
        value = fitted[name][0]
        assert value is not None
        assert value * shipped[name] > 0
    for kind in range(4):
        value = fitted["recall@10 travel (test)"][kind]
        assert value is not None
        assert value > 0.5
    assert fitted["perfect@8 documents (test)"][2] == pytest.approx(56 / 60, abs=2 / 60)
    auroc, brier_score = fitted["AUROC of an answer (test)"], fitted["Brier score (test)"]
    assert auroc[0] is not None
    assert auroc[0] > 0.75
    assert brier_score[0] is not None
    assert brier_score[0] < 0.25  # the score of a constant prediction of 0.5


def test_two_different_conversations_are_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scorer", "fit", str(TEAM)]) == 1
    assert "two conversations or more" in capsys.readouterr().err
    assert run(["scorer", "fit", str(TEAM), str(TEAM)]) == 1
    assert "two conversations 'team'" in capsys.readouterr().err
    assert run(["scorer", "fit", str(TEAM), "missing.json"]) == 1
    assert "missing.json does not exist" in capsys.readouterr().err


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scorer", "fit", "--help"]) == 0
    assert "zettel scorer fit one.json two.json" in capsys.readouterr().out
