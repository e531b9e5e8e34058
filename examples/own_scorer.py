"""Rank hits with your own scorer, which counts adjacent words.

Run it: python examples/own_scorer.py
"""

import re
from itertools import pairwise

import numpy as np

from zettel import Memory

MESSAGES = [
    "Ida painted a boat shed red.",
    "Nobody painted anything red this summer.",
    "The red boat was a birthday gift for Nils, who gave it its colour.",
]
QUESTION = "Who painted the red boat?"


class Phrases:
    """Counts the pairs of neighbouring words that a note shares with the question."""

    name = "phrases"  # the name in hit.why.scorer
    reads = 20  # number of best notes to rerank
    wants_vectors = False  # True adds their vectors

    async def rerank(self, questions, shortlists):
        """Return a score for each note of each shortlist; larger is better."""
        return [
            np.array([len(pairs(question.text) & pairs(note.content)) for note in best.notes])
            for question, best in zip(questions, shortlists, strict=True)
        ]


def pairs(text: str) -> set[tuple[str, str]]:
    words = re.findall(r"\w+", text.lower())
    return set(pairwise(words))


def main() -> None:
    with Memory(":memory:") as memory:  # Memory(..., scorer=Phrases()) applies to every search
        memory.add_many([{"content": text} for text in MESSAGES], wait=True)
        for scorer in ("fusion", Phrases()):
            (best,) = memory.search(QUESTION, k=1, scorer=scorer)
            print(f"{best.why.scorer}: {best.note.content}")


if __name__ == "__main__":
    main()
