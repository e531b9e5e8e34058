"""Hits, and why each was found."""

from __future__ import annotations

from pydantic import Field

from zettel.model.base import Frozen
from zettel.model.notes import Note

DEFAULT_TOKENS = 800
"""Default size of a packed context, in tokens."""
CONTEXT_HITS = 50
"""Hits that a context is packed from: more than fit, so that short hits fill the gaps that long hits leave."""


class Step(Frozen):
    """One step of the path that led to a hit: from what the question names or from a note, over a link, to the next.

    ``name`` is for people; ``note`` is the id of the note that was passed.
    """

    kind: str
    name: str
    over: str = ""
    note: str | None = None


class Why(Frozen):
    """How a hit came about.

    ``seeds`` are its candidate sources, ``features`` each feature's value times its weight, ``local_score`` their
    sum, ``graph_score`` the note's share of the PageRank walk, ``path`` the strongest path of the walk to the note,
    ``time`` what its validity has to do with it, ``strength`` how faint the note is if that lowered its score.
    """

    scorer: str
    seeds: tuple[str, ...] = ()
    features: dict[str, float] = Field(default_factory=dict)
    local_score: float = 0.0
    graph_score: float = 0.0
    path: tuple[Step, ...] = ()
    time: str = ""
    strength: float | None = None
    superseded_by: str | None = None


class Hit(Frozen):
    """A note that was found; ``score`` is calibrated: 0 (surely not) to 1 (surely an answer).

    ``search_id`` is what ``feedback`` calls the search by, None if it was not logged.
    """

    note: Note
    score: float
    why: Why
    search_id: str | None = None


class Page(Frozen):
    """Some notes of a scope in the order of arrival; ``cursor`` asks for the next ones, None: these were the last."""

    notes: tuple[Note, ...]
    cursor: str | None
