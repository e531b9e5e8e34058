"""Entries of the search log, with the feedback on them."""

from __future__ import annotations

from typing import Literal, NamedTuple

from zettel.model.base import Frozen, Moment


class Proved(NamedTuple):
    """The use of a note in the logged searches.

    Of the searches with feedback, ``shown`` counts those with the note among their hits, ``good`` those where it was
    useful without a failure. ``found`` counts all searches with the note among their hits.
    """

    shown: int = 0
    good: int = 0
    found: int = 0


Outcome = Literal["success", "failure"]
"""The outcome of the task that a search was for."""


class LoggedHit(Frozen):
    """A hit in the search log, with the note's version at that time, and with features if it was among the first."""

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
