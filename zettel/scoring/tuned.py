"""A memory decoder with the taste of a scope: what ``zettel scorer tune`` writes, ``scorer="decoder:FOLDER"`` loads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zettel.errors import ScorerError
from zettel.scoring.decoder import MemoryDecoderScorer, odds
from zettel.scoring.slots import show
from zettel.scoring.taste import Taste

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zettel.query import Floats, Question, Shortlist


class TunedScorer:
    """Orders the best notes anew by what a decoder says of them, and a taste."""

    name = "tuned"
    wants_utility = True

    def __init__(self, decoder: MemoryDecoderScorer, taste: Taste) -> None:
        self.decoder = decoder
        self.taste = taste
        self.reads = decoder.reads
        self.wants_vectors = decoder.wants_vectors or taste.vector > 0
        self.bank = decoder.bank

    def save(self, folder: str | Path) -> None:
        """Write the decoder and the taste into a folder, which is made."""
        home = Path(folder)
        self.decoder.save(home)
        self.taste.save(home)

    async def rerank(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[Floats]:
        """Log-odds of each note, (m,) for each shortlist. Raises ``ScorerError`` for features that are no numbers."""
        from anyio import to_thread

        return await to_thread.run_sync(self.score, questions, shortlists)

    def score(self, questions: Sequence[Question], shortlists: Sequence[Shortlist]) -> list[Floats]:
        """The same, at once and in the calling thread."""
        shown = [show(question, one) for question, one in zip(questions, shortlists, strict=True)]
        told = odds(self.decoder.model, shown, self.decoder.model.config, self.decoder.device)
        for place, one in enumerate(shortlists):
            utility = np.zeros(len(one.rows), np.float32) if one.utility is None else one.utility
            told[place] = told[place] + self.taste.of(shown[place], one, utility)
        return told


def load(folder: str | Path | None = None) -> MemoryDecoderScorer | TunedScorer:
    """The decoder of a folder, with its taste if it has one; None: the one that is shipped. Raises ``ScorerError``."""
    decoder = MemoryDecoderScorer.load(folder)
    taste = None if folder is None else Taste.load(Path(folder))
    return decoder if taste is None else TunedScorer(decoder, taste)


def continued(folder: str | Path, decoder: str | Path | None = None) -> TunedScorer:
    """What is tuned on: what stands in ``folder``, or else the ``decoder`` (None: the one that is shipped).

    Raises ``ScorerError`` for a folder with something else in it.
    """
    home = Path(folder)
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        if decoder is not None:
            raise ScorerError(f"{home} is there already, and is tuned on: name another folder, or no other decoder")
        found = load(home)
    else:
        found = load(decoder)
    if isinstance(found, TunedScorer):
        return found
    config = found.model.config
    return TunedScorer(found, Taste.none(config.vector, config.embedder))
