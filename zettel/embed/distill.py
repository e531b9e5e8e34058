"""Distils a static embedder from a sentence transformer. ``distill`` made the shipped model.

Method: model2vec (Tulkens and van Dongen, 2024). The transformer embeds every token of the vocabulary alone, and PCA
keeps ``dims`` directions. Smooth inverse frequency a / (a + p) weights the rows (Arora, Liang and Ma, 2017), with p
from Zipf's law over the order of the vocabulary.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zettel.embed.static import CONFIG, FORMAT, TOKENIZER, WEIGHTS, StaticEmbedder, is_static_model
from zettel.embed.transformer import find_model, fingerprint_of, public_name
from zettel.errors import EmbedderUnreadable, InvalidInput, MissingExtra

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from zettel.ports.query import Floats

SIF_COEFFICIENT = 1e-4
"""The a of a / (a + p): model2vec's default, within the range that Arora et al. recommend."""

UNUSED_TOKEN = r"\[unused\d+\]"
"""Unused tokens of BERT vocabularies; no text contains them."""

INT8_MAX = 127


def distill(
    model: str | Path, folder: str | Path, *, dims: int = 256, int8: bool = True, name: str | None = None
) -> StaticEmbedder:
    """Distil a sentence transformer into ``folder``, and return the static embedder.

    ``model``: name or folder. ``dims``: numbers per row, at most those of the transformer. ``int8``: one byte per
    number and one scale per row, else float32. ``name``: by default the model's name and ``dims``. One forward pass per
    token: about 20 seconds for a MiniLM on two cores. Equal versions on the same kind of processor write equal bytes.

    Raises ``MissingExtra`` without the packages of ``[torch]``, ``InvalidInput`` for other data in ``folder`` or for
    invalid ``dims``, and the errors of loading a transformer.
    """
    try:
        from model2vec.distill import distill as reduce_transformer
        from transformers import AutoTokenizer
    except ImportError as error:
        raise MissingExtra("distilling an embedder", "torch") from error

    folder, source = Path(folder), find_model(model)
    if folder.exists() and not is_static_model(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} contains other data: name a new folder for the embedder")
    limit = _hidden_size(source)
    if not 1 <= dims <= limit:
        raise InvalidInput(f"dims must be between 1 and {limit}, the dimension of {model}; got {dims}")

    unreachable = _unreachable_tokens(AutoTokenizer.from_pretrained(str(source)).backend_tokenizer)
    removed = "|".join([UNUSED_TOKEN, *map(re.escape, unreachable)])
    static = reduce_transformer(
        str(source),
        pca_dims=dims,
        sif_coefficient=SIF_COEFFICIENT,
        token_remove_pattern=rf"(?:{removed})\Z",
        quantize_to="float32",
        device="cpu",
    )
    tokenizer = static.tokenizer
    tokenizer.no_padding()
    tokenizer.no_truncation()
    rows = np.asarray(static.embedding, dtype=np.float32)
    rows[_special_ids(tokenizer)] = 0
    label = public_name(model)
    config = {
        "format": FORMAT,
        "name": name or f"{label.rpartition('/')[2]}-static-{dims}",
        "dim": rows.shape[1],
        "tokens": len(rows),
        "source": {"model": label, "sha256": fingerprint_of(source), "licence": licence_of(source)},
        "made": {
            "by": "zettel.embed.distill.distill",
            "sif": SIF_COEFFICIENT,
            "pca": dims,
            "int8": int8,
            "tokens_removed": len(unreachable),
            "model2vec": version("model2vec"),
            "torch": version("torch"),
            "transformers": version("transformers"),
        },
    }
    tensors = quantized(rows) if int8 else (rows, np.ones(len(rows), np.float16))
    _write(folder, tensors, tokenizer, config)
    return StaticEmbedder(folder)


def quantized(rows: Floats) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Split (v, d) float32 rows into (v, d) int8 and (v,) float16 with rows ∝ scale[:, None] * int8.

    Each row has a scale, because frequent tokens weigh a thousandth of rare ones and would round to 0 with a common
    one. The largest scale is 1: a common factor cancels in the norm.
    """
    peaks = np.abs(rows).max(axis=1)  # (v,)
    scale = (peaks / max(float(peaks.max()), np.finfo(np.float32).tiny)).astype(np.float16)
    unit = np.divide(rows, peaks[:, None], out=np.zeros_like(rows), where=peaks[:, None] > 0)
    return np.rint(unit * INT8_MAX).astype(np.int8), scale


def _unreachable_tokens(tokenizer: Tokenizer) -> list[str]:
    """Tokens of a WordPiece vocabulary that no text yields, because normalisation would split or change them.

    In BERT's vocabulary these are unused tokens, and continuations by Chinese characters or punctuation marks, which
    are always separate tokens.
    """
    spec = json.loads(tokenizer.to_str())
    if spec["model"]["type"] != "WordPiece" or tokenizer.pre_tokenizer is None:
        return []
    mark = spec["model"]["continuing_subword_prefix"]
    special = {spec["model"]["unk_token"], *(token["content"] for token in spec["added_tokens"])}

    def pieces(word: str) -> list[str]:
        normal = tokenizer.normalizer.normalize_str(word) if tokenizer.normalizer else word
        return [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal)]

    def unreachable() -> Iterator[str]:
        for token in tokenizer.get_vocab():
            word = "a" + token[len(mark) :] if token.startswith(mark) and token != mark else token
            if token not in special and pieces(word) != [word]:
                yield token

    return sorted(unreachable())


def _special_ids(tokenizer: Tokenizer) -> list[int]:
    """Ids of the unknown and padding tokens. Their rows are zero, so an unknown text has a zero row."""
    spec = json.loads(tokenizer.to_str())
    ids = {token["id"] for token in spec["added_tokens"] if token["special"]}
    unknown = spec["model"].get("unk_token")
    if unknown is not None:
        ids.add(tokenizer.token_to_id(unknown))
    return sorted(ids)


def _hidden_size(source: Path) -> int:
    try:
        return int(json.loads((source / "config.json").read_bytes())["hidden_size"])
    except (OSError, ValueError, KeyError) as error:
        raise EmbedderUnreadable(f"{source} does not contain a transformer that can be distilled: {error}") from error


def licence_of(source: Path) -> str:
    """The licence in the model card, or "unknown"."""
    card = source / "README.md"
    text = card.read_text("utf-8") if card.is_file() else ""
    match = re.search(r"^license:\s*(\S+)\s*$", text, re.MULTILINE)
    return match[1] if match else "unknown"


def _write(
    folder: Path,
    tensors: tuple[NDArray[np.int8] | Floats, NDArray[np.float16]],
    tokenizer: Tokenizer,
    config: dict[str, object],
) -> None:
    """Write config.json last: readers reject a folder without it or with an old one."""
    from safetensors.numpy import save

    files = {
        WEIGHTS: save({"rows": tensors[0], "scale": tensors[1]}),
        TOKENIZER: tokenizer.to_str(pretty=False).encode("utf-8"),
    }
    config["sha256"] = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / CONFIG).write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
