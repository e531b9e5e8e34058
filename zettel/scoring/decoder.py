"""MemoryDecoderScorer: the memory decoder (see :mod:`zettel.scoring.decoder_model`) as a scorer, with its weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from zettel.errors import ScorerError
from zettel.scoring.bank import BankWriter
from zettel.scoring.decoder_model import Batch, MemoryDecoder, MemoryDecoderConfig
from zettel.scoring.device import device_called
from zettel.scoring.slots import FEATURE_VERSION, PAIR_FEATURES, QUESTION_FEATURES, SLOT_FEATURES, Shown, show

if TYPE_CHECKING:
    from zettel.query import Floats, Question, Shortlist

SHIPPED = Path(__file__).parent / "weights" / "decoder"
CONFIG, WEIGHTS = "config.json", "model.safetensors"
READS = 100
"""Best notes that are read. Of what answers, the default scorer has 94 in 100 among them."""
AT_ONCE = 16
"""Questions scored in one pass: their pairs take 12 MB."""


class MemoryDecoderScorer:
    """Orders the best ``reads`` notes anew by a memory decoder.

    ``device``: "cpu", "cuda" or "mps", None for the processor, which is done before a GPU has been handed the numbers.
    ``compile`` has torch compile the model, which takes a minute at first and is for servers. A note's vector is read
    only where the store was filled by the embedder that the decoder learned from; elsewhere it goes by the features
    alone. Raises ``ScorerError`` for a device that is not there.
    """

    name = "decoder"

    def __init__(
        self, model: MemoryDecoder, *, reads: int = READS, device: str | None = None, compile: bool = False
    ) -> None:
        if reads < 1:
            raise ScorerError(f"reads={reads}: at least 1 is needed")
        self.reads = reads
        self.device = device_called(device or "cpu")
        self.model = model.to(self.device).eval()
        self.wants_vectors = bool(model.config.vector)
        self.bank = None if model.bank is None else BankWriter(model.bank, model.config.embedder)
        self._forward = torch.compile(self.model) if compile else self.model

    @classmethod
    def load(
        cls, folder: str | Path | None = None, *, device: str | None = None, compile: bool = False
    ) -> MemoryDecoderScorer:
        """The decoder in a folder with config.json and model.safetensors; None: that which comes with zettel.

        Raises ``ScorerError`` for files that are missing, damaged or do not fit each other.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load

        home = SHIPPED if folder is None else Path(folder)
        try:
            config = MemoryDecoderConfig.from_json((home / CONFIG).read_text(encoding="utf-8"))
            weights = load((home / WEIGHTS).read_bytes())
        except (OSError, SafetensorError, UnicodeDecodeError) as error:
            told = getattr(error, "strerror", None) or error
            raise ScorerError(f"{home} holds no memory decoder: {told}") from error
        if config.features != FEATURE_VERSION:
            raise ScorerError(
                f"{home} goes with features of version {config.features}, and this zettel has version "
                f"{FEATURE_VERSION}: train it anew with `zettel scorer train`"
            )
        model = MemoryDecoder(config)
        try:
            model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
        except RuntimeError as error:
            raise ScorerError(f"{home}: its weights are not those that {CONFIG} tells of") from error
        if not all(torch.isfinite(tensor).all() for tensor in model.state_dict().values()):
            raise ScorerError(f"{home}: its weights hold NaN or infinite numbers")
        return cls(model, device=device, compile=compile)

    def save(self, folder: str | Path) -> None:
        """Write config.json and model.safetensors, half precision, into a folder, which is made."""
        from safetensors.torch import save_file

        home = Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        (home / CONFIG).write_text(self.model.config.to_json(), encoding="utf-8")
        weights = {name: tensor.half().contiguous().cpu() for name, tensor in self.model.state_dict().items()}
        save_file(weights, str(home / WEIGHTS))

    async def rerank(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[Floats]:
        """Log-odds of each note, (m,) for each shortlist. Raises ``ScorerError`` for features that are no numbers."""
        from anyio import to_thread

        return await to_thread.run_sync(self.score, questions, shortlists)

    def score(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[Floats]:
        """The same, at once and in the calling thread."""
        shown = [show(question, one) for question, one in zip(questions, shortlists, strict=True)]
        return odds(self._forward, shown, self.model.config, self.device)


def odds(
    forward: Callable[[Batch], torch.Tensor], shown: Sequence[Shown], config: MemoryDecoderConfig, device: str = "cpu"
) -> list[Floats]:
    """What a model says of each shortlist, (m,) each; AT_ONCE questions are scored in one pass."""
    told = [one.score for one in shown]
    read = [place for place, one in enumerate(shown) if one.talk or not config.talk_only]
    for start in range(0, len(read), AT_ONCE):
        some = read[start : start + AT_ONCE]
        with torch.inference_mode():
            values = forward(batched([shown[place] for place in some], config, device)).float().cpu().numpy()
        for place, row in zip(some, values, strict=True):
            told[place] = row[: len(told[place])]
    return told


def batched(shown: Sequence[Shown], config: MemoryDecoderConfig, device: str = "cpu") -> Batch:
    """Questions side by side, filled up to the longest shortlist. Raises ``ScorerError`` for NaN."""
    b, m = len(shown), max(len(one.score) for one in shown)
    slots = np.zeros((b, m, len(SLOT_FEATURES)), np.float32)
    pairs = np.zeros((b, m, m, len(PAIR_FEATURES)), np.float32)
    vectors = np.zeros((b, m, config.vector), np.float32)
    vector = np.zeros((b, config.vector), np.float32)
    score = np.zeros((b, m), np.float32)
    absent = np.ones((b, m), np.bool_)
    asked = np.zeros((b, len(QUESTION_FEATURES)), np.float32)
    bank = np.zeros((b, config.bank, config.width), np.float32)
    written = np.zeros(b, np.bool_)
    for place, one in enumerate(shown):
        n = len(one.score)
        slots[place, :n], pairs[place, :n, :n], score[place, :n] = one.slots, one.pairs, one.score
        absent[place, :n], asked[place] = False, one.question
        if config.vector and one.embedder == config.embedder and one.vectors.shape[1] == config.vector:
            vectors[place, :n], vector[place] = one.vectors, one.vector
        if config.bank and one.bank is not None:
            bank[place], written[place] = one.bank, True
    if not all(np.isfinite(values).all() for values in (slots, pairs, score, vectors)):
        raise ScorerError("a feature of a note is NaN or infinite: nothing can be made of it")
    return Batch(
        *(
            torch.from_numpy(values).to(device)
            for values in (slots, asked, pairs, vectors, vector, score, absent, bank, written)
        )
    )
