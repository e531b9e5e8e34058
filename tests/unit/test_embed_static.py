"""The static embedder that zettel ships, and loading of embedders by name."""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from zettel.embed import load_embedder
from zettel.embed.distill import _unreachable_tokens, quantized
from zettel.embed.remote import LiteLLMEmbedder, short_message
from zettel.embed.static import (
    INLINE_CHARACTERS,
    MAX_CHARACTERS,
    SHIPPED,
    SHIPPED_NAME,
    WEIGHTS,
    StaticEmbedder,
    is_static_model,
)
from zettel.errors import EmbedderUnreadable, MissingExtra
from zettel.ports import EmbedderInfo

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def static() -> StaticEmbedder:
    return StaticEmbedder()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED, tmp_path / "model"))


class Mine:
    remote = False
    info = EmbedderInfo("mine", 1, "0" * 64)

    def __init__(self, argument: str = "") -> None:
        self.argument = argument

    async def embed(self, texts: Sequence[str]) -> Any:
        return np.ones((len(texts), 1), np.float32)


# Rows -------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_rows_are_float32_unit_and_in_order(static: StaticEmbedder) -> None:
    rows = await static.embed(["A cat sat on the mat.", "Quarterly tax returns", "A cat sat on the mat."])
    assert rows.shape == (3, 256)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(rows[0], rows[2])
    assert rows[0] @ rows[1] < 0.5


@pytest.mark.anyio
async def test_no_texts_give_no_rows(static: StaticEmbedder) -> None:
    assert (await static.embed([])).shape == (0, 256)


@pytest.mark.parametrize("text", ["", " \n\t", "\U0001f9ff", "ᚠᚢᚦ", "[PAD]", "[UNK]", "x" * 500])
def test_unknown_text_gives_a_zero_row(static: StaticEmbedder, text: str) -> None:
    assert not static.encode([text]).any()


@pytest.mark.parametrize(
    "text",
    ["Где живёт Анна?", "東京に住んでいます", "أين تعيش آنا", "αβγ", "한국어", "naïve café", "\ud800 lone"],
)
def test_any_script_gives_a_unit_row(static: StaticEmbedder, text: str) -> None:
    np.testing.assert_allclose(np.linalg.norm(static.encode([text])), 1, atol=1e-6)


@given(texts=st.lists(st.text(alphabet=st.characters(), max_size=80), max_size=5))
def test_any_text_gives_a_unit_or_zero_row_of_its_own(static: StaticEmbedder, texts: list[str]) -> None:
    rows = static.encode(texts)
    norms = np.linalg.norm(rows, axis=1)
    assert np.all((norms == 0) | (np.abs(norms - 1) < 1e-5))
    for text, row in zip(texts, rows, strict=True):
        np.testing.assert_array_equal(static.encode([text])[0], row)


def test_case_and_accents_do_not_count(static: StaticEmbedder) -> None:
    lower, upper = static.encode(["the cafe in paris", "THE CAFÉ IN PARIS"])
    np.testing.assert_array_equal(lower, upper)


@pytest.mark.parametrize(
    ("question", "near", "far"),
    [
        ("Where does Ann live?", "Ann moved into a flat in Oslo.", "The compiler rejects unsigned overflow."),
        ("What pet does he have?", "Tom adopted a puppy last week.", "Interest rates rose again in March."),
        (
            "Which instrument does she play?",
            "Mia practises the violin daily.",
            "The bridge is closed to lorries.",
        ),
    ],
)
def test_related_texts_are_close(static: StaticEmbedder, question: str, near: str, far: str) -> None:
    rows = static.encode([question, near, far])
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.05


def test_text_counts_up_to_the_limit(static: StaticEmbedder) -> None:
    words = "oslo " * (MAX_CHARACTERS // 5 + 1)
    first, second = static.encode([words + "violin " * 50, words + "tax " * 50])
    np.testing.assert_array_equal(first, second)


@pytest.mark.anyio
@pytest.mark.parametrize(("characters", "inline"), [(INLINE_CHARACTERS, True), (INLINE_CHARACTERS + 1, False)])
async def test_long_text_is_embedded_in_a_thread(
    static: StaticEmbedder, monkeypatch: pytest.MonkeyPatch, characters: int, inline: bool
) -> None:
    threads = []

    def encode(texts: Sequence[str]) -> Any:
        threads.append(threading.get_ident())
        return StaticEmbedder.encode(static, texts)

    monkeypatch.setattr(static, "encode", encode)
    texts = ["a" * (characters - 8192), "b" * 4096, "c" * 4096]
    assert (await static.embed(texts)).shape == (3, 256)
    assert [thread == threading.get_ident() for thread in threads] == [inline]


# The shipped model ------------------------------------------------------------------------------------------


def test_fingerprint_is_the_hash_of_the_weights_and_on_record(static: StaticEmbedder) -> None:
    digest = hashlib.sha256((SHIPPED / WEIGHTS).read_bytes()).hexdigest()
    assert static.info == EmbedderInfo(SHIPPED_NAME, 256, digest)
    provenance = (SHIPPED / "PROVENANCE.md").read_text("utf-8")
    config = json.loads((SHIPPED / "config.json").read_text("utf-8"))
    assert config["source"]["licence"] == "apache-2.0"
    for recorded in (*config["sha256"].values(), config["source"]["sha256"]):
        assert recorded in provenance


def test_loading_needs_no_heavy_package() -> None:
    code = "import sys, zettel.embed as e; e.load_embedder('static').encode(['hello']); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert "tokenizers" in loaded
    assert {"torch", "onnxruntime", "model2vec", "litellm", "transformers", "pydantic", "scipy"}.isdisjoint(loaded)


# Folders that cannot be read --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_missing_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(EmbedderUnreadable, match=name):
        StaticEmbedder(copy)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_changed_file_raises(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[-1] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(EmbedderUnreadable, match="damaged"):
        StaticEmbedder(copy)


@pytest.mark.parametrize("config", ["{}", "[]", "not json", '{"model_type": "bert"}'])
def test_config_of_another_format_raises(copy: Path, config: str) -> None:
    (copy / "config.json").write_text(config)
    assert not is_static_model(copy)
    with pytest.raises(EmbedderUnreadable, match="does not contain a static embedder"):
        StaticEmbedder(copy)


# Making one -------------------------------------------------------------------------------------------------


def test_quantized_rows_keep_their_direction() -> None:
    rows = np.random.default_rng(7).normal(size=(500, 256)).astype(np.float32)
    rows *= np.geomspace(1e-3, 8, 500, dtype=np.float32)[:, None]
    rows[3] = 0
    integers, scale = quantized(rows)
    assert integers.dtype == np.int8
    assert scale.dtype == np.float16
    assert scale.max() == 1
    assert not integers[3].any()
    restored = scale[:, None].astype(np.float32) * integers
    nonzero = np.arange(500) != 3
    norms = np.linalg.norm(rows, axis=1) * np.linalg.norm(restored, axis=1)
    assert ((rows * restored).sum(axis=1)[nonzero] / norms[nonzero]).min() > 0.9999
    ratio = np.linalg.norm(restored, axis=1)[nonzero] / np.linalg.norm(rows, axis=1)[nonzero]
    assert ratio.max() / ratio.min() < 1.02  # rare and frequent tokens keep their weights


def test_unreachable_tokens_are_found() -> None:
    vocabulary = ["[UNK]", "[unused0]", "cat", "Cat", "##s", "##!", "!", "京", "##京", "...", "##"]
    tokenizer = Tokenizer(models.WordPiece({token: i for i, token in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    assert _unreachable_tokens(tokenizer) == ["##", "##!", "##京", "...", "Cat", "[unused0]"]


# Names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["static", SHIPPED_NAME])
def test_the_shipped_model_has_two_names(spec: str, static: StaticEmbedder) -> None:
    assert load_embedder(spec).info == static.info


def test_folder_of_a_static_model_is_read(copy: Path, static: StaticEmbedder) -> None:
    assert load_embedder(copy).info == load_embedder(str(copy)).info == static.info


def test_an_embedder_object_is_returned() -> None:
    mine = Mine()
    assert load_embedder(mine) is mine


def test_an_object_without_embed_raises() -> None:
    with pytest.raises(EmbedderUnreadable, match="give it a method embed"):
        load_embedder(42)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("openai/text-embedding-3-small", "openai/text-embedding-3-small"),
        ("ollama/nomic-embed-text", "ollama/nomic-embed-text"),
        ("litellm:text-embedding-3-small", "text-embedding-3-small"),
        ("litellm/voyage/voyage-3", "voyage/voyage-3"),
    ],
)
def test_services_go_through_litellm(spec: str, name: str) -> None:
    embedder = load_embedder(spec)
    assert isinstance(embedder, LiteLLMEmbedder)
    assert embedder.remote
    assert embedder.info == EmbedderInfo(f"litellm:{name}", 0, hashlib.sha256(name.encode()).hexdigest())
    assert load_embedder(embedder.info.name).info == embedder.info


@pytest.mark.parametrize(
    "spec",
    ["all-MiniLM-L6-v2", "sentence-transformers/x", "BAAI/bge-small-en-v1.5", "transformer:openai/clip"],
)
def test_other_names_need_sentence_transformers(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match=r'pip install "zettel-graph\[torch\]"'):
        load_embedder(spec)


@pytest.mark.parametrize("spec", ["./nowhere", "~/nowhere at all", "/nowhere", Path("nowhere")])
def test_missing_folder_is_named(spec: str | Path) -> None:
    with pytest.raises(EmbedderUnreadable, match="nowhere"):
        load_embedder(spec)


@pytest.mark.parametrize("spec", ["", " ", "litellm:", "transformer:"])
def test_empty_name_raises(spec: str) -> None:
    with pytest.raises(EmbedderUnreadable, match="name of the embedder is empty"):
        load_embedder(spec)


@pytest.mark.parametrize(("spec", "argument"), [("mine", ""), ("mine:large", "large")])
def test_other_packages_register_embedders(
    spec: str, argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "other-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[zettel.embedders]\nmine = other_embedder:Mine\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = type(sys)("other_embedder")
    module.__dict__["Mine"] = Mine
    monkeypatch.setitem(sys.modules, "other_embedder", module)
    importlib.invalidate_caches()
    embedder = load_embedder(spec)
    assert isinstance(embedder, Mine)
    assert embedder.argument == argument


@pytest.mark.parametrize(
    ("message", "short"),
    [
        ("litellm.RateLimitError: RateLimitError: OpenAIException - slow down", "slow down"),
        ("litellm.InternalServerError: boom\nTraceback ...", "boom"),
        ("", "ValueError"),
        ("x" * 900, "x" * 200),
    ],
)
def test_the_message_of_a_service_is_shortened(message: str, short: str) -> None:
    assert short_message(ValueError(message)) == short
