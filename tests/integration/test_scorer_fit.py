"""``zettel scorer fit`` on small memories of each kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from zettel.cli.app import run
from zettel.errors import ScorerError
from zettel.scoring.networks import CALIBRATION, LOCAL, ScoreModels

pytestmark = pytest.mark.integration

DATA = Path(__file__).parents[1] / "data"
TEAM, RESEARCH = DATA / "team.json", DATA / "conversations" / "research.json"


def test_networks_are_fitted_written_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two networks of three epochs on two conversations and small chats: worse than the shipped ones, but useful."""
    out, weights = tmp_path / "fit.json", tmp_path / "weights"
    weights.mkdir()
    files = [str(TEAM), str(RESEARCH), str(DATA / "small-memories" / "fit.jsonl")]
    options = ["--test", str(DATA / "conversations" / "travel.json"), "--networks", "2", "--epochs", "3"]
    documents = ["--documents", str(DATA / "documents.jsonl"), str(DATA / "documents-questions.jsonl")]
    saved = ["--out", str(weights), "--json", str(out)]
    assert run(["scorer", "fit", *files, *options, *documents, *saved, "--embedder", "static"]) == 0
    assert "shipped" in capsys.readouterr().out
    result = json.loads(out.read_text(encoding="utf-8"))
    assert result["columns"] == ["what", "questions", "fitted", "shipped"]
    assert result["ran_on"]["tested on"] == "travel"
    rows = {row[0]: row[1:] for row in result["rows"]}
    assert {"recall@10 chat (fit)", "recall@10 talk (test)", "perfect@8 documents (fit)", "AUROC (test)"} <= set(rows)
    assert rows["recall@10 talk (test)"][1] > 0.4
    assert rows["perfect@8 documents (fit)"][1] > 0.7
    assert 0.5 < rows["AUROC (fit)"][1] <= 1.0
    right, none = (rows[f"median score, {what}, up to 4 notes (fit)"] for what in ("right first hit", "no answer"))
    assert right[0] > 20, "the small memories"
    assert right[2] > none[2], "the shipped networks separate them"
    assert ScoreModels.load(weights).local.first.shape[0] == 2


def test_two_different_memories_are_required(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["scorer", "fit", str(TEAM)]) == 2
    assert "two memories or more" in capsys.readouterr().err
    assert run(["scorer", "fit", str(TEAM), str(TEAM)]) == 2
    assert "two memories 'team'" in capsys.readouterr().err
    assert run(["scorer", "fit", str(TEAM), "missing.json"]) == 2
    assert "missing.json does not exist" in capsys.readouterr().err
    assert run(["scorer", "fit", str(TEAM), str(RESEARCH), "--out", str(tmp_path / "nowhere")]) == 2
    assert "nowhere does not exist" in capsys.readouterr().err


def test_networks_of_other_features_are_refused(tmp_path: Path) -> None:
    models = ScoreModels.load()
    models.local._replace(names=("other", *models.local.names[1:])).save(tmp_path / LOCAL)
    models.calibration.save(tmp_path / CALIBRATION)
    with pytest.raises(ScorerError, match="fit them again"):
        ScoreModels.load(tmp_path)


def test_the_shipped_networks_are_small() -> None:
    folder = Path(__file__).parents[2] / "zettel" / "scoring" / "weights"
    assert sum((folder / name).stat().st_size for name in (LOCAL, CALIBRATION)) < 1_000_000


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scorer", "fit", "--help"]) == 0
    assert "zettel scorer fit one.json two.json" in capsys.readouterr().out
