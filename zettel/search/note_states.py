"""Reads the notes of rankings in the state that a request asks about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from zettel.core.fold import fold
from zettel.model import TIME_MAX, Note, Scope, from_micros, to_micros
from zettel.ports.query import SearchRequest
from zettel.scoring.ranking import Ranked

if TYPE_CHECKING:
    from zettel.ports import GraphStore
    from zettel.ports.query import Floats


class Found(NamedTuple):
    """The ranking of a request, and the notes of its rows by id."""

    request: SearchRequest
    ranked: Ranked
    notes: Mapping[str, Note]

    def features_of(self, id: str) -> Floats:
        """Return the features of a hit."""
        row = next(row for row in self.ranked.rows if self.ranked.candidates.ids[row] == id)
        features: Floats = self.ranked.scores.features[row]
        return features


def is_current(request: SearchRequest) -> bool:
    """Return whether a request asks about the present state."""
    return request.as_of is None and request.known_at is None


async def notes_of(
    store: GraphStore, scope: Scope, requests: Sequence[SearchRequest], ranked: Sequence[Ranked]
) -> list[Mapping[str, Note]]:
    """Return the notes of each ranking at its request's ``as_of`` and ``known_at``.

    Current notes are read in one batch.
    """
    pairs = list(zip(requests, ranked, strict=True))
    ids = dict.fromkeys(id for request, ranking in pairs if is_current(request) for id in _ids(ranking))
    notes = await store.notes(scope, list(ids)) if ids else {}
    return [
        notes if is_current(request) else await _notes_then(store, scope, request, ranking)
        for request, ranking in pairs
    ]


async def known_then(
    store: GraphStore, scope: Scope, ids: Sequence[str], known_at: datetime | None
) -> dict[str, Note]:
    """Return notes in the state known at ``known_at`` (None: now), without deleted ones."""
    upto = None if known_at is None else to_micros(known_at)
    histories = await store.histories(scope, ids)
    return {id: fold(history.base, history.revisions, upto)[0] for id, history in histories.items()}


async def _notes_then(store: GraphStore, scope: Scope, request: SearchRequest, ranked: Ranked) -> dict[str, Note]:
    """Return notes in the state known at ``known_at``, with ``valid_to`` as of ``as_of``."""
    states = await known_then(store, scope, _ids(ranked), request.known_at)
    ends = dict(zip(_ids(ranked), ranked.candidates.valid_to[ranked.rows].tolist(), strict=True))
    return {
        id: note.model_copy(update={"valid_to": None if ends[id] >= TIME_MAX else from_micros(ends[id])})
        for id, note in states.items()
    }


def _ids(ranked: Ranked) -> list[str]:
    return [ranked.candidates.ids[row] for row in ranked.rows]
