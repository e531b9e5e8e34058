"""Reranks with a cross-encoder: a transformer that scores each pair of a question and a note.

Nogueira and Cho 2019, "Passage Re-ranking with BERT". Any sentence-transformers cross-encoder with one output works.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.errors import EmbedderUnavailable, InvalidInput, MissingExtra, ScorerError
from zettel.text.index import vector_text
from zettel.text.tokens import readable

if TYPE_CHECKING:
    from zettel.ports.query import Floats, Question, Shortlist

MODEL = "cross-encoder/ms-marco-MiniLM-L6-v2"
"""The default model: small, English, trained on questions to a search engine."""
OWNER = "cross-encoder"
"""Owner of model names without one on the Hugging Face hub."""
READS = 20
"""Notes to rerank. On two cores a small model takes most of a second for them."""
BATCH = 64
"""Pairs per forward pass."""
_HEAD = "ForSequenceClassification"


class CrossEncoderScorer:
    """Reranks the best ``reads`` notes by the cross-encoder ``model``: a folder, or a name on the hub.

    Loads the model immediately. ``device``: "cpu", "cuda" or "mps", None for the fastest. Raises ``MissingExtra``
    without the packages of ``[torch]``, and ``ScorerError`` for a missing device, a model that cannot be loaded, or one
    that is not a cross-encoder with one output.
    """

    name = "cross-encoder"
    wants_vectors = False

    def __init__(self, model: str | Path = MODEL, reads: int = READS, device: str | None = None) -> None:
        if reads < 1:
            raise InvalidInput(f"reads={reads} must be at least 1")
        try:
            from safetensors import SafetensorError
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise MissingExtra("the cross-encoder", "torch") from error
        from zettel.scoring.device import resolve_device

        self.reads = reads
        device = resolve_device(device)
        folder = _folder(model)
        try:
            _require_head(folder)
            self._model = CrossEncoder(str(folder), device=device, local_files_only=True)
            outputs = np.asarray(self._model.predict([("a question", "a note")], show_progress_bar=False))
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            reason = str(error).partition("\n")[0]
            raise ScorerError(f"{folder} does not contain a cross-encoder: {reason}") from error
        if outputs.shape != (1,):
            raise ScorerError(f"{folder} has {outputs.shape[-1]} outputs: use a cross-encoder with one")
        self._lock = threading.Lock()  # the model's tokenizer changes its settings during a call

    async def rerank(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[Floats]:
        """The model's score of each note, (m,) for each shortlist. All pairs run together in a thread."""
        from anyio import to_thread

        pairs = [
            (readable(question.text), readable(vector_text(note)))
            for question, shortlist in zip(questions, shortlists, strict=True)
            for note in shortlist.notes
        ]
        values = await to_thread.run_sync(self._predict, pairs)
        ends = np.cumsum([len(shortlist.notes) for shortlist in shortlists])
        return np.split(values, ends[:-1])

    def _predict(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        with self._lock:
            return np.asarray(self._model.predict(list(pairs), batch_size=BATCH, show_progress_bar=False), np.float32)


def _require_head(folder: Path) -> None:
    """Raise ``ValueError`` for a model without a classification head: its head would get random weights."""
    config: dict[str, Any] = {}
    for name in ("config.json", "config_sentence_transformers.json"):
        if (folder / name).is_file():
            config |= json.loads((folder / name).read_text(encoding="utf-8"))
    kinds = config.get("architectures") or []
    if kinds and config.get("model_type") != "CrossEncoder" and not any(kind.endswith(_HEAD) for kind in kinds):
        raise ValueError(f"it is a {kinds[0]}, not a model ...{_HEAD}")


def _folder(model: str | Path) -> Path:
    """The folder of a model: itself, or that in the cache of the hub, downloaded if missing."""
    from zettel.llm.model_hub import cached_folder, download

    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder
    name = str(model)
    if isinstance(model, Path) or name.startswith((".", "~", os.sep)) or not name.strip():
        raise ScorerError(f"the folder {name!r} of the cross-encoder does not exist")
    name = name if "/" in name else f"{OWNER}/{name}"
    try:
        return cached_folder(name) or download(name)
    except EmbedderUnavailable as error:
        raise ScorerError(f"cross-encoder {error}") from error
