"""The rules by which every store selects the candidates of a query.

All stores follow these rules and not the ranking of their database, so that the same events give the same answers in
every store. An exhaustive store returns every allowed note; a large store follows the steps below, in this order.

*Visible* notes were recorded by ``known_at`` (in their state at that time) and have no ``valid_from`` after ``as_of``.
*Allowed* notes are visible and pass the filter. Statistics count the visible notes.

1. VECTOR: the ``pool`` allowed notes with the highest cosine to the question.
2. TEXT: the ``pool`` allowed notes with the highest BM25 over the query tokens, read by (df, token). The store
   always reads the rarest token, and the others while they fit ``POSTINGS_BUDGET``.
3. TITLE: at most ``pool`` allowed notes with a title key among the question's ``names``.
4. TERM: the allowed notes with a term among the ``names``. Terms are taken by (df, key) until the sum of their df would
   exceed ``pool``.
5. TIME: at most ``pool`` allowed notes that occurred in one of the ``times``.
6. NEIGHBOUR: allowed notes within ``window`` turns, in the same session, of the first ``ANCHORS`` of steps 1 and 2.
7. WALK: two hops over links in either direction and over terms with a df of 2 to ``RARE_TERM_DF``. The first hop starts
   from the first ``WALK_SEEDS`` of steps 1 and 2 and from all of steps 3 and 4, the second from the ``WALK_BEAM`` notes
   with the highest weight after the first. The walk does not leave notes with more than ``HUB_LINKS`` links. It
   returns the ``WALK_NOTES`` notes with the highest weight over both hops: link weights, and 1 / df^2 for terms.

Context rows are visible notes within ``window`` turns of a candidate that steps 1 to 6 selected, and the notes on the
walk that fail the filter. The sums of a session count the tokens that step 2 reads. Ties go to the lower ``seq``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zettel.model import as_metadata_pairs, to_micros
from zettel.ports.conditions import matches
from zettel.ports.expiry import expired

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.model import Note
    from zettel.ports.conditions import matches
from zettel.ports.query import Filter

POSTINGS_BUDGET = 20_000
"""Maximum number of postings to read for one question; limits the cost of common words in a large scope."""
ANCHORS = 32
"""Number of best notes by vector and by text whose neighbouring turns become candidates."""
WALK_SEEDS = 24
"""Number of best notes by vector and by text from which the walk starts."""
RARE_TERM_DF = 16
"""Maximum df of a term on the walk; a more frequent term relates its notes too weakly."""
HUB_LINKS = 64
"""Maximum number of links of a note that the walk leaves again."""
WALK_BEAM = 64
"""Number of notes from which the second hop starts."""
WALK_NOTES = 256
"""Maximum number of candidates from the walk."""

BM25_K1 = 1.2
BM25_B = 0.75
"""BM25 parameters for term saturation and document length, with their usual values (Robertson and Zaragoza 2009)."""


def passes(note: Note, filter: Filter) -> bool:
    """Return True if the note passes the filter; ignores ``filter.source``."""
    time = None if note.occurred_at is None else to_micros(note.occurred_at)
    return (
        (not filter.kinds or note.kind.value in filter.kinds)
        and (not filter.tags or not set(filter.tags).isdisjoint(note.tags))
        and filter.session in (None, note.session)
        and filter.speaker in (None, note.speaker)
        and filter.role in (None, note.role)
        and (filter.since is None or (time is not None and time >= filter.since))
        and (filter.until is None or (time is not None and time < filter.until))
        and set(filter.metadata) <= set(as_metadata_pairs(note.metadata))
        and (filter.unexpired_at is None or note.archived or not expired(note, filter.unexpired_at))
        and (filter.where is None or matches(filter.where, note.metadata, note))
    )


def idf(df: NDArray[np.integer] | NDArray[np.floating], notes: int) -> NDArray[np.float64]:
    """Return ln(1 + (N - df + 0.5) / (df + 0.5)) in the shape of ``df``: never negative (the formula of Lucene)."""
    df = np.asarray(df, dtype=np.float64)
    return np.log1p((max(notes, 1) - np.minimum(df, notes) + 0.5) / (df + 0.5))


def saturation(
    tf: NDArray[np.floating], length: NDArray[np.floating], mean_length: float
) -> NDArray[np.float64]:
    """Return the tf factor of BM25, elementwise: tf (k1 + 1) / (tf + k1 (1 - b + b length / mean_length))."""
    norm = BM25_K1 * (1.0 - BM25_B + BM25_B * np.asarray(length, np.float64) / max(mean_length, 1.0))
    return np.asarray(tf, np.float64) * (BM25_K1 + 1.0) / (np.asarray(tf, np.float64) + norm)


def affordable(tokens: tuple[str, ...], df: NDArray[np.int64]) -> list[int]:
    """Return the positions of the query tokens to read: rarest first, within POSTINGS_BUDGET, at least one."""
    positions: list[int] = []
    spent = 0
    for position in sorted(range(len(tokens)), key=lambda i: (df[i], tokens[i])):
        count = int(df[position])
        if count == 0:
            continue
        if positions and spent + count > POSTINGS_BUDGET:
            break
        positions.append(position)
        spent += count
    return positions


def best(scores: NDArray[np.floating], seq: NDArray[np.int64], k: int) -> NDArray[np.intp]:
    """Return the positions of the k highest scores, best first; ties go to the lower ``seq``."""
    if len(scores) > 4 * k:
        threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
        rows = np.flatnonzero(scores >= threshold)
        return rows[np.lexsort((seq[rows], -scores[rows]))][:k]
    return np.lexsort((seq, -scores))[:k]
