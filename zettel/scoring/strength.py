"""Strength of a note, which decays with time and grows with use.

The forgetting curve of Ebbinghaus (1885) as in MemoryBank (Zhong et al. 2023, arXiv:2305.10250): R = exp(-t / S). t is
the time since the last use, or since the note was recorded. It does not count from the event, so that imported old
transcripts are fresh. S is the stability, which grows with each use.

Weak notes rank slightly lower, and only in scopes with feedback: without it, age does not predict usefulness.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zettel.model import NoteUse
    from zettel.ports.query import Floats

STABILITY_DAYS = 90.0
"""S in days of an unused note, and its increase per use. MemoryBank has single days, for daily chats. An agent's memory
should survive a season without questions."""
FRESH = 0.5
"""Strength from which a note has its full score: up to 62 days without use, 125 after one use."""
FAINTEST = 0.8
"""Factor on the score of a note of strength 0."""

_DAY = 86_400.0


def strength(use: NoteUse, now: datetime) -> float:
    """R = exp(-t / S) of a note at ``now``, 1 (just recorded or used) .. 0.

    ``t`` is the number of days since ``use.since``, at least 0. S is STABILITY_DAYS · (1 + successful uses). A use that
    ended in failure only resets t.
    """
    days = max((now - use.since).total_seconds() / _DAY, 0.0)
    return math.exp(-days / (STABILITY_DAYS * (1 + use.times - use.failures)))


def weights(strengths: Sequence[float]) -> Floats:
    """Factors on the scores of notes, (n,): 1 from FRESH up, falling to FAINTEST at strength 0."""
    share = np.minimum(np.array(strengths, np.float32) / np.float32(FRESH), np.float32(1.0))
    return np.asarray(FAINTEST + (1.0 - FAINTEST) * share, np.float32)
