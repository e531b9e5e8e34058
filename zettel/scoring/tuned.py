"""A memory decoder with the learned preferences of a scope, written by ``zettel scorer tune``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zettel.errors import ScorerError
from zettel.scoring.decoder import MemoryDecoderScorer
from zettel.scoring.decoder_inputs import decoder_input
from zettel.scoring.preferences import Preferences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zettel.ports.query import Floats, Question, Shortlist


class TunedScorer:
    """Reranks by the log-odds of a decoder plus those of learned preferences."""

    name = "tuned"
    wants_utility = True

    def __init__(self, decoder: MemoryDecoderScorer, preferences: Preferences) -> None:
        self.decoder = decoder
        self.preferences = preferences
        self.reads = decoder.reads
        self.wants_vectors = decoder.wants_vectors or preferences.vector_dim > 0

    def save(self, folder: str | Path) -> None:
        """Write the decoder and the preferences to a folder, which is created if needed."""
        home = Path(folder)
        self.decoder.save(home)
        self.preferences.save(home)

    async def rerank(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[Floats]:
        """Log-odds of each note, (m,) for each shortlist. Raises ``ScorerError`` for NaN in the features."""
        from anyio import to_thread

        return await to_thread.run_sync(self.score, questions, shortlists)

    def score(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[Floats]:
        """``rerank`` in the calling thread."""
        inputs = [decoder_input(*pair) for pair in zip(questions, shortlists, strict=True)]
        odds = self.decoder.predict(inputs)
        for place, shortlist in enumerate(shortlists):
            utility = np.zeros(len(shortlist.rows), np.float32) if shortlist.utility is None else shortlist.utility
            odds[place] = odds[place] + self.preferences.score(inputs[place], shortlist, utility)
        return odds


def load(folder: str | Path | None = None) -> MemoryDecoderScorer | TunedScorer:
    """Load a decoder, with preferences if the folder has them; None: the shipped decoder. Raises ``ScorerError``."""
    decoder = MemoryDecoderScorer.load(folder)
    preferences = None if folder is None else Preferences.load(Path(folder))
    return decoder if preferences is None else TunedScorer(decoder, preferences)


def load_for_tuning(folder: str | Path, decoder: str | Path | None = None) -> TunedScorer:
    """The scorer to tune: the one in ``folder``, else ``decoder`` (None: the shipped one).

    Raises ``ScorerError`` if ``folder`` contains anything else.
    """
    home = Path(folder)
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        if decoder is not None:
            raise ScorerError(
                f"{home} already contains a scorer, and tuning continues from it: name another folder, or leave out "
                "decoder="
            )
        scorer = load(home)
    else:
        scorer = load(decoder)
    if isinstance(scorer, TunedScorer):
        return scorer
    config = scorer.model.config
    return TunedScorer(scorer, Preferences.empty(config.vector_dim, config.embedder))
