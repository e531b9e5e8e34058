"""Strength of a note, which decays with time and grows with use.

The forgetting curve of Ebbinghaus (1885) as in MemoryBank (Zhong et al. 2023, arXiv:2305.10250): R = exp(-t / S). t is
the time since the last use, or since the note was recorded. It does not count from the event, so that imported old
transcripts are fresh. S is the stability, which grows with each use.

Strength decides near-ties (``zettel.search.near_ties``) and which notes decay (``zettel.evolve.decay``). It never
lowers a score: an old note may be the only one that answers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from zettel.model import NoteUse, Proved

STABILITY_DAYS = 90.0
"""S in days of an unused note, and its increase per use. MemoryBank has single days, for daily chats. An agent's memory
should survive a season without questions."""
FRESH = 0.5
"""Strength below which a note may decay: after 62 days without use, 125 after one use."""
FOUND_PER_USE = 10
"""Searches that found a note and count as much as one use. The searches of a chat find dozens of notes and use few."""

_DAY = 86_400.0


def strength(use: NoteUse, now: datetime) -> float:
    """R = exp(-t / S) of a note at ``now``, 1 (just recorded or used) .. 0.

    ``t`` is the number of days since ``use.since``, at least 0. S is STABILITY_DAYS · (1 + successful uses). A use that
    ended in failure only resets t.
    """
    days = max((now - use.since).total_seconds() / _DAY, 0.0)
    return math.exp(-days / (STABILITY_DAYS * (1 + use.times - use.failures)))


def with_weak_use(use: NoteUse, proved: Proved | None) -> NoteUse:
    """Return the use of a note with the searches that found it, which weigh little (FOUND_PER_USE)."""
    return use if proved is None else use._replace(times=use.times + proved.found // FOUND_PER_USE)
