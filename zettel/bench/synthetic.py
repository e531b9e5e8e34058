"""A made-up scope of any size, the same for the same size on every machine: real words, in no sensible order."""

from __future__ import annotations

import json
import random
from itertools import accumulate

from zettel.embed.static import SHIPPED
from zettel.model import Event

SEED = 11
HEAD = 5  # a word's weight is 1 / (rank + HEAD): about as uneven as a language's, after Zipf
SPEAKERS = ("Ann", "Bob", "Cleo")
SESSION = 40  # messages
TOPIC = 30  # words that a session keeps coming back to
ON_TOPIC = 0.6  # share of a message's words that are its session's
UNDATED_EVERY = 7  # messages
WHEN = "2024-01-01T00:00:00Z"
QUESTIONS = 60
ASKED_WORDS = 4  # of one message


def large_scope(notes: int) -> tuple[list[Event], list[str]]:
    """Messages in sessions, all of one moment or undated, and questions that each take words from one of them."""
    chosen = random.Random(SEED)
    vocabulary = _words()
    chosen.shuffle(vocabulary)
    weights = list(accumulate(1 / (rank + HEAD) for rank in range(len(vocabulary))))
    topics = [chosen.sample(vocabulary, TOPIC) for _ in range(0, notes, SESSION)]
    texts = []
    for n in range(notes):
        length = chosen.randint(6, 18)
        common = chosen.choices(vocabulary, cum_weights=weights, k=length)
        topical = chosen.choices(topics[n // SESSION], k=length)
        texts.append(" ".join(a if chosen.random() < ON_TOPIC else b for a, b in zip(topical, common, strict=True)))
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


def _words() -> list[str]:
    """The whole words that the shipped embedder knows, in the order of the alphabet."""
    known = json.loads((SHIPPED / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    return sorted(word for word in known if word.isascii() and word.isalpha() and len(word) > 2)
