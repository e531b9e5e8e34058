"""Entries of the search log, with the feedback on them."""

from __future__ import annotations

from typing import Literal, NamedTuple

from zettel.model.base import Frozen, Moment


class Proved(NamedTuple):
    """The usefulness of a note in the searches that received feedback.

    ``shown`` counts searches with the note among their hits, ``good`` those where it was useful without a failure.
    """

    shown: int
    good: int


Outcome = Literal["success", "failure"]
"""The outcome of the task that a search was for."""


class LoggedHit(Frozen):
    """A hit in the search log, with the note's version at that time; ``features`` are values times weights."""

    note: str
    version: int
    score: float
    features: dict[str, float]


class LoggedSearch(Frozen):
    """A search with at least one hit, in the search log: its question, its hits (best first), and the feedback.

    ``used`` are the ids of the useful notes, or None without feedback; ``inferred`` is True if zettel found them by
    reading the answer. ``scorer`` names the scorer of the search.
    """

    id: str
    question: str
    asked_at: Moment
    scorer: str
    hits: tuple[LoggedHit, ...]
    used: tuple[str, ...] | None = None
    outcome: Outcome | None = None
    inferred: bool = False
