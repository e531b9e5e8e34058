"""The memory decoder as a reranker, with its weight files."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from zettel.errors import ScorerError
from zettel.scoring.decoder_inputs import (
    FEATURE_VERSION,
    NOTE_FEATURES,
    PAIR_FEATURES,
    QUESTION_FEATURES,
    DecoderInput,
    decoder_input,
)
from zettel.scoring.decoder_model import DecoderBatch, MemoryDecoder, MemoryDecoderConfig
from zettel.scoring.device import resolve_device

if TYPE_CHECKING:
    from zettel.ports.query import Floats, Question, Shortlist

SHIPPED = Path(__file__).parent / "weights" / "decoder"
CONFIG, WEIGHTS = "config.json", "model.safetensors"
READS = 100
"""Notes to rerank. The default scorer ranks 94 of 100 answers among them."""
BATCH_SIZE = 16
"""Questions per forward pass. Their pair features take 12 MB."""


class MemoryDecoderScorer:
    """Reranks the best ``reads`` notes with a memory decoder.

    ``device`` is "cpu" (default), "cuda" or "mps". ``compile`` compiles the model with ``torch.compile``: the first
    call takes a minute, so it is for servers. The decoder reads vectors only if the store uses the embedder that the
    decoder was trained with; otherwise it reads the other features. Raises ``ScorerError`` for an unavailable device.
    """

    name = "decoder"
    reads_pairs = True
    most_odds = math.inf
    reads_utility = True

    def __init__(
        self, model: MemoryDecoder, *, reads: int = READS, device: str | None = None, compile: bool = False
    ) -> None:
        if reads < 1:
            raise ScorerError(f"reads={reads} must be at least 1")
        self.reads = reads
        self.device = resolve_device(device or "cpu")
        self.model = model.to(self.device).eval()
        self.wants_vectors = bool(model.config.vector_dim)
        self._forward = torch.compile(self.model, dynamic=True) if compile else self.model

    @classmethod
    def load(
        cls, folder: str | Path | None = None, *, device: str | None = None, compile: bool = False
    ) -> MemoryDecoderScorer:
        """Load config.json and model.safetensors from a folder; None: the shipped decoder.

        Raises ``ScorerError`` for files that are missing, damaged or do not match each other.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load

        home = SHIPPED if folder is None else Path(folder)
        try:
            config = MemoryDecoderConfig.from_json((home / CONFIG).read_text(encoding="utf-8"))
            weights = load((home / WEIGHTS).read_bytes())
        except (OSError, SafetensorError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ScorerError(f"{home} does not contain a memory decoder: {reason}") from error
        if config.feature_version != FEATURE_VERSION:
            raise ScorerError(
                f"{home} was trained on features of version {config.feature_version}, and this zettel has version "
                f"{FEATURE_VERSION}: train it again with `zettel scorer train`"
            )
        model = MemoryDecoder(config)
        try:
            model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
        except RuntimeError as error:
            raise ScorerError(f"{home}: {WEIGHTS} does not match {CONFIG}") from error
        if not all(torch.isfinite(tensor).all() for tensor in model.state_dict().values()):
            raise ScorerError(f"{home}: {WEIGHTS} contains NaN or infinite numbers")
        return cls(model, device=device, compile=compile)

    def save(self, folder: str | Path) -> None:
        """Write config.json and model.safetensors (half precision) to a folder, which is created if needed."""
        from safetensors.torch import save_file

        home = Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        (home / CONFIG).write_text(self.model.config.to_json(), encoding="utf-8")
        weights = {name: tensor.half().contiguous().cpu() for name, tensor in self.model.state_dict().items()}
        save_file(weights, str(home / WEIGHTS))

    async def rerank(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[Floats]:
        """Log-odds of each note, (m,) for each shortlist. Raises ``ScorerError`` for NaN in the features."""
        from anyio import to_thread

        return await to_thread.run_sync(self.score, questions, shortlists)

    def score(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[Floats]:
        """``rerank`` in the calling thread."""
        return self.predict([decoder_input(*pair) for pair in zip(questions, shortlists, strict=True)])

    def predict(self, inputs: Sequence[DecoderInput]) -> list[Floats]:
        """Log-odds of each note, (m,) for each input."""
        return predict(self._forward, inputs, self.model.config, self.device)


def predict(
    forward: Callable[[DecoderBatch], torch.Tensor],
    inputs: Sequence[DecoderInput],
    config: MemoryDecoderConfig,
    device: str = "cpu",
) -> list[Floats]:
    """The model's log-odds for each shortlist, (m,) each. Skips documents if the decoder reads conversations only."""
    scores = [input.base_score for input in inputs]
    places = [place for place, input in enumerate(inputs) if input.is_conversation or not config.conversations_only]
    for start in range(0, len(places), BATCH_SIZE):
        chunk = places[start : start + BATCH_SIZE]
        with torch.inference_mode():
            rows = forward(to_batch([inputs[place] for place in chunk], config, device)).float().cpu().numpy()
        for place, row in zip(chunk, rows, strict=True):
            scores[place] = row[: len(scores[place])]
    return scores


def to_batch(inputs: Sequence[DecoderInput], config: MemoryDecoderConfig, device: str = "cpu") -> DecoderBatch:
    """Pad inputs to the longest shortlist, on ``device``. Raises ``ScorerError`` for NaN or infinite features."""
    b, m = len(inputs), max(len(input.base_score) for input in inputs)
    arrays = {
        "notes": np.zeros((b, m, len(NOTE_FEATURES)), np.float32),
        "question": np.zeros((b, len(QUESTION_FEATURES)), np.float32),
        "pairs": np.zeros((b, m, m, len(PAIR_FEATURES)), np.float32),
        "note_vectors": np.zeros((b, m, config.vector_dim), np.float32),
        "question_vector": np.zeros((b, config.vector_dim), np.float32),
        "base_score": np.zeros((b, m), np.float32),
    }
    padding_mask = np.ones((b, m), np.bool_)
    for row, input in enumerate(inputs):
        n = len(input.base_score)
        padding_mask[row, :n] = False
        arrays["notes"][row, :n] = input.notes
        arrays["question"][row] = input.question
        arrays["pairs"][row, :n, :n] = input.pairs
        arrays["base_score"][row, :n] = input.base_score
        if config.vector_dim and input.embedder == config.embedder and input.note_vectors.shape[1] == config.vector_dim:
            arrays["note_vectors"][row, :n], arrays["question_vector"][row] = input.note_vectors, input.question_vector
    if not all(np.isfinite(values).all() for values in arrays.values()):
        raise ScorerError("a feature of a note is NaN or infinite: check the embedder and the default scorer")
    tensors = {name: torch.from_numpy(values).to(device) for name, values in arrays.items()}
    return DecoderBatch(**tensors, padding_mask=torch.from_numpy(padding_mask).to(device))
