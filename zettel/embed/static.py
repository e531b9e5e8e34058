"""Static embedder: one vector per token; a text is the mean of its tokens.

The method is model2vec (Tulkens and van Dongen, 2024), see ``zettel.embed.distill``. At run time it only looks up
vectors: a text takes tens of microseconds on a CPU.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zettel.embed.rows import unit_rows
from zettel.errors import EmbedderUnreadable
from zettel.ports import EmbedderInfo
from zettel.text.tokens import readable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.ports.query import Floats

SHIPPED = Path(__file__).parent / "weights"
"""Folder of the shipped model."""

SHIPPED_NAME = "all-MiniLM-L6-v2-static-256"
"""Name of the shipped model, also in the stores that use it."""

FORMAT = "zettel-static-embedder/1"
"""``format`` in the config.json of a readable folder."""

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"

MAX_CHARACTERS = 4_096
"""Characters of a text that count. Notes have about 1,500, and a mean over more words is less specific."""

INLINE_CHARACTERS = 16_384
"""Characters up to which texts (64 short ones, 2 ms; 11 notes, 5 ms) are embedded without a thread."""


def is_static_model(folder: Path) -> bool:
    """True if the config.json of ``folder`` has this format."""
    try:
        config = json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("format") == FORMAT


class StaticEmbedder:
    """Embeds with the static model in ``folder``, by default the shipped one.

    ``info.fingerprint`` is the sha256 of model.safetensors. Raises ``EmbedderUnreadable`` for files that are missing,
    damaged or do not match each other.
    """

    remote = False

    def __init__(self, folder: Path | str = SHIPPED) -> None:
        from safetensors import SafetensorError
        from safetensors.numpy import load
        from tokenizers import Tokenizer

        folder = Path(folder)
        try:
            config = json.loads((folder / CONFIG).read_bytes())
            weights = (folder / WEIGHTS).read_bytes()
            tokenizer = (folder / TOKENIZER).read_bytes()
        except (OSError, ValueError) as error:
            raise EmbedderUnreadable(f"{folder} does not contain a static embedder: {error}") from error
        if not isinstance(config, dict) or config.get("format") != FORMAT:
            raise EmbedderUnreadable(f"{folder} does not contain a static embedder: {CONFIG} lacks {FORMAT!r}")
        fingerprint = hashlib.sha256(weights).hexdigest()
        hashes = {WEIGHTS: fingerprint, TOKENIZER: hashlib.sha256(tokenizer).hexdigest()}
        if config.get("sha256") != hashes:
            raise EmbedderUnreadable(f"{folder} is damaged: its files do not match the hashes in {CONFIG}")
        try:
            tensors = load(weights)
            self._rows: NDArray[np.int8] | Floats = tensors["rows"]  # (v, dim)
            self._scale: Floats = tensors["scale"].astype(np.float32)  # (v,)
            self._info = EmbedderInfo(str(config["name"]), self._rows.shape[1], fingerprint)
        except (SafetensorError, KeyError, IndexError) as error:
            raise EmbedderUnreadable(f"{folder} is damaged: {error}") from error
        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        if not len(self._rows) == len(self._scale) == self._tokenizer.get_vocab_size():
            raise EmbedderUnreadable(f"{folder} is damaged: its rows do not match its tokens")

    @property
    def info(self) -> EmbedderInfo:
        """Name, dimension and sha256 of the weights."""
        return self._info

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return (n, dim) float32 unit rows in the order of ``texts``; a text without known tokens has a zero row.

        Only the first ``MAX_CHARACTERS`` of a text count. A row does not depend on the other texts.
        """
        if sum(map(len, texts)) <= INLINE_CHARACTERS:
            return self.encode(texts)
        from anyio import to_thread

        return await to_thread.run_sync(self.encode, texts)

    def encode(self, texts: Sequence[str]) -> Floats:
        """``embed`` in the calling thread."""
        prepared = [readable(text[:MAX_CHARACTERS]) for text in texts]
        out = np.zeros((len(prepared), self._info.dim), dtype=np.float32)
        encodings = self._tokenizer.encode_batch_fast(prepared, add_special_tokens=False)
        for row, tokens in zip(out, encodings, strict=True):
            if ids := tokens.ids:
                row[:] = self._scale[ids] @ self._rows[ids]  # (t,) @ (t, dim); after normalisation a sum equals a mean
        return unit_rows(out)
