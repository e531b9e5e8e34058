"""From scores to the hits' rows: best first, ties by ``seq``, one note for an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from zettel.query import Candidates, Scores


def rank(scores: Scores, candidates: Candidates, k: int) -> list[int]:
    """Rows of the ``k`` best pool notes, best first; of an event's parts only the best one."""
    rows = np.flatnonzero(candidates.pool)
    order = rows[np.lexsort((candidates.seq[rows], -scores.score[rows]))]
    _, first = np.unique(candidates.event[order], return_index=True)
    return [int(row) for row in order[np.sort(first)][:k]]
