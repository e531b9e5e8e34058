"""Reports of calls about their effect and their cost."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from zettel.model.base import Frozen


class ModelUse(Frozen):
    """The cost of one language model on one day (UTC).

    ``hits`` counts requests that the cache answered, at no cost. ``usd`` omits calls with an unknown price.
    """

    day: date
    model: str
    calls: int = 0
    hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0


class Tuned(NamedTuple):
    """The result of tuning a scorer on the search log.

    ``searches`` is the number of training searches, ``useful`` the number of these with a useful hit, and ``uses`` the
    number of useful hits. ``before`` and ``after`` are the mean gain of useful hits under the old and the tuned scorer,
    on held-out searches, and ``error`` is the standard error of the difference (``zettel.scoring.tuning``).
    ``accepted`` is True if the gain is significant; only then zettel writes the tuned scorer.
    """

    accepted: bool
    searches: int
    useful: int
    uses: int
    before: float
    after: float
    error: float


class Evolved(NamedTuple):
    """The effect of evolving: numbers of revised notes, merged notes, new insights, and archived (decayed) notes."""

    revised: int
    merged: int
    insights: int
    archived: int = 0


class Estimate(NamedTuple):
    """The estimated cost of annotating ``turns`` with a model. ``usd`` is None if the price is unknown."""

    model: str
    turns: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None

    @property
    def tokens(self) -> int:
        """The tokens of requests and answers together."""
        return self.prompt_tokens + self.completion_tokens
