"""Ranks the newest statements of people first when a question asks for the present: "Where do I live now?".

Scorers compare words, and the old statement of a changed fact has them as well as the new one. Each of the best hits
gains WEIGHT in log score for being the newest of them, in proportion to its place in time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zettel.model import ROLES, TIME_MIN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.ports.query import Candidates

BEST = 10
"""Best notes that change places."""
WEIGHT = 2.5
"""The gain of the newest of them. On our chats the message of today then ranks before the former one 1.5 times as
often, and more or less weight ranks fewer messages first."""
_PEOPLE = (-1, ROLES.index("user"))


def newest_first(order: NDArray[np.float64], candidates: Candidates) -> NDArray[np.float64]:
    """Return scores in which the newest of the BEST notes of people rank higher: (n,) -> (n,)."""
    rows = np.flatnonzero(candidates.pool & (order > 0))
    rows = rows[np.lexsort((candidates.seq[rows], -order[rows]))][:BEST]
    if len(rows) < 2:
        return order
    when = candidates.occurred_at[rows]
    times, place = np.unique(when, return_inverse=True)
    moves = np.isin(candidates.role[rows], _PEOPLE) & (when != TIME_MIN)
    gained = np.log(order[rows]) + WEIGHT * place / max(len(times) - 1, 1) * moves
    changed: NDArray[np.float64] = order.copy()
    changed[rows[np.argsort(-gained, kind="stable")]] = order[rows]
    return changed
