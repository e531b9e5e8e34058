"""The log of searches and what feedback reports about them."""

from __future__ import annotations

from typing import Literal, NamedTuple

from zettel.model.base import Frozen, Moment


class Proved(NamedTuple):
    """How a note proved by the log of searches: of those that something was told of, how many had it among their hits,
    and how many of these it was ``good`` for: of use, and not ending in a failure."""

    shown: int
    good: int


Outcome = Literal["success", "failure"]
"""How what a search was for ended."""


class LoggedHit(Frozen):
    """A hit as it was given, in the version that the note then had; ``features`` are values times weights."""

    note: str
    version: int
    score: float
    features: dict[str, float]


class LoggedSearch(Frozen):
    """A search that found something, in the log: its question, its hits from the best on, and what was told of them.

    ``used`` are the notes that were of use, None before anybody said so.
    """

    id: str
    question: str
    asked_at: Moment
    scorer: str
    hits: tuple[LoggedHit, ...]
    used: tuple[str, ...] | None = None
    outcome: Outcome | None = None
