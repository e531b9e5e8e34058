"""Chooses the insights and summaries that answer an abstract question, and ranks them before the notes.

Two searches meet here: one for notes, one for insights. The scores of the notes decide which insights matter. The worth
of an insight is the sum over its notes that no chosen insight has, and is lower the more notes it has. So an abstract
question finds the topic or session of its notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone

from zettel.model import Hit, Kind
from zettel.model.tags import ENTITY, PROFILE, SESSION
from zettel.ports.conditions import comparisons
from zettel.ports.query import Candidates, SearchRequest
from zettel.search.question_kind import asks_for_last_session, asks_for_overview, subject_of_overview

MOST = 3
"""The most insights before the notes."""
ROUTED = 50
"""Notes whose scores choose the insights."""
OFFERED = 48
"""Insights to choose from."""
SCORE_POWER = 0.5
"""Power of the score of a note, relative to the best one. An overview needs more than the best notes."""
SIZE_POWER = 0.7
"""Power of the number of notes by which the worth of an insight is divided: more prefers shorter, purer insights."""
LEAST_WORTH = 0.25
"""Lowest worth of a further insight, relative to the first one."""
LEAST_RELEVANCE = 0.5
"""Lowest score of the best note of the first insight, relative to the best note of all."""

_INSIGHT = tuple(Kind).index(Kind.INSIGHT)
_CHOOSING = ("kind", "tags")
"""Fields of a note by which a caller chooses insights, or not."""


def is_abstract(request: SearchRequest) -> bool:
    """Return whether insights come first: the question asks for an overview, and the caller names no kinds or tags."""
    return not names_insights(request) and asks_for_overview(request.text)


def names_insights(request: SearchRequest) -> bool:
    """Return whether the caller decides by kinds or tags whether insights are hits."""
    filter = request.filter
    compared = () if filter.where is None else comparisons(filter.where)
    return bool(filter.kinds or filter.tags) or any(each.of_note and each.name in _CHOOSING for each in compared)


def notes_request(request: SearchRequest) -> SearchRequest:
    """Return the search for notes: for an abstract question at least ROUTED, because they choose its insights."""
    return replace(request, k=max(request.k, ROUTED)) if is_abstract(request) else request


def without_insights(candidates: Candidates) -> Candidates:
    """Return the candidates of which no insight may become a hit, because insights repeat other notes."""
    return replace(candidates, pool=candidates.pool & (candidates.kind != _INSIGHT))


def insights_request(request: SearchRequest) -> SearchRequest:
    """Return the search for insights."""
    kinds = (Kind.INSIGHT.value,)
    return replace(request, k=OFFERED, filter=replace(request.filter, kinds=kinds), min_score=None, log=False)


def choose(text: str, time_only: bool, notes: Sequence[Hit], insights: Sequence[Hit]) -> list[Hit]:
    """Return at most MOST insights, best first.

    A question without a subject ("What are the main topics?") gets the largest topics, unless it names a time or the
    last session.
    """
    left = [hit for hit in insights if {PROFILE, ENTITY}.isdisjoint(hit.note.tags)]
    if not time_only and not subject_of_overview(text):
        return _last_session(left) if asks_for_last_session(text) else _largest(left)
    best = max((hit.score for hit in notes), default=0.0) or 1.0
    relevant = {event for hit in notes if hit.score >= LEAST_RELEVANCE * best for event in hit.note.event_ids}
    worth: dict[str, float] = {
        event: (hit.score / best) ** SCORE_POWER for hit in reversed(notes) for event in hit.note.event_ids
    }
    chosen: list[Hit] = []
    covered: set[str] = set()
    first = 0.0

    def gain(hit: Hit) -> float:
        events = set(hit.note.event_ids)
        return float(sum(worth.get(event, 0.0) for event in events - covered) / len(events) ** SIZE_POWER)

    eligible = [hit for hit in left if not relevant.isdisjoint(hit.note.event_ids)]
    while eligible and len(chosen) < MOST:
        hit = max(eligible, key=gain)
        value = gain(hit)
        first = first or value
        if value <= 0 or value < LEAST_WORTH * first:
            break
        chosen.append(hit)
        covered.update(hit.note.event_ids)
        left.remove(hit)
        eligible = left
    return chosen


def _largest(insights: Sequence[Hit]) -> list[Hit]:
    """Return the topics of most events that share no event, largest first."""
    chosen: list[Hit] = []
    covered: set[str] = set()
    for hit in sorted(insights, key=lambda hit: -len(hit.note.event_ids)):
        if SESSION not in hit.note.tags and covered.isdisjoint(hit.note.event_ids):
            chosen.append(hit)
            covered.update(hit.note.event_ids)
    return chosen[:MOST]


def _last_session(insights: Sequence[Hit]) -> list[Hit]:
    """Return the summary of the session with the latest event."""
    sessions = [hit for hit in insights if SESSION in hit.note.tags]
    sessions.sort(key=lambda hit: (hit.note.occurred_at or datetime.min.replace(tzinfo=timezone.utc), hit.note.seq))
    return sessions[-1:]


def insights_first(chosen: Sequence[Hit], notes: Sequence[Hit]) -> list[Hit]:
    """Return the chosen insights, then the notes in their order; scores never rise from hit to hit."""
    top = max((hit.score for hit in notes), default=0.0)
    ordered: list[Hit] = []
    for hit in [*(hit.model_copy(update={"score": max(hit.score, top)}) for hit in chosen), *notes]:
        score = min(hit.score, ordered[-1].score) if ordered else hit.score
        ordered.append(hit.model_copy(update={"score": score}))
    return ordered
