"""A synthetic scope of any size with random sentences, the same on every machine."""

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
TOPIC = 30  # words of a session's topic
ON_TOPIC = 0.6  # share of a message's words that are on its session's topic
UNDATED_EVERY = 7  # messages
WHEN = "2024-01-01T00:00:00Z"
QUESTIONS = 60
QUESTION_WORDS = 4  # of one message


def large_scope(notes: int) -> tuple[list[Event], list[str]]:
    """Return messages in sessions, all undated or of the same time, and questions with words of one message."""
    chance = random.Random(SEED)
    vocabulary = _words()
    chance.shuffle(vocabulary)
    weights = list(accumulate(1 / (rank + HEAD) for rank in range(len(vocabulary))))
    topics = [chance.sample(vocabulary, TOPIC) for _ in range(0, notes, SESSION)]
    texts = []
    for n in range(notes):
        length = chance.randint(6, 18)
        common = chance.choices(vocabulary, cum_weights=weights, k=length)
        topical = chance.choices(topics[n // SESSION], k=length)
        texts.append(" ".join(a if chance.random() < ON_TOPIC else b for a, b in zip(topical, common, strict=True)))
    events = [
        Event(
            external_id=str(n),
            content=text,
            speaker=chance.choice(SPEAKERS),
            session=f"s{n // SESSION}",
            occurred_at=WHEN if n % UNDATED_EVERY else None,
        )
        for n, text in enumerate(texts)
    ]
    questions = [" ".join(chance.sample(chance.choice(texts).split(), QUESTION_WORDS)) for _ in range(QUESTIONS)]
    return events, questions


def _words() -> list[str]:
    """Return the whole words of the shipped embedder's vocabulary in alphabetical order."""
    known = json.loads((SHIPPED / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    return sorted(word for word in known if word.isascii() and word.isalpha() and len(word) > 2)
