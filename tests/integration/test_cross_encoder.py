"""A cross-encoder with torch, sentence-transformers and a model with random weights."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.integration.command import Zettel
from zettel import Memory
from zettel.errors import InvalidInput, ScorerError
from zettel.scoring.cross_encoder import CrossEncoderScorer
from zettel.scoring.device import resolve_device

pytestmark = pytest.mark.integration

WORDS = "red blue boat lies in the harbour was came no at all a where is ? .".split()
TEXTS = ("The red boat lies in the harbour.", "The boat was red.", "A blue boat came.", "No boat at all.")


def make(folder: Path, labels: int = 1) -> Path:
    """Save a BERT with two layers, hidden size eight and ``labels`` outputs."""
    missing = [name for name in ("sentence_transformers", "transformers", "torch") if find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (pip install -e '.[test]')")
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    signs = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    ids = {token: place for place, token in enumerate([*signs.values(), *WORDS])}
    tokens = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokens.normalizer, tokens.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    tokens.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    PreTrainedTokenizerFast(tokenizer_object=tokens, model_max_length=64, **signs).save_pretrained(folder)
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(ids), hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64, num_labels=labels, initializer_range=1.0,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def scorer(model: Path) -> CrossEncoderScorer:
    return CrossEncoderScorer(model, device="cpu")


def scored_texts(memory: Memory, question: str, **search: Any) -> list[tuple[str, float]]:
    hits = memory.search(question, explain=True, **search)
    return [(hit.note.content, hit.why.features["cross-encoder"]) for hit in hits]


def test_hits_are_ordered_by_the_score_of_each_pair(scorer: CrossEncoderScorer) -> None:
    questions = ["the red boat", "where is a blue boat ?"]
    values = scorer._model.predict([(question, text) for question in questions for text in TEXTS])
    assert len(np.unique(values.round(4))) == 2 * len(TEXTS), "the weights distinguish the texts"
    with Memory(":memory:") as memory:
        memory.add_many([{"content": text} for text in TEXTS], wait=True)
        for question, scores in zip(questions, values.reshape(2, -1), strict=True):
            expected = sorted(zip(TEXTS, scores, strict=True), key=lambda pair: -pair[1])
            scored = scored_texts(memory, question, scorer=scorer)
            assert [text for text, _ in scored] == [text for text, _ in expected]
            np.testing.assert_allclose([value for _, value in scored], [value for _, value in expected], atol=1e-3)


def test_questions_are_scored_in_one_batch_as_separately(scorer: CrossEncoderScorer, monkeypatch: Any) -> None:
    batches: list[int] = []
    read = scorer._predict
    monkeypatch.setattr(scorer, "_predict", lambda pairs: (batches.append(len(pairs)), read(pairs))[1])
    questions = ["the red boat", "a blue boat", "lone \ud800 sign, the boat"]
    with Memory(":memory:") as memory:
        memory.add_many([{"content": text} for text in TEXTS], wait=True)
        batched = memory.search_many(questions, scorer=scorer)
        assert batches == [len(TEXTS) * 3]
        alone = [memory.search(question, scorer=scorer) for question in questions]
    assert [[hit.note.id for hit in hits] for hits in batched] == [[hit.note.id for hit in hits] for hits in alone]


def test_reads_limits_the_scored_hits(model: Path) -> None:
    with Memory(":memory:", scorer=CrossEncoderScorer(model, reads=2, device="cpu")) as memory:
        memory.add_many([{"content": text} for text in TEXTS], wait=True)
        hits = memory.search("the red boat", explain=True)
        assert ["cross-encoder" in hit.why.features for hit in hits] == [True, True, False, False]
    with pytest.raises(InvalidInput, match="reads=0"):
        CrossEncoderScorer(model, reads=0)


def test_the_command_line_takes_a_model_folder(model: Path, zettel: Zettel) -> None:
    for text in TEXTS:
        zettel("add", text)
    hits = zettel("search", "the red boat", "--scorer", f"cross-encoder:{model}", "--json").json()
    assert {hit["why"]["scorer"] for hit in hits} == {"fusion+cross-encoder"}
    assert len(hits) == len(TEXTS)


def test_models_of_another_kind_are_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ScorerError, match="has 3 outputs: use a cross-encoder with one"):
        CrossEncoderScorer(make(tmp_path / "three", labels=3), device="cpu")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ScorerError, match="empty does not contain a cross-encoder"):
        CrossEncoderScorer(tmp_path / "empty", device="cpu")
    broken = make(tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ScorerError, match="broken does not contain a cross-encoder"):
        CrossEncoderScorer(broken, device="cpu")
    without_head = make(tmp_path / "headless")
    config = json.loads((without_head / "config.json").read_text())
    (without_head / "config.json").write_text(json.dumps({**config, "architectures": ["BertModel"]}))
    with pytest.raises(ScorerError, match="headless does not contain a cross-encoder"):
        CrossEncoderScorer(without_head, device="cpu")


def test_missing_models_are_errors(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for nowhere in ("./nowhere", "/nowhere", Path("nowhere")):
        with pytest.raises(ScorerError, match=r"the folder '.*nowhere' of the cross-encoder does not exist"):
            CrossEncoderScorer(nowhere)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name, whole in (("nobody/no-such-model", "nobody/no-such-model"), ("no-such", "cross-encoder/no-such")):
        with pytest.raises(ScorerError, match=f"cross-encoder {whole} cannot be downloaded"):
            CrossEncoderScorer(name)


def test_invalid_devices_are_errors(model: Path) -> None:
    import torch

    assert resolve_device("cpu") == "cpu"
    assert resolve_device(None) in ("cpu", "cuda", "mps")
    for wrong in ("tpu", "cpu:one", "meta"):
        with pytest.raises(ScorerError, match="use one of cpu, cuda, mps"):
            resolve_device(wrong)
    for absent in ("cuda:99", "mps:1", *([] if torch.cuda.is_available() else ["cuda"])):
        with pytest.raises(ScorerError, match=f"device='{absent}' is not on this machine"):
            CrossEncoderScorer(model, device=absent)


def test_the_fastest_device_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    assert [resolve_device(name) for name in (None, "cuda:1", "cpu")] == ["cuda", "cuda:1", "cpu"]
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    assert [resolve_device(name) for name in (None, "mps")] == ["mps", "mps"]
