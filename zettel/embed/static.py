"""Static embedder: one row of numbers per token, a text is the mean of its rows.

The method is model2vec's (Tulkens and van Dongen, 2024): a sentence transformer is run once over its own
vocabulary, the outputs are reduced by PCA and weighted by how rare the token is. What is left at run time is
a look-up, so a text costs tens of microseconds on a CPU. ``zettel.embed.distill`` writes the folder that is
read here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zettel.embed.rows import readable, unit_rows
from zettel.errors import EmbedderUnreadable
from zettel.ports import EmbedderInfo

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.query import Floats

SHIPPED = Path(__file__).parent / "weights"
"""The folder of the model that comes with zettel."""

SHIPPED_NAME = "all-MiniLM-L6-v2-static-256"
"""What it calls itself, and so what the stores that it filled call it."""

FORMAT = "zettel-static-embedder/1"
"""What ``format`` in config.json says of a folder that this module can read."""

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"

MAX_CHARACTERS = 4_096
"""A text is read up to here: notes have about 1,500, and a mean over more words says less, not more."""

INLINE_CHARACTERS = 16_384
"""Up to this much text (64 short ones, about 2 ms; 11 notes, 5 ms) is embedded on the spot; more goes to a thread."""


def is_static_model(folder: Path) -> bool:
    """Whether ``folder`` holds a static model of ours: its config.json names our format."""
    try:
        config = json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("format") == FORMAT


class StaticEmbedder:
    """Embeds with a static model read from ``folder``, by default the one that comes with zettel.

    ``info.fingerprint`` is the sha256 of model.safetensors. Raises ``EmbedderUnreadable`` when files are
    missing, damaged or do not belong together.
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
            raise EmbedderUnreadable(f"{folder} holds no static embedder: {error}") from error
        if not isinstance(config, dict) or config.get("format") != FORMAT:
            raise EmbedderUnreadable(f"{folder} holds no static embedder: {CONFIG} does not say {FORMAT!r}")
        fingerprint = hashlib.sha256(weights).hexdigest()
        found = {WEIGHTS: fingerprint, TOKENIZER: hashlib.sha256(tokenizer).hexdigest()}
        if config.get("sha256") != found:
            raise EmbedderUnreadable(f"{folder} is damaged: its files are not those that {CONFIG} tells of")
        try:
            tensors = load(weights)
            self._rows: NDArray[np.int8] | Floats = tensors["rows"]  # (v, dim)
            self._scale: Floats = tensors["scale"].astype(np.float32)  # (v,)
            self._info = EmbedderInfo(str(config["name"]), self._rows.shape[1], fingerprint)
        except (SafetensorError, KeyError, IndexError) as error:
            raise EmbedderUnreadable(f"{folder} is damaged: {error}") from error
        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        if not len(self._rows) == len(self._scale) == self._tokenizer.get_vocab_size():
            raise EmbedderUnreadable(f"{folder} is damaged: not one row and one scale for each token")

    @property
    def info(self) -> EmbedderInfo:
        """Name, dimension and sha256 of the weights."""
        return self._info

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return (n, dim) float32 unit rows in the order of ``texts``; no known token, a zero row.

        Only the first ``MAX_CHARACTERS`` of a text count. A row depends on its own text, not on its batch.
        """
        if sum(map(len, texts)) <= INLINE_CHARACTERS:
            return self.encode(texts)
        from anyio import to_thread

        return await to_thread.run_sync(self.encode, texts)

    def encode(self, texts: Sequence[str]) -> Floats:
        """The same as ``embed``, at once and in the calling thread."""
        read = [readable(text[:MAX_CHARACTERS]) for text in texts]
        out = np.zeros((len(read), self._info.dim), dtype=np.float32)
        encodings = self._tokenizer.encode_batch_fast(read, add_special_tokens=False)
        for row, tokens in zip(out, encodings, strict=True):
            if ids := tokens.ids:
                row[:] = self._scale[ids] @ self._rows[ids]  # (t,) @ (t, dim); the norm makes of a sum a mean
        return unit_rows(out)
