"""Computes the confidence of notes that others contradict, and ranks them by it.

The votes are those of :mod:`zettel.scoring.consensus`. A note that nothing contradicts keeps its confidence and score.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.core.authority import trust
from zettel.model import Link, LinkType, Note, Scope
from zettel.scoring.consensus import (
    OUTVOTED,
    Statement,
    Witnesses,
    confidences,
    dispute_of,
    is_disputable,
    ranking_factor,
    witnesses,
)
from zettel.scoring.ranking import LIFT, outdated

if TYPE_CHECKING:
    from zettel.ports import GraphStore
    from zettel.ports.query import Candidates, Floats

_CONTRADICTS = tuple(LinkType).index(LinkType.CONTRADICTS)


def disputes(candidates: Candidates, today: int | None) -> list[tuple[int, int]]:
    """Return the rows of valid notes that contradict each other, in pairs; none if no pair may become a hit."""
    old = outdated(candidates, today)
    made = np.flatnonzero(candidates.link_type == _CONTRADICTS)
    ends = zip(candidates.link_source[made].tolist(), candidates.link_target[made].tolist(), strict=True)
    pairs = [(source, target) for source, target in ends if not old[source] and not old[target]]
    return pairs if any(candidates.pool[row] for pair in pairs for row in pair) else []


class Votes(NamedTuple):
    """The confidence of the notes in disputes, and the numbers of writers for and against each, by id."""

    confidences: Mapping[str, float]
    witnesses: Mapping[str, Witnesses]


async def votes_on(
    store: GraphStore, scope: Scope, pairs: Iterable[tuple[str, str]], notes: Mapping[str, Note]
) -> Votes:
    """Return the votes on the notes in these pairs of ids; ``notes`` have the state to judge, by id."""
    notes = {id: note for id, note in notes.items() if not note.archived}
    ids = sorted({event for note in notes.values() for event in note.event_ids})
    events = await store.events(scope, ids)
    statements = {
        id: Statement(trust(note), tuple(events[event] for event in note.event_ids if event in events))
        for id, note in notes.items()
    }
    dispute = dispute_of(pairs)
    return Votes(confidences(dispute, statements), witnesses(dispute, statements))


async def with_confidence(store: GraphStore, scope: Scope, notes: Sequence[Note]) -> list[Note]:
    """Return notes with the confidence that follows from the notes that contradict them now."""
    links = _contradictions(await store.links(scope, sorted({note.id for note in notes})))
    if not links:
        return list(notes)
    ends = sorted({end for link in links for end in (link.source, link.target)})
    links += _contradictions(await store.links(scope, ends))
    ends = sorted({end for link in links for end in (link.source, link.target)})
    loaded = {id: note for id, note in (await store.notes(scope, ends)).items() if is_disputable(note)}
    pairs = [(link.source, link.target) for link in links if link.source in loaded and link.target in loaded]
    votes = (await votes_on(store, scope, pairs, loaded)).confidences
    return [doubted(note, votes.get(note.id)) for note in notes]


def doubted(note: Note, confidence: float | None) -> Note:
    """Return the note with at most this confidence; None: nothing contradicts it."""
    if confidence is None or confidence >= note.confidence:
        return note
    return note.model_copy(update={"confidence": confidence})


def weighed(score: Floats, pairs: Iterable[tuple[int, int]], confidence: Mapping[int, float]) -> Floats:
    """Return scores by confidence: rows that are in doubt score less, and rows that outvote them more than they do.

    The best of the rows that outvote a row gets the score that this one loses: both answer the same question.
    """
    result: Floats = score.copy()
    for row, value in confidence.items():
        result[row] *= ranking_factor(value)
    for loser, opponents in sorted(dispute_of(pairs).items()):
        winners = sorted(row for row in opponents if confidence.get(row, 0.0) > 0.5)
        if not winners or not is_outvoted(confidence.get(loser)):
            continue
        for row in winners:
            result[row] = max(result[row], min(LIFT * result[loser], 1.0))
        first = max(winners, key=lambda row: (result[row], score[row], -row))
        result[first] = max(result[first], score[loser])
    return result


def is_outvoted(confidence: float | None) -> bool:
    """Return whether a note has clearly fewer votes than one that contradicts it."""
    return confidence is not None and confidence < OUTVOTED


def _contradictions(links: Iterable[Link]) -> list[Link]:
    return [link for link in links if link.type is LinkType.CONTRADICTS]
