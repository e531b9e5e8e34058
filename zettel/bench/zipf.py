"""Synthetic scopes of any size with Zipf-distributed words, the same on every machine.

Each session is generated from the seed on its own, so that a million messages need no list. The vocabulary contains the
shipped embedder's words by frequency, followed by compounds of two. The sentences have no meaning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.embed.static import SHIPPED
from zettel.model import Event
from zettel.text.tokens import token_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

VERSION = 1
"""Incremented when the same seed and size give other messages."""
SEED = 11
VOCABULARY = 50_000  # words
SHIFT = 2.7
"""A word's weight is 1 / (rank + SHIFT), rank from 0: Zipf's law with exponent 1 and the shift that Mandelbrot (1953,
"An Informational Theory of the Statistical Structure of Language") gave it, with his value for English."""
COMMON = 300  # ranks of the most frequent words, two thirds of them function words; never a topic
NAME_EVERY, NAMES_FROM = 12, 1_000  # every twelfth word from rank 1,000 is a name, capitalized
SESSION = 40  # messages
TOPIC = 30  # words of a session's topic
ON_TOPIC = 0.5  # share of a message's content words that are on its session's topic
SHORTEST, LONGEST = 10, 21  # words in a message: 100 characters on average
QUESTION_EVERY = 8  # messages
SPEAKERS = ("Ann", "Bob", "Cleo", "Dan")
BEGIN = datetime(2018, 1, 1, 8, tzinfo=timezone.utc)
DAYS = 6 * 365.0  # over which the sessions of a scope of any size are spread
PAUSE = 5.0  # minutes between two messages, at most
ASKED_CONTENT, ASKED_COMMON = 4, 4
"""Words of a question: content words of one message, and COMMON words, most of them function words."""

_QUESTIONS = 2**32  # above all session numbers, so that questions have their own random numbers


class MadeQuestion(NamedTuple):
    """A question, and the external id of the message with its words."""

    text: str
    source: str


class Message(NamedTuple):
    """Text, speaker and time of a message."""

    text: str
    speaker: str
    at: datetime


class ZipfScope:
    """``notes`` messages in sessions; any session, or all of them in order."""

    def __init__(self, notes: int, seed: int = SEED) -> None:
        self.notes = notes
        self._seed = seed
        self._words, self._content = _vocabulary()
        self._spelled = frozenset(self._words)
        weights = 1 / (np.arange(len(self._words)) + SHIFT)
        self._share = _cumulated(weights)
        self._topical = _cumulated(weights * self._content * (np.arange(len(weights)) >= COMMON))
        self._common = _cumulated(weights[:COMMON])

    def __iter__(self) -> Iterator[Event]:
        """Generate all messages in order."""
        for number in range(-(-self.notes // SESSION)):
            yield from self.session(number)

    def session(self, number: int) -> list[Event]:
        """Return the messages of one session; the last session may be short."""
        return [
            Event(
                external_id=str(place), content=message.text, speaker=message.speaker, session=f"s{number}",
                occurred_at=message.at,
            )
            for place, message in enumerate(self.messages(number), number * SESSION)
        ]

    def messages(self, number: int) -> Iterator[Message]:
        """Generate the messages of one session without the cost of ``Event``."""
        chance = np.random.Generator(np.random.PCG64([self._seed, number]))
        topic = np.searchsorted(self._topical, chance.random(TOPIC))
        sizes = SHORTEST + (chance.random(SESSION) * (LONGEST + 1 - SHORTEST)).astype(int)
        drawn = np.searchsorted(self._share, chance.random(sizes.sum()))
        turned = self._content[drawn] & (chance.random(len(drawn)) < ON_TOPIC)
        drawn[turned] = topic[(chance.random(int(turned.sum())) * TOPIC).astype(int)]
        speakers = (chance.random(SESSION) * len(SPEAKERS)).astype(int)
        minutes = np.cumsum(chance.random(SESSION) * PAUSE)
        begin = BEGIN + timedelta(days=DAYS * number * SESSION / self.notes)
        first = number * SESSION
        waiting = iter(drawn.tolist())
        draws = zip(sizes.tolist(), speakers.tolist(), minutes.tolist(), range(first, self.notes), strict=False)
        for size, speaker, minute, place in draws:
            text = self._sentence(islice(waiting, size), is_question=place % QUESTION_EVERY == 0)
            yield Message(text, SPEAKERS[speaker], begin + timedelta(minutes=round(minute, 1)))

    def questions(self, count: int) -> list[MadeQuestion]:
        """Return questions of about eight words of one message and common words, in random order."""
        chance = np.random.Generator(np.random.PCG64([self._seed, _QUESTIONS]))
        made = []
        for at in chance.random(count) * self.notes:
            number, place = divmod(int(at), SESSION)
            event = self.session(number)[place]
            sentence = self._vocabulary_words(event.content)
            content = list(dict.fromkeys(word for word in sentence if token_of(word.lower())))
            sampled = np.argsort(chance.random(len(content)))[:ASKED_CONTENT]
            common = np.searchsorted(self._common, chance.random(ASKED_COMMON))
            words = [*(content[i] for i in sampled), *(self._words[i] for i in common)]
            text = " ".join(words[i] for i in np.argsort(chance.random(len(words))))
            made.append(MadeQuestion(f"{text[:1].upper()}{text[1:]}?", str(event.external_id)))
        return made

    def _vocabulary_words(self, sentence: str) -> list[str]:
        """Split a sentence into words as spelled in the vocabulary."""
        return [word if word in self._spelled else word.lower() for word in sentence[:-1].split()]

    def _sentence(self, ranks: Iterable[int], *, is_question: bool) -> str:
        text = " ".join(map(self._words.__getitem__, ranks))
        return f"{text[:1].upper()}{text[1:]}{'?' if is_question else '.'}"


@cache
def _vocabulary() -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    """Return words by rank and a mask of the content words; cached, because it takes half a second.

    The shipped embedder's whole words come first, by frequency, then compounds. Some words are names.
    """
    known: dict[str, int] = json.loads((SHIPPED / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    whole_words = [
        word
        for word in sorted(known, key=known.__getitem__)
        if word.isascii() and word.isalpha() and (len(word) > 2 or not token_of(word))
    ]
    parts = [word for word in whole_words[COMMON:] if 4 <= len(word) <= 6]
    words = dict.fromkeys(whole_words)
    step = len(parts) // 2 + 1
    at = 0
    while len(words) < VOCABULARY:
        words[parts[at % len(parts)] + parts[(at * 7 + at // len(parts) * 13 + step) % len(parts)]] = None
        at += 1
    spelled = tuple(
        word.capitalize() if rank >= NAMES_FROM and rank % NAME_EVERY == 0 and token_of(word) else word
        for rank, word in enumerate(words)
    )
    return spelled, np.array([bool(token_of(word.lower())) for word in spelled])


def _cumulated(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    total: NDArray[np.float64] = np.cumsum(weights) / weights.sum()
    total[-1] = 1.0
    return total
