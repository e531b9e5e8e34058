"""Which notes a question is asked of: the rules that every store follows when it gathers candidates.

The pool is defined here and not by a database's own ranking, so that the same events give the same answers in every
store. An exhaustive store takes every note that is let through; a large one takes, in this order:

*Visible* are the notes recorded by ``known_at`` (in the state they then had) whose ``valid_from`` is not after
``as_of``. *Allowed* are the visible ones that pass the filter. Statistics count the visible ones.

1. VECTOR: the ``pool`` allowed notes of highest cosine with the question.
2. TEXT: asked tokens by (df, token), as many as fit ``POSTINGS_BUDGET`` postings, the rarest one always; the ``pool``
   allowed notes of highest BM25 over these tokens.
3. TITLE: allowed notes one of whose title keys is among the question's ``names``, at most ``pool``.
4. TERM: Terms among the ``names``, by (df, key), as long as their df add up to no more than ``pool``; the allowed notes
   that hold them.
5. TIME: allowed notes that occurred in one of the ``times``, at most ``pool``.
6. NEIGHBOUR: allowed notes within ``window`` places, in their session, of the first ``ANCHORS`` of 1 and of 2.
7. WALK: from the first ``WALK_SEEDS`` of 1 and of 2 and all of 3 and 4, over Links in either direction and over Terms
   of df 2 to ``RARE_TERM_DF``, and once more from the ``WALK_BEAM`` notes that this leads to most; notes with more
   than ``HUB_LINKS`` links are reached but not left. At most ``WALK_NOTES`` notes, those that the weights of links and
   1 / df^2 of Terms lead to most in both hops together.

Context rows are the visible notes within ``window`` places of a pool row that more than step 7 brought, and those that
step 7 passes through but the filter holds back. A session's sums count the tokens that step 2 reads. Ties go to the
lower ``seq`` everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zettel.model import as_metadata_pairs, to_micros

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.model import Note
    from zettel.ports.query import Filter

POSTINGS_BUDGET = 20_000
"""Postings read for one question: bounds the cost of common words in a large scope."""
ANCHORS = 32
"""Best notes by vector and by text whose neighbours in time join the pool: an answer often follows its question."""
WALK_SEEDS = 24
"""Best notes by vector and by text from which links are followed."""
RARE_TERM_DF = 16
"""A Term that more notes hold than this binds too weakly to be followed."""
HUB_LINKS = 64
"""A note with more links than this leads everywhere, hence nowhere."""
WALK_BEAM = 64
"""Notes of the first hop that the second starts from."""
WALK_NOTES = 256
"""Notes brought in by links, at most."""

BM25_K1 = 1.2
BM25_B = 0.75
"""Saturation of repeated words and weight of length, the usual values (Robertson and Zaragoza 2009)."""


def passes(note: Note, filter: Filter) -> bool:
    """True if the note passes the filter, apart from ``source``."""
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
    )


def idf(df: NDArray[np.integer] | NDArray[np.floating], notes: int) -> NDArray[np.float64]:
    """ln(1 + (N - df + 0.5) / (df + 0.5)): never negative (the form used by Lucene). Shape of ``df``."""
    df = np.asarray(df, dtype=np.float64)
    return np.log1p((max(notes, 1) - np.minimum(df, notes) + 0.5) / (df + 0.5))


def saturation(
    tf: NDArray[np.floating], length: NDArray[np.floating], mean_length: float
) -> NDArray[np.float64]:
    """BM25's tf (k1 + 1) / (tf + k1 (1 - b + b length / mean_length)), elementwise."""
    norm = BM25_K1 * (1.0 - BM25_B + BM25_B * np.asarray(length, np.float64) / max(mean_length, 1.0))
    return np.asarray(tf, np.float64) * (BM25_K1 + 1.0) / (np.asarray(tf, np.float64) + norm)


def affordable(tokens: tuple[str, ...], df: NDArray[np.int64]) -> list[int]:
    """Positions of the asked tokens whose postings are read: rarest first, within POSTINGS_BUDGET, at least one."""
    taken: list[int] = []
    spent = 0
    for position in sorted(range(len(tokens)), key=lambda i: (df[i], tokens[i])):
        count = int(df[position])
        if count == 0:
            continue
        if taken and spent + count > POSTINGS_BUDGET:
            break
        taken.append(position)
        spent += count
    return taken


def best(scores: NDArray[np.floating], seq: NDArray[np.int64], k: int) -> NDArray[np.intp]:
    """Positions of the k highest scores, best first, ties by seq."""
    if len(scores) > 4 * k:
        threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
        kept = np.flatnonzero(scores >= threshold)
        return kept[np.lexsort((seq[kept], -scores[kept]))][:k]
    return np.lexsort((seq, -scores))[:k]
