"""Divides a session into segments: consecutive turns about one matter, without a model.

As in EM-LLM (Fountas et al. 2024) a segment ends where the next turns differ from the last ones. The difference is a
low cosine between exchanges (a message with its answers), and in a talk without roles a valley between wider windows,
as in TextTiling (Hearst 1997), because single turns are too short. A long pause ends a segment, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

PAUSE = timedelta(hours=6)
"""A longer pause between turns ends a segment."""
WINDOW = 3
"""Turns of a talk on either side of a possible border, and turns around it whose cosines are compared."""
TALK = 1.5
"""Turns per exchange below which a session is a talk: nobody in it answers as an assistant or a tool."""


class Borders(NamedTuple):
    """The cosine of exchanges below which a border lies between them, and the depth of a valley in a talk."""

    exchanges: float
    valley: float


STATIC = Borders(0.6, 0.2)
"""For static embedders, whose cosines are higher."""
CONTEXTUAL = Borders(0.4, 0.25)
"""For other embedders. On the labelled half of ``tests/data/topics`` for development, F1 is highest here."""


class Turn(NamedTuple):
    """A turn of a session: its vector (unit length, or zeros), whether it answers the turn before, and its time."""

    vector: NDArray[np.float32]
    is_reply: bool = False
    occurred_at: datetime | None = None


def borders_for(embedder: str) -> Borders:
    """Return the borders for an embedder, by its name: those of static embedders contain "-static-"."""
    return STATIC if "-static-" in embedder else CONTEXTUAL


def segments(turns: Sequence[Turn], borders: Borders = CONTEXTUAL) -> list[tuple[int, int]]:
    """Return (start, end) of the segments of one session, in order, together all turns.

    Example: ``segments([Turn(boat), Turn(boat), Turn(visa)])`` is ``[(0, 2), (2, 3)]`` if the vectors differ enough.
    """
    if not turns:
        return []
    heads = [at for at, turn in enumerate(turns) if at == 0 or not turn.is_reply]
    rows = _means(turns, [*heads, len(turns)])
    is_talk = len(turns) < TALK * len(heads)
    changes = _valleys(rows, borders.valley) if is_talk else _falls(rows, borders.exchanges)
    starts = [0]
    starts += [
        head
        for place, head in enumerate(heads)
        if place and (changes[place - 1] or _is_pause(turns[head - 1].occurred_at, turns[head].occurred_at))
    ]
    return list(zip(starts, [*starts[1:], len(turns)], strict=True))


def unit(row: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return a row with length 1; zeros stay zeros."""
    return np.asarray(row / max(float(np.linalg.norm(row)), 1e-9), np.float32)


def _means(turns: Sequence[Turn], heads: Sequence[int]) -> NDArray[np.float32]:
    """Return the mean direction of each exchange, (len(heads) - 1, d)."""
    vectors = np.stack([turn.vector for turn in turns])
    return np.stack([unit(vectors[start:end].sum(axis=0)) for start, end in pairwise(heads)])


def _falls(rows: NDArray[np.float32], least: float) -> NDArray[np.bool_]:
    """Return for each pair of neighbouring exchanges whether it differs; without a vector it does not."""
    known: NDArray[np.bool_] = np.any(rows, axis=1)
    cosines: NDArray[np.float32] = (rows[1:] * rows[:-1]).sum(axis=1)
    return np.logical_and(cosines < least, known[1:] & known[:-1])


def _valleys(rows: NDArray[np.float32], depth: float) -> NDArray[np.bool_]:
    """Return for each pair of neighbouring turns whether the cosine of the windows around it has a valley there."""
    cosines = np.array(
        [
            float(unit(rows[max(0, at - WINDOW) : at].sum(axis=0)) @ unit(rows[at : at + WINDOW].sum(axis=0)))
            for at in range(1, len(rows))
        ]
    )
    deep = np.zeros(len(cosines), bool)
    for at, cosine in enumerate(cosines):
        before, after = cosines[max(0, at - WINDOW) : at + 1], cosines[at : at + WINDOW + 1]
        is_lowest = cosine <= cosines[max(0, at - WINDOW + 1) : at + WINDOW].min()
        deep[at] = is_lowest and before.max() + after.max() - 2 * cosine > depth
    return deep


def _is_pause(before: datetime | None, after: datetime | None) -> bool:
    return before is not None and after is not None and after - before > PAUSE
