"""Search hits and their explanations."""

from __future__ import annotations

from pydantic import Field

from zettel.model.base import Frozen
from zettel.model.notes import Note
from zettel.model.scope import Scope

DEFAULT_TOKENS = 800
"""Default size of a packed context, in tokens."""
CONTEXT_HITS = 50
"""Number of hits to pack a context from: more than fit, so that short hits fill the remaining tokens."""


class Step(Frozen):
    """One node on the path to a hit, and the link from it to the next node.

    ``kind`` is "question", "term" or "note". ``name`` is for display; ``note`` is the note id if the node is a note.
    ``over`` is a link type, with the prefix "~" if the walk followed the link against its direction.
    """

    kind: str
    name: str
    over: str = ""
    note: str | None = None


class Why(Frozen):
    """The explanation of a hit.

    ``seeds`` are its candidate sources, such as "vector" or "text". ``features`` are the contributions of groups of
    features, and ``local_score`` is their sum. ``graph_score`` is the note's share of the PageRank walk, and ``path``
    its strongest path to the note. ``time`` states the note's validity in words. ``strength`` (0..1) is set if decay
    lowered the score. ``superseded_by`` is the id of the note that replaces this note, and ``updated_by`` of the latest
    one that replaces a part of it; then ``time`` names the change. ``trust`` (0..1) is the least of the trust in the
    note's writer, role, flags and sources; 1 is full trust. ``disputed`` is set if a valid note contradicts this one:
    the numbers of independent writers for and against it. ``behind`` is set for a topic or a summary of a session: how
    many newer notes belong to it that it lacks.
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
    updated_by: str | None = None
    trust: float = 1.0
    disputed: tuple[int, int] | None = None
    behind: int | None = None


class Hit(Frozen):
    """A note that a search returns, with a calibrated score: 0 (certainly irrelevant) to 1 (certainly an answer).

    ``passage`` is the text of the note that fits the question best: about 300 characters of consecutive sentences, list
    items, table rows (after the header row of their table) or lines of code; the whole content of a short note.
    ``answers`` is the id of the user's message if the note is the assistant's message right after it in the session.
    ``answered_by`` is the id of the assistant's message right after a user's message. Of a message in several parts it
    is the part next to the hit's message. Both are None for other notes. Pass ``search_id`` to ``Memory.feedback``; it
    is None if the search was not logged. ``scope`` is the note's scope after a search in several, else None.
    """

    note: Note
    score: float
    why: Why
    passage: str = ""
    answers: str | None = None
    answered_by: str | None = None
    search_id: str | None = None
    scope: Scope | None = None


class Page(Frozen):
    """One page of a scope's notes, in order of arrival; archived notes newest first.

    Pass ``cursor`` to get the next page; None ends the list.
    """

    notes: tuple[Note, ...]
    cursor: str | None
