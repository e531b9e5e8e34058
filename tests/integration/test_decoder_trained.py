"""A memory decoder trained on conversations, evaluated and searched with from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from zettel.cli.app import run

DATA = Path(__file__).parents[1] / "data"
FILES = [str(DATA / name) for name in ("team.json", "conversations/research.json", "conversations/clinic.json")]


@pytest.mark.timeout(400)
def test_a_decoder_is_trained_evaluated_and_used_in_a_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, report = tmp_path / "decoder", tmp_path / "report.json"
    arguments = [*FILES[:2], "--test", FILES[2], "--out", str(folder), "--epochs", "2", "--json", str(report)]
    assert run(["scorer", "train", *arguments, "--plot", str(tmp_path)]) == 0
    result = json.loads(report.read_text())
    assert {path.name for path in folder.iterdir()} == {"config.json", "model.safetensors"}
    assert len(result["curves"]["loss"]) == 2
    assert result["curves"]["loss"][1] < result["curves"]["loss"][0]
    assert "<svg" in (tmp_path / "scorer-train.svg").read_text()
    rows = {row[0]: row for row in result["rows"]}
    assert rows["all test"][1:3] == rows["clinic (test)"][1:3]
    assert rows["clinic (test)"][2] > 0.3, "the default scorer finds something there"

    assert run(["scorer", "eval", FILES[2], "--decoder", str(folder), "--json", str(report)]) == 0
    evaluated = json.loads(report.read_text())["rows"][0]
    assert evaluated[2] == rows["clinic (test)"][2]
    assert evaluated[3] == pytest.approx(rows["clinic (test)"][3], abs=0.02), "weights are saved in half precision"

    store = ["--store", str(tmp_path / "memory.db")]
    assert run(["import", FILES[2], *store]) == 0
    capsys.readouterr()
    search = ["search", "Who hurt a hand?", *store, "--scorer", f"decoder:{folder}", "--explain", "--json"]
    assert run(search) == 0
    hits = json.loads(capsys.readouterr().out)
    assert {hit["why"]["scorer"] for hit in hits} == {"fusion+decoder"}
    values = [hit["why"]["features"]["decoder"] for hit in hits]
    assert values == sorted(values, reverse=True)


def test_invalid_training_arguments_are_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "decoder")]
    for arguments, message in (
        ([FILES[0], *out], "two conversations or more"),
        ([FILES[0], FILES[0], *out], "two conversations are named 'team'"),
        ([*FILES[:2], *out, "--device", "abacus"], "abacus"),
    ):
        assert run(["scorer", "train", *arguments]) != 0
        assert message in capsys.readouterr().err
    assert run(["scorer", "eval", FILES[0], "--decoder", str(tmp_path)]) != 0
    assert "does not contain a memory decoder" in capsys.readouterr().err
    assert not (tmp_path / "decoder").exists()
