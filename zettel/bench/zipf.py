"""A made-up scope of any size whose words are as uneven as a language's, the same on every machine.

Session by session from a seed, so that a million messages need no list: whoever wants one message makes its session.
The words are those of the shipped embedder, which stand in the order of their frequency, and behind them compounds of
two of them; so the most frequent are the function words, as in a language. They say nothing together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.annotate.tokens import token_of
from zettel.embed.static import SHIPPED
from zettel.model import Event

if TYPE_CHECKING:
    from numpy.typing import NDArray

VERSION = 1
"""Goes up whenever the same seed and size would give other messages."""
SEED = 11
VOCABULARY = 50_000  # words
SHIFT = 2.7
"""A word's weight is 1 / (rank + SHIFT), rank from 0: Zipf's law with exponent 1 and the shift that Mandelbrot (1953,
"An Informational Theory of the Statistical Structure of Language") gave it, with his value for English."""
COMMON = 300  # ranks of the most frequent words, two thirds of them function words by use: nobody's topic
NAME_EVERY, NAMES_FROM = 12, 1_000  # of the ranks beyond the second, every twelfth is a name, written like one
SESSION = 40  # messages
TOPIC = 30  # words that a session keeps coming back to
ON_TOPIC = 0.5  # share of a message's words of content that are its session's
SHORTEST, LONGEST = 10, 21  # words in a message: 100 characters on average
QUESTION_EVERY = 8  # messages
SPEAKERS = ("Ann", "Bob", "Cleo", "Dan")
BEGIN = datetime(2018, 1, 1, 8, tzinfo=timezone.utc)
DAYS = 6 * 365.0  # over which the sessions of a scope of any size are spread
PAUSE = 5.0  # minutes between two messages, at most
ASKED_CONTENT, ASKED_COMMON = 4, 4
"""Words of a question: of content, from one message, and among the COMMON, most of which are function words."""

_QUESTIONS = 2**32  # sessions are numbered below it, so that questions have random numbers of their own


class MadeQuestion(NamedTuple):
    """A question, and the ``Event.id`` of the message whose words it has."""

    text: str
    source: str


class Said(NamedTuple):
    """What is said, by whom and when."""

    text: str
    role: str
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
        """All messages in order, made as they are asked for."""
        for number in range(-(-self.notes // SESSION)):
            yield from self.session(number)

    def session(self, number: int) -> list[Event]:
        """The messages of one session; the last may be a short one."""
        return [
            Event(id=str(place), content=one.text, role=one.role, session=f"s{number}", occurred_at=one.at)
            for place, one in enumerate(self.said(number), number * SESSION)
        ]

    def said(self, number: int) -> Iterator[Said]:
        """The same bare, for who wants many of them."""
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
        told = zip(sizes.tolist(), speakers.tolist(), minutes.tolist(), range(first, self.notes), strict=False)
        for size, speaker, minute, place in told:
            text = self._sentence(islice(waiting, size), place % QUESTION_EVERY == 0)
            yield Said(text, SPEAKERS[speaker], begin + timedelta(minutes=round(minute, 1)))

    def questions(self, count: int) -> list[MadeQuestion]:
        """Questions of about eight words: some of one message, among common ones, in no order."""
        chance = np.random.Generator(np.random.PCG64([self._seed, _QUESTIONS]))
        made = []
        for at in chance.random(count) * self.notes:
            number, place = divmod(int(at), SESSION)
            event = self.session(number)[place]
            said = list(dict.fromkeys(word for word in self._unspoken(event.content) if token_of(word.lower())))
            kept = np.argsort(chance.random(len(said)))[:ASKED_CONTENT]
            common = np.searchsorted(self._common, chance.random(ASKED_COMMON))
            words = [*(said[i] for i in kept), *(self._words[i] for i in common)]
            text = " ".join(words[i] for i in np.argsort(chance.random(len(words))))
            made.append(MadeQuestion(f"{text[:1].upper()}{text[1:]}?", str(event.id)))
        return made

    def _unspoken(self, sentence: str) -> list[str]:
        """The words of a sentence as the vocabulary spells them."""
        return [word if word in self._spelled else word.lower() for word in sentence[:-1].split()]

    def _sentence(self, ranks: Iterable[int], asks: bool) -> str:
        text = " ".join(map(self._words.__getitem__, ranks))
        return f"{text[:1].upper()}{text[1:]}{'?' if asks else '.'}"


@cache
def _vocabulary() -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    """Words by rank: those the shipped embedder knows whole, most frequent first, then compounds; some are names.

    And which of them are words of content. It takes half a second, and somebody may want hundreds of scopes.
    """
    known: dict[str, int] = json.loads((SHIPPED / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    whole = [
        word
        for word in sorted(known, key=known.__getitem__)
        if word.isascii() and word.isalpha() and (len(word) > 2 or not token_of(word))
    ]
    parts = [word for word in whole[COMMON:] if 4 <= len(word) <= 6]
    words = dict.fromkeys(whole)
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
