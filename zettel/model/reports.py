"""What calls report about their effect and their cost."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from zettel.model.base import Frozen


class ModelUse(Frozen):
    """What a language model has cost on one day (UTC): calls, their tokens, and US dollars as far as prices are known.

    ``hits`` are questions that a kept answer served.
    """

    day: date
    model: str
    calls: int = 0
    hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0


class Tuned(NamedTuple):
    """What tuning a scorer brought.

    ``searches`` were learned from, in ``useful`` of which something was of use, ``uses`` notes in all. ``before`` and
    ``after`` are the gain of these notes by the order of the scorer as it was and as tuned, on searches held back, and
    ``error`` the standard error of the difference: see ``zettel.scoring.tuning.cross_validate``. Only if it is better
    by more than chance is it ``accepted``, and written.
    """

    accepted: bool
    searches: int
    useful: int
    uses: int
    before: float
    after: float
    error: float


class Evolved(NamedTuple):
    """What evolving changed: notes that were revised, notes that were merged into others, new insights, and notes that
    had faded and were archived."""

    revised: int
    merged: int
    insights: int
    archived: int = 0


class Estimate(NamedTuple):
    """The estimated calls, turns, and tokens of requests and answers of ``model``. ``usd`` is None if unknown."""

    model: str
    turns: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None

    @property
    def tokens(self) -> int:
        """Tokens of requests and answers together."""
        return self.prompt_tokens + self.completion_tokens
