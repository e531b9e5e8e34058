"""Ablations of the decoder: every variant with the same seeds, measured on unseen conversations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
import numpy as np
import pytest

pytest.importorskip("torch")

from tests.unit.test_decoder import DIM, EMBEDDER, decoder_input, log_odds, nonzero_decoder
from zettel.bench import decoder_ablation as ablation
from zettel.bench.decoder_ablation import (
    PAIRS,
    WHOLE,
    PointwiseDecoder,
    UngatedDecoder,
    decoder_without_pairs,
    variants,
)
from zettel.bench.evaluation import Collection, Progress
from zettel.cli.app import run
from zettel.errors import InvalidInput
from zettel.ports import Embedder, EmbedderInfo
from zettel.scoring.decoder_inputs import PAIR_FEATURES
from zettel.scoring.decoder_model import MemoryDecoder
from zettel.scoring.training import Example, Trained, TrainingSettings, train

TALK = {
    "sample_id": "talk",
    "conversation": {"session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "I moved."}]},
    "qa": [{"question": "Who moved?", "evidence": ["D1:1"], "category": 1}],
}


class Blind:
    """An embedder that fails if a test calls it."""

    remote = False
    info = EmbedderInfo("blind", DIM, EMBEDDER)

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        raise AssertionError


def talks(folder: Path, *names: str) -> list[Path]:
    """Write files with one conversation each."""
    paths = [folder / f"{name}.json" for name in names]
    for path in paths:
        path.write_text(json.dumps([TALK]))
    return paths


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Give each conversation four synthetic questions; return the conversations that each training used."""
    groups: list[tuple[str, ...]] = []
    names: dict[int, str] = {}
    examples_by_name: dict[str, list[Example]] = {}

    async def collect(
        collections: Sequence[Collection], embedder: Embedder, progress: Progress
    ) -> Mapping[str, list[Example]]:
        for collection in collections:
            examples_by_name[collection.name] = [
                Example(decoder_input(12, seed), np.arange(12) == seed, 1) for seed in range(4)
            ]
            names.update({id(example.answers): collection.name for example in examples_by_name[collection.name]})
        return examples_by_name

    def record_groups(examples: Sequence[Example], held_out: Sequence[Example], *rest: object) -> Trained:
        groups.append(tuple(sorted({names[id(collection.answers)] for collection in (*examples, *held_out)})))
        return train(examples, held_out, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(ablation, "collect", collect)
    monkeypatch.setattr(ablation, "train", record_groups)
    monkeypatch.setattr(ablation, "load_embedder", lambda name: Blind())
    return groups


@pytest.mark.slow
def test_each_variant_is_trained_with_each_seed(tmp_path: Path, learned: list[tuple[str, ...]]) -> None:
    paths = talks(tmp_path, "a", "b", "c")
    report = anyio.run(
        partial(
            ablation.run, paths, lambda *_: None, talks(tmp_path, "d", "e"), talks(tmp_path, "f"), seeds=2,
            sizes=(2,), only=(WHOLE, "without vectors", "without gates", "from 2 conversations"),
            settings=TrainingSettings(epochs=1),
        )
    )  # fmt: skip
    assert report.columns == ["decoder", "conversations", "test", "± test", "f", "± f"]
    assert [row[:2] for row in report.rows] == [
        ["fusion", None],
        [WHOLE, 3],
        ["without gates", 3],
        ["without vectors", 3],
        ["from 2 conversations", 2],
    ]
    assert learned[:6] == [("a", "b", "c")] * 6
    assert [len(names) for names in learned[6:]] == [2, 2]
    assert report.rows[0][2:] == [1.0, None, 1.0, None], "the default scorer has the first four of twelve among its ten"
    for row in report.rows[1:]:
        runs = report.curves[f"{row[0]}: test"]
        assert row[2] == pytest.approx(np.mean(runs), abs=1e-4)
        assert row[3] == pytest.approx(np.std(runs, ddof=1), abs=1e-4)
    assert report.settings["questions of test"] == 8


def test_variant_names_are_unique() -> None:
    names = [variant.name for variant in variants((10,))]
    assert len(set(names)) == len(names)


def test_each_variant_leaves_out_its_part() -> None:
    example = decoder_input(6)
    linked = example._replace(pairs=example.pairs * 0)
    for complete, left_out in ((MemoryDecoder, decoder_without_pairs(PAIR_FEATURES)), (PointwiseDecoder, None)):
        changes = [
            np.abs(np.subtract(*[log_odds(nonzero_decoder(model_class=kind), input)[0] for input in (example, linked)]))
            for kind in (complete, left_out)
            if kind is not None
        ]
        assert (changes[0].max() > 1e-4) == (complete is MemoryDecoder)
        assert changes[-1].max() < 1e-6
    ungated = log_odds(nonzero_decoder(model_class=UngatedDecoder), example)[0]
    assert np.abs(ungated - log_odds(nonzero_decoder(), example)[0]).max() > 1e-4
    assert {name for names in PAIRS.values() for name in names} == set(PAIR_FEATURES)


def test_invalid_comparisons_raise(tmp_path: Path) -> None:
    two = talks(tmp_path, "a", "b")
    other = talks(tmp_path, "c")
    for paths, more, message in (
        (two[:1], {"test": other}, "name two or more"),
        (two, {"test": other, "sizes": (3,)}, "as many as --size"),
        (two, {}, "--test or --other"),
        (two, {"test": other, "only": ("without luck",)}, "unknown variant 'without luck'"),
    ):
        with pytest.raises(InvalidInput, match=message):
            anyio.run(partial(ablation.run, paths, lambda *_: None, **more))


def test_command_line_reports_unknown_variants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = talks(tmp_path, "a")
    assert run(["scorer", "ablate", str(path), "--only", "luck"]) == 2
    assert "unknown variant 'luck'" in capsys.readouterr().err
