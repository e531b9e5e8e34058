"""Strength: how much of a note is still remembered, which falls with time and rises with use.

The forgetting curve of Ebbinghaus (1885) as MemoryBank (Zhong et al. 2023, arXiv:2305.10250) takes it: R = exp(-t / S).
t is the time since the note was last of use or, if it never was, since it was recorded: not since what it tells of
occurred, so that old transcripts are fresh when they are imported. S is its stability, which each use adds to.

A faint note ranks a little lower, and only where something was ever of use: where nobody tells, age alone says nothing.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zettel.model import NoteUse
    from zettel.query import Floats

STABILITY_DAYS = 90.0
"""S, in days, of a note that was never of use, and what each use adds to it. MemoryBank counts single days, for chats
that go on daily; what an agent was told should outlast a season in which nobody asks."""
FRESH = 0.5
"""Strength down to which a note counts in full: 62 days without any use, 125 after one."""
FAINTEST = 0.8
"""What is left of the score of a note of strength 0."""

_DAY = 86_400.0


def strength(use: NoteUse, now: datetime) -> float:
    """R = exp(-t / S) of a note at ``now``, from 1 (just recorded, or just of use) down to 0.

    ``t`` is in days from ``use.since`` on, 0 where that is later than ``now``. S is STABILITY_DAYS, once more for each
    use that did not end in a failure: that one only begins the time anew.
    """
    days = max((now - use.since).total_seconds() / _DAY, 0.0)
    return math.exp(-days / (STABILITY_DAYS * (1 + use.times - use.failures)))


def weights(strengths: Sequence[float]) -> Floats:
    """What the scores of notes are multiplied by: 1 down to FRESH, from there on falling to FAINTEST, (n,)."""
    share = np.minimum(np.array(strengths, np.float32) / np.float32(FRESH), np.float32(1.0))
    return np.asarray(FAINTEST + (1.0 - FAINTEST) * share, np.float32)
