"""A ranking with the learned preferences of a scope.

``zettel scorer tune`` adds them to the memory decoder and writes both to a folder. The tune job adds them to the
default scorer and stores them in the memory (``zettel.search.learned``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from zettel.errors import ScorerError
from zettel.scoring.decoder_inputs import DecoderInput, decoder_input
from zettel.scoring.preferences import Preferences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zettel.ports.query import Floats, Question, Shortlist
    from zettel.scoring.decoder import MemoryDecoderScorer

LEARNED_READS = 50
"""Notes that preferences reorder on top of the default scorer."""


LEARNED_ODDS = 3.0
"""Largest log-odds by which preferences raise or lower a note on top of the default scorer. So a note of the preferred
kind that does not answer stays behind one that does."""


class OddsModel(Protocol):
    """A model to which preferences are added.

    ``reads_pairs``: it needs the features of pairs of notes. ``most_odds`` bounds the log-odds of the preferences.
    ``reads_utility``: the preferences know the usefulness of each note, which reads the search log in every search.
    """

    reads: int
    wants_vectors: bool
    reads_pairs: bool
    most_odds: float
    reads_utility: bool

    def predict(self, inputs: Sequence[DecoderInput]) -> list[Floats]:
        """Return the log-odds of each note, (m,) for each input."""
        ...


class DefaultOdds:
    """The log-odds of the default scorer's own order: the logarithms of its scores."""

    reads = LEARNED_READS
    wants_vectors = False
    reads_pairs = False
    most_odds = LEARNED_ODDS
    reads_utility = False

    def predict(self, inputs: Sequence[DecoderInput]) -> list[Floats]:
        return [input.base_score for input in inputs]


class TunedScorer:
    """Reranks by the log-odds of a decoder, or of the default scorer, plus those of learned preferences."""

    name = "tuned"

    def __init__(self, decoder: OddsModel, preferences: Preferences) -> None:
        self.decoder = decoder
        self.preferences = preferences
        self.reads = decoder.reads
        self.wants_utility = decoder.reads_utility
        self.wants_vectors = decoder.wants_vectors or preferences.vector_dim > 0

    async def rerank(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[Floats]:
        """Log-odds of each note, (m,) for each shortlist. Raises ``ScorerError`` for NaN in the features."""
        from anyio import to_thread

        return await to_thread.run_sync(self.score, questions, shortlists)

    def score(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[Floats]:
        """``rerank`` in the calling thread."""
        pairs = self.decoder.reads_pairs
        inputs = [decoder_input(*each, pairs=pairs) for each in zip(questions, shortlists, strict=True)]
        odds = self.decoder.predict(inputs)
        for place, shortlist in enumerate(shortlists):
            utility = np.zeros(len(shortlist.rows), np.float32) if shortlist.utility is None else shortlist.utility
            learned = self.preferences.score(inputs[place], shortlist, utility)
            odds[place] = odds[place] + np.clip(learned, -self.decoder.most_odds, self.decoder.most_odds)
        return odds


def save(scorer: TunedScorer, folder: str | Path) -> None:
    """Write the decoder of a scorer and its preferences to a folder, which is created if needed."""
    from zettel.scoring.decoder import MemoryDecoderScorer

    assert isinstance(scorer.decoder, MemoryDecoderScorer)
    home = Path(folder)
    scorer.decoder.save(home)
    scorer.preferences.save(home)


def load(folder: str | Path | None = None) -> MemoryDecoderScorer | TunedScorer:
    """Load a decoder, with preferences if the folder has them; None: the shipped decoder. Raises ``ScorerError``."""
    from zettel.scoring.decoder import MemoryDecoderScorer

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
