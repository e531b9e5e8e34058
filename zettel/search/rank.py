"""From scores to the hits' rows: best first, ties by ``seq``, one note for an event, insights after all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zettel.model import TIME_MAX, Kind

if TYPE_CHECKING:
    from zettel.query import Bools, Candidates, Scores


_INSIGHT = tuple(Kind).index(Kind.INSIGHT)


def rank(
    scores: Scores, candidates: Candidates, k: int, without: Bools | None = None, *, insights: bool = False
) -> list[int]:
    """Rows of the ``k`` best pool notes, those ``without`` aside, best first; of an event's parts only the best one.

    An insight repeats what the notes say that it was made from, so it comes after all others, unless ``insights``
    were asked for.
    """
    rows = np.flatnonzero(candidates.pool if without is None else candidates.pool & ~without)
    repeats = (candidates.kind[rows] == _INSIGHT) & (not insights)
    order = rows[np.lexsort((candidates.seq[rows], -scores.score[rows], repeats))]
    _, first = np.unique(candidates.event[order], return_index=True)
    return [int(row) for row in order[np.sort(first)][:k]]


def outdated(candidates: Candidates, today: int | None) -> Bools:
    """Which notes were replaced by ``today`` (microseconds; None: nobody knows, so at any time), (n,)."""
    return candidates.valid_to < TIME_MAX if today is None else candidates.valid_to <= today
