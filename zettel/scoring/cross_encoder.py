"""The best notes read by a cross-encoder: a transformer that sees question and note together, and says how well the one
answers the other.

Paper: Nogueira and Cho 2019, "Passage Re-ranking with BERT". Any sentence-transformers cross-encoder with one output.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zettel.annotate.index import vector_text
from zettel.embed.rows import readable
from zettel.errors import EmbedderUnavailable, InvalidInput, MissingExtra, ScorerError

if TYPE_CHECKING:
    from zettel.query import Floats, Question, Shortlist

MODEL = "cross-encoder/ms-marco-MiniLM-L6-v2"
"""The one that is read with unless another is named: small, for English, trained on questions to a search engine."""
OWNER = "cross-encoder"
"""Who a bare model name belongs to on the Hugging Face hub."""
READS = 20
"""Best notes that are read: on a core or two they take a small model a good part of a second."""
BATCH = 64
"""Pairs in one forward pass."""
_HEAD = "ForSequenceClassification"


class CrossEncoderScorer:
    """Orders the best ``reads`` notes anew by the cross-encoder ``model``: a folder, or a name on the hub.

    The model is loaded here and now. ``device``: "cpu", "cuda" or "mps", None for the fastest that is there. Raises
    ``MissingExtra`` without the packages of ``[torch]``, ``ScorerError`` for a model that cannot be had or is no
    cross-encoder with one output, and for a device that is not there.
    """

    name = "cross-encoder"
    wants_vectors = False

    def __init__(self, model: str | Path = MODEL, reads: int = READS, device: str | None = None) -> None:
        if reads < 1:
            raise InvalidInput(f"reads={reads}: at least 1 is needed")
        try:
            from safetensors import SafetensorError
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise MissingExtra("the cross-encoder", "torch") from error
        from zettel.scoring.device import device_called

        self.reads = reads
        device = device_called(device)
        folder = _folder(model)
        try:
            _require_head(folder)
            self._model = CrossEncoder(str(folder), device=device, local_files_only=True)
            outputs = np.asarray(self._model.predict([("a question", "a note")], show_progress_bar=False))
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            reason = str(error).partition("\n")[0]
            raise ScorerError(f"{folder} holds no cross-encoder: {reason}") from error
        if outputs.shape != (1,):
            raise ScorerError(f"{folder} has {outputs.shape[-1]} outputs: a cross-encoder that ranks has one")
        self._busy = threading.Lock()  # the model's tokenizer changes its settings during a call

    async def rerank(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[Floats]:
        """What the model says of each note, (m,) for each shortlist; all of them are read together, in a thread."""
        from anyio import to_thread

        pairs = [
            (readable(question.text), readable(vector_text(note)))
            for question, one in zip(questions, shortlists, strict=True)
            for note in one.notes
        ]
        values = await to_thread.run_sync(self._read, pairs)
        ends = np.cumsum([len(one.notes) for one in shortlists])
        return np.split(values, ends[:-1])

    def _read(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        with self._busy:
            return np.asarray(self._model.predict(list(pairs), batch_size=BATCH, show_progress_bar=False), np.float32)


def _require_head(folder: Path) -> None:
    """``ValueError`` for a model that was not made to judge pairs: it would be given a head of random weights."""
    said: dict[str, Any] = {}
    for name in ("config.json", "config_sentence_transformers.json"):
        if (folder / name).is_file():
            said |= json.loads((folder / name).read_text(encoding="utf-8"))
    kinds = said.get("architectures") or []
    if kinds and said.get("model_type") != "CrossEncoder" and not any(kind.endswith(_HEAD) for kind in kinds):
        raise ValueError(f"it is a {kinds[0]}, and not a model ...{_HEAD}")


def _folder(model: str | Path) -> Path:
    """Where the files of a model are: itself, or the hub's, which is asked for what is not in its cache."""
    from zettel.embed.transformer import from_hub, in_cache

    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder
    name = str(model)
    if isinstance(model, Path) or name.startswith((".", "~", os.sep)) or not name.strip():
        raise ScorerError(f"no folder {name!r} to read a cross-encoder from")
    name = name if "/" in name else f"{OWNER}/{name}"
    try:
        return in_cache(name) or from_hub(name)
    except EmbedderUnavailable as error:
        raise ScorerError(f"the cross-encoder cannot be had: {error}") from error
