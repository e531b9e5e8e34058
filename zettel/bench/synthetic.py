"""A made-up scope of any size, the same for the same size on every machine."""

from __future__ import annotations

import random

from zettel.model import Event

SEED = 11
SYLLABLES = ("ka", "lo", "mi", "ren", "sto", "va", "pi", "dun", "gre", "th", "o", "sul")
VOCABULARY = 8000  # words, some of them alike
HEAD = 5  # a word's weight is 1 / (rank + HEAD): about as uneven as a language's, after Zipf
SPEAKERS = ("Ann", "Bob", "Cleo")
SESSION = 40  # messages
UNDATED_EVERY = 7  # messages
WHEN = "2024-01-01T00:00:00Z"
QUESTIONS = 60
ASKED_WORDS = 4  # of one message


def large_scope(notes: int) -> tuple[list[Event], list[str]]:
    """Messages in sessions, all of one moment or undated, and questions that each take words from one of them."""
    chosen = random.Random(SEED)
    vocabulary = ["".join(chosen.choices(SYLLABLES, k=chosen.randint(2, 4))) for _ in range(VOCABULARY)]
    weights = [1 / (rank + HEAD) for rank in range(len(vocabulary))]
    texts = [" ".join(chosen.choices(vocabulary, weights, k=chosen.randint(6, 18))) for _ in range(notes)]
    events = [
        Event(
            id=str(n),
            content=text,
            role=chosen.choice(SPEAKERS),
            session=f"s{n // SESSION}",
            occurred_at=WHEN if n % UNDATED_EVERY else None,
        )
        for n, text in enumerate(texts)
    ]
    questions = [" ".join(chosen.sample(chosen.choice(texts).split(), ASKED_WORDS)) for _ in range(QUESTIONS)]
    return events, questions
