"""What simple systems reach: flat vectors, and BM25, over the same texts and with the same counting.

Rankings are exact; ties go to the earlier text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from zettel.annotate.tokens import tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.ports import Embedder

K1 = 1.2
"""How soon repeating a word stops counting; the usual value, see ``BM25``."""
B = 0.75
"""How much long texts are marked down; the usual value."""


class BM25:
    """Okapi BM25 over tokens as zettel makes them.

    Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond", equation 3.15;
    rarity is ln(1 + (N - df + 0.5) / (df + 0.5)), which never goes below zero.
    """

    name = "BM25"

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(tokenize(text)) for text in texts]
        self._size = len(texts)
        self._lengths = np.array([sum(count.values()) for count in counts], dtype=np.float64)
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for place, count in enumerate(counts):
            for token, times in count.items():
                self._postings.setdefault(token, []).append((place, times))

    async def rank(self, question: str, k: int) -> list[int]:
        """Places of the ``k`` best texts, those without any asked word left out."""
        scores = np.zeros(self._size)
        norm = K1 * (1 - B + B * self._lengths / max(self._lengths.mean(), 1.0))
        for token in set(tokenize(question)):
            postings = self._postings.get(token, [])
            rarity = np.log1p((self._size - len(postings) + 0.5) / (len(postings) + 0.5))
            for place, times in postings:
                scores[place] += rarity * times * (K1 + 1) / (times + norm[place])
        return [place for place in _best(scores, k) if scores[place] > 0]


class FlatVectors:
    """Cosine between the question and every text."""

    name = "vectors"

    def __init__(self, embedder: Embedder, vectors: NDArray[np.float32]) -> None:
        self._embedder = embedder
        self._vectors = vectors

    @classmethod
    async def over(cls, texts: Sequence[str], embedder: Embedder) -> FlatVectors:
        """Embed the texts; ``vectors`` is (n, dim), unit rows."""
        return cls(embedder, await embedder.embed(texts))

    async def rank(self, question: str, k: int) -> list[int]:
        """Places of the ``k`` best texts."""
        (asked,) = await self._embedder.embed([question])
        return _best(self._vectors @ asked, k)


def _best(scores: NDArray[np.floating], k: int) -> list[int]:
    return [int(place) for place in np.argsort(-scores, kind="stable")[:k]]
