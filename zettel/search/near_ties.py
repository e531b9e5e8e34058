"""Decides near-ties among the best notes by strength, importance and use.

Park et al. 2023, "Generative Agents: Interactive Simulacra of Human Behavior" (arXiv:2304.03442): a memory ranks by
relevance, recency and importance. Here relevance comes first: notes change places only if their scores differ by less
than TIE, so that a note in use never hides the one that answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from zettel.core.authority import is_on_probation
from zettel.model import NoteUse
from zettel.scoring.strength import strength

if TYPE_CHECKING:
    from datetime import datetime

    from zettel.model import Note
    from zettel.ports.query import Candidates, Floats

TIE = 0.01
"""Largest difference between the scores of a near-tie, as a share of the higher one."""
PLACES = 10
"""First places in which near-ties are decided."""
LEAST = 0.05
"""Least score of the first note of a near-tie: the order of notes that do not answer needs no decision."""
HALF_USE = 2.0
"""Times that a note was useful for half of the priority that use can give."""


def near_ties(score: Floats, rows: Sequence[int]) -> list[list[int]]:
    """Return the runs of at least two of the first PLACES rows, best first, that are nearly tied with their first."""
    runs: list[list[int]] = []
    for row in rows[:PLACES]:
        first = float(score[runs[-1][0]]) if runs else -1.0
        if first >= LEAST and (1.0 - TIE) * first <= score[row] <= first:
            runs[-1].append(row)
        else:
            runs.append([row])
    return [run for run in runs if len(run) > 1]


def priority(note: Note, use: NoteUse, now: datetime) -> float:
    """Return the sum of a note's importance, strength and usefulness, 0 .. 3.

    The use of a note on probation does not count, so that no writer can raise its own notes.
    """
    if is_on_probation(note):
        use = NoteUse(note.recorded_at)
    times = use.times - use.failures
    return note.importance + strength(use, now) + times / (times + HALF_USE)


def decided(rows: Sequence[int], priorities: Mapping[int, float], candidates: Candidates) -> list[int]:
    """Return the rows of a near-tie by priority, of equals the newer first."""
    return sorted(
        rows,
        key=lambda row: (-round(priorities[row], 2), -int(candidates.occurred_at[row]), -int(candidates.seq[row])),
    )
