"""What a note itself, and what stands around it, says about a question: the local features.

Each is a small pure function over all rows at once. They stand on fixed scales or on the scope's stored statistics,
never on the candidates at hand, so that a note's features do not depend on which other notes were gathered.

The same three texts are looked at everywhere: the note, the window of its neighbours in time (one or three on either
side), and its session. A note without neighbours is its own window, and one without a session its own session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zettel.annotate.tokens import phrase_key, tokenize
from zettel.model import TIME_MIN
from zettel.search.pool import saturation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from zettel.query import Bools, Floats, Ints

SPEAKER_NAME = 0.2
"""What is left of a token's weight when it is a speaker's name."""
LONG_NOTE = 64.0
"""Tokens at which a note says as much as one can expect; beyond it, more length tells nothing."""


def token_weights(idfs: Floats, rarity: Floats, tokens: tuple[str, ...], speakers: frozenset[str]) -> Floats:
    """How much each asked token tells: rare in the scope, rarer in the world, and not the name of who speaks.

    ``speakers`` are the tokens of the roles in the scope: in a conversation everybody's name is said by the others, and
    who said it is a feature of its own. (q,) -> (q,) BM25 points.
    """
    called = np.fromiter((token in speakers for token in tokens), bool, len(tokens))
    return (idfs * (0.5 + rarity) * np.where(called, SPEAKER_NAME, 1.0)).astype(np.float32)


def bm25(tf: NDArray[Any], length: NDArray[Any], mean_length: float, idfs: Floats) -> Floats:
    """BM25 (Robertson and Zaragoza 2009): (n, q) counts, (n,) lengths in tokens, (q,) idf -> (n,)."""
    return (saturation(tf, length[:, None], mean_length) @ idfs.astype(np.float64)).astype(np.float32)


def coverage(tf: Floats, weights: Floats) -> Floats:
    """Share of the asked tokens that a text holds, by weight: (n, q), (q,) -> (n,) in 0..1."""
    share = weights / max(float(weights.sum()), 1e-9)
    return np.asarray((tf > 0).astype(np.float32) @ share, np.float32)


def cosine(vectors: Floats, vector: Floats | None) -> Floats:
    """Cosine of each row, of any length, with a unit vector: (n, d), (d,) -> (n,); 0 where there is no vector."""
    if vector is None or vectors.shape[1] != len(vector):
        return np.zeros(len(vectors), np.float32)
    norms = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    return np.asarray((vectors @ vector) / np.maximum(norms, 1e-9), np.float32)


def window_sums(
    values: NDArray[Any], previous: Ints, following: Ints, steps: int, rows: NDArray[np.intp]
) -> list[NDArray[Any]]:
    """Sums over the windows of ±1, ±2 .. ±``steps`` neighbours around ``rows``, themselves included.

    (n, d), (n,), (n,), (r,) -> list of (r, d). ``previous`` and ``following`` are rows, -1 where there is none.
    """
    padded = np.concatenate([values, np.zeros((1, *values.shape[1:]), values.dtype)])  # row -1: nothing is there
    before, after = np.append(previous, -1), np.append(following, -1)
    left = right = rows
    sums, total = [], values[rows]
    for _ in range(steps):
        left, right = before[left], after[right]
        total = total + padded[left] + padded[right]
        sums.append(total)
    return sums


def of_session(own: Floats, sessions: Floats, session: Ints) -> Floats:
    """Each row's session value, or its own where it has none: (n,), (s,), (n,) -> (n,)."""
    return np.where(session >= 0, np.append(sessions, 0.0)[session], own).astype(np.float32)


def speaker_named(role: Sequence[str | None], names: tuple[str, ...]) -> Floats:
    """1 where the question names who said it: (n,)."""
    asked = set(names)
    named = {r: r is not None and phrase_key(r) in asked for r in set(role)}
    return np.fromiter((named[r] for r in role), np.float32, len(role))


def speaker_tokens(role: tuple[str | None, ...]) -> frozenset[str]:
    """The tokens of everybody's name."""
    return frozenset(token for name in set(role) if name for token in tokenize(name))


def in_time(occurred_at: Ints, times: tuple[tuple[int, int], ...]) -> Floats:
    """1 where the note occurred in a stretch of time that the question names: (n,)."""
    found = np.zeros(len(occurred_at), bool)
    for start, end in times:
        found |= (occurred_at >= start) & (occurred_at < end) & (occurred_at != TIME_MIN)
    return found.astype(np.float32)


def asks(is_question: Bools) -> Floats:
    """1 where the note is itself a question, which seldom answers one: (n,)."""
    return is_question.astype(np.float32)


def brevity(length: Ints) -> Floats:
    """How much of LONG_NOTE a note lacks, on a log scale: 1 empty .. 0 long: (n,)."""
    return np.asarray(1.0 - np.log1p(np.minimum(length, LONG_NOTE)) / np.log1p(LONG_NOTE), np.float32)
