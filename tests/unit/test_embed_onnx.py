"""The contextual embedder that zettel ships, the default."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zettel import Memory
from zettel.embed import load_embedder, onnx, recorded_embedder
from zettel.embed.export import INT8_MAX, PAIR_MAX, quantized_columns, quantized_rows
from zettel.embed.onnx import CONFIG, MODEL, SHIPPED, SHIPPED_NAME, TOKENIZER, OnnxEmbedder, fingerprint_of
from zettel.embed.static import SHIPPED_NAME as STATIC_NAME
from zettel.errors import EmbedderUnreadable
from zettel.ports import EmbedderInfo, is_slow

CHECKOUT = Path(__file__).parents[2]
TEXTS = [
    "A cat sat on the mat.",
    "Quarterly tax returns",
    "Mia practises the violin for an hour every day, and her neighbours have complained twice.",
    "Oslo",
    "x" * 500,
    "東京に住んでいます",
]


@pytest.fixture(scope="module")
def minilm() -> OnnxEmbedder:
    return OnnxEmbedder()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED, tmp_path / "model"))


# Rows -------------------------------------------------------------------------------------------------------


def test_rows_are_float32_unit_and_in_order(minilm: OnnxEmbedder) -> None:
    rows = anyio.run(minilm.embed, [*TEXTS, TEXTS[0]])
    assert rows.shape == (len(TEXTS) + 1, 384)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(rows[0], rows[-1])
    assert rows[0] @ rows[1] < 0.5


def test_no_texts_give_no_rows(minilm: OnnxEmbedder) -> None:
    assert minilm.encode([]).shape == anyio.run(minilm.embed, []).shape == (0, 384)


@pytest.mark.parametrize("text", ["", " \n\t", "\x00", "\u200b"])
def test_a_text_without_tokens_gives_a_zero_row(minilm: OnnxEmbedder, text: str) -> None:
    rows = minilm.encode([text, "Oslo"])
    assert not rows[0].any()
    assert rows[1].any()


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[::-1], TEXTS * 40])
def test_a_row_does_not_depend_on_the_other_texts(minilm: OnnxEmbedder, texts: list[str]) -> None:
    alone = {text: minilm.encode([text])[0] for text in TEXTS}
    for text, row in zip(texts, minilm.encode(texts), strict=True):
        np.testing.assert_array_equal(row, alone[text])


def test_a_row_does_not_depend_on_the_number_of_cores(minilm: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    for cores in (1, 2, 64):
        monkeypatch.setattr(onnx, "usable_cores", lambda cores=cores: cores)
        rows.append(minilm.encode(TEXTS * 20))
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(rows[0], rows[2])


def test_long_calls_are_split_without_effect(minilm: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = minilm.encode(TEXTS)
    monkeypatch.setattr(onnx, "CALL_CHARACTERS", 30)
    assert [len(part) for part in onnx._calls(TEXTS)] == [2, 1, 2, 1]
    np.testing.assert_array_equal(anyio.run(minilm.embed, TEXTS), whole)


@settings(max_examples=15)
@given(texts=st.lists(st.text(alphabet=st.characters(), max_size=60), max_size=4))
def test_any_text_gives_a_unit_or_zero_row_of_its_own(minilm: OnnxEmbedder, texts: list[str]) -> None:
    rows = minilm.encode(texts)
    norms = np.linalg.norm(rows, axis=1)
    assert np.all((norms == 0) | (np.abs(norms - 1) < 1e-5))
    for text, row in zip(texts, rows, strict=True):
        np.testing.assert_array_equal(minilm.encode([text])[0], row)


def test_text_counts_up_to_the_limit_of_tokens(minilm: OnnxEmbedder) -> None:
    limit = json.loads((SHIPPED / CONFIG).read_bytes())["max_tokens"]
    words = "oslo " * (limit - 2)  # the model adds two tokens
    same, end, earlier = minilm.encode([words, words + "violin", words[5:] + "violin"])
    np.testing.assert_array_equal(same, end)
    assert not np.array_equal(same, earlier)


def test_word_order_counts(minilm: OnnxEmbedder) -> None:
    """The static model cannot distinguish these."""
    question, fact, reverse = minilm.encode(["Who bit the dog?", "The man bit the dog.", "The dog bit the man."])
    assert question @ fact > question @ reverse


# The shipped model ------------------------------------------------------------------------------------------


def test_the_fingerprint_covers_model_and_limit_and_is_on_record(minilm: OnnxEmbedder) -> None:
    config = json.loads((SHIPPED / CONFIG).read_bytes())
    for name in (MODEL, TOKENIZER):
        assert config["sha256"][name] == hashlib.sha256((SHIPPED / name).read_bytes()).hexdigest()
    fingerprint = fingerprint_of(config["sha256"][MODEL], config["max_tokens"])
    assert minilm.info == EmbedderInfo(SHIPPED_NAME, 384, fingerprint)
    assert fingerprint != fingerprint_of(config["sha256"][MODEL], config["max_tokens"] - 1)
    provenance = (SHIPPED / "PROVENANCE.md").read_text("utf-8")
    assert config["source"]["licence"] == "apache-2.0"
    for recorded in (*config["sha256"].values(), config["source"]["sha256"]):
        assert recorded in provenance


def test_it_is_local_and_slow(minilm: OnnxEmbedder) -> None:
    assert not minilm.remote
    assert is_slow(minilm)
    assert not is_slow(load_embedder("static"))


def test_the_session_is_loaded_once_per_process(minilm: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    minilm.encode(["Oslo"])
    monkeypatch.setattr(onnx, "_session", None)
    np.testing.assert_array_equal(OnnxEmbedder().encode(["Oslo"]), minilm.encode(["Oslo"]))


def test_creating_it_loads_nothing_and_using_it_nothing_heavy() -> None:
    code = (
        "import sys, zettel.embed as e; m = e.load_embedder(); print(*sys.modules); print('after');"
        "m.encode(['hello']); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    created, used = (part.split() for part in done.stdout.split("after"))
    assert {"onnxruntime", "tokenizers"}.isdisjoint(created)
    assert {"onnxruntime", "tokenizers"} <= set(used)
    assert {"torch", "onnx", "litellm", "transformers", "pydantic", "scipy", "sympy"}.isdisjoint(used)
    assert not done.stderr


def test_no_telemetry_is_collected(tmp_path: Path) -> None:
    """Some versions of onnxruntime write an id and events below the home folder, and send them from a thread."""
    code = (
        "import os, zettel.embed as e; e.load_embedder('minilm').encode(['hello'])\n"
        "print(os.environ['ORT_DISABLE_TELEMETRY'])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("1\n", "")
    assert not list(tmp_path.rglob("*"))


# Folders that cannot be read --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [CONFIG, MODEL, TOKENIZER])
def test_a_missing_file_is_named_at_once(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(EmbedderUnreadable, match=name) as refused:
        OnnxEmbedder(copy)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", [MODEL, TOKENIZER])
def test_a_changed_file_raises_at_the_first_use(copy: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx, "_loaded", {})
    content = bytearray((copy / name).read_bytes())
    content[-1] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(EmbedderUnreadable, match=f"{name} does not match") as refused:
        OnnxEmbedder(copy).encode(["Oslo"])
    assert "\n" not in str(refused.value)


def test_a_model_that_onnxruntime_cannot_run_raises(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx, "_loaded", {})
    (copy / MODEL).write_bytes(b"no model")
    config = json.loads((copy / CONFIG).read_bytes())
    config["sha256"][MODEL] = hashlib.sha256(b"no model").hexdigest()
    (copy / CONFIG).write_text(json.dumps(config))
    with pytest.raises(EmbedderUnreadable, match="onnxruntime can run") as refused:
        OnnxEmbedder(copy).encode(["Oslo"])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("config", ["{}", "[]", "not json", '{"model_type": "bert"}'])
def test_a_config_of_another_format_raises(copy: Path, config: str) -> None:
    (copy / CONFIG).write_text(config)
    with pytest.raises(EmbedderUnreadable, match="does not contain an ONNX embedder"):
        OnnxEmbedder(copy)


@pytest.mark.parametrize("key", ["name", "dim", "max_tokens", "sha256"])
def test_an_incomplete_config_raises(copy: Path, key: str) -> None:
    config = json.loads((copy / CONFIG).read_bytes())
    del config[key]
    (copy / CONFIG).write_text(json.dumps(config))
    with pytest.raises(EmbedderUnreadable, match=f"lacks '{key}'"):
        OnnxEmbedder(copy)


def test_without_onnxruntime_one_line_names_the_ways_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(EmbedderUnreadable, match="pip install onnxruntime") as refused:
        Memory(tmp_path / "memory.db")
    assert 'embedder="static"' in str(refused.value)
    assert "\n" not in str(refused.value)
    with Memory(tmp_path / "memory.db", embedder="static") as memory:
        memory.add("Ann lives in Oslo.")
        assert memory.search("Where does Ann live?")


# Making one -------------------------------------------------------------------------------------------------


def test_quantized_columns_stay_close_and_their_pairs_small() -> None:
    weight = np.random.default_rng(7).normal(size=(384, 50)).astype(np.float32)
    weight[:, 3] = 0
    integers, scale = quantized_columns(weight)
    assert integers.dtype == np.int8
    sizes = np.abs(integers.astype(int))
    assert (sizes[0::2] + sizes[1::2]).max() <= PAIR_MAX
    assert sizes.max() <= INT8_MAX
    np.testing.assert_allclose(integers * scale, weight, atol=scale.max() / 2 + 1e-6)


def test_quantized_rows_stay_close() -> None:
    rows = np.random.default_rng(7).normal(size=(50, 384)).astype(np.float32)
    rows[3] = 0
    integers, scale = quantized_rows(rows)
    assert integers.dtype == np.int8
    np.testing.assert_allclose(integers * scale, rows, atol=scale.max() / 2 + 1e-6)


# Names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [None, "minilm", SHIPPED_NAME, SHIPPED])
def test_the_default_is_the_shipped_model(spec: str | Path | None, minilm: OnnxEmbedder) -> None:
    assert load_embedder(spec).info == minilm.info


@pytest.mark.parametrize(
    ("recorded", "name"), [(None, SHIPPED_NAME), (SHIPPED_NAME, SHIPPED_NAME), (STATIC_NAME, STATIC_NAME)]
)
def test_a_store_without_a_named_embedder_continues_with_its_own(recorded: str | None, name: str) -> None:
    assert recorded_embedder(recorded).info.name == name


def test_a_store_of_an_embedder_that_is_not_shipped_gets_the_default() -> None:
    assert recorded_embedder("letters").info.name == SHIPPED_NAME
