"""What a note itself, and what stands around it, says about a question: the local features.

Each is a small pure function over all rows at once. They stand on fixed scales or on the scope's stored statistics,
never on the candidates at hand, so that a note's features do not depend on which other notes were gathered.

The same three texts are looked at everywhere: the note, the window of its neighbours in time (one or three on either
side), and its session. A note without neighbours is its own window, and one without a session its own session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zettel.annotate.tokens import tokenize
from zettel.model import TIME_MIN
from zettel.search.pool import BM25_B, BM25_K1

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from zettel.query import Bools, Floats, Ints

SPEAKER_NAME = 0.1
"""What is left of a token's weight when it is a speaker's name."""
USUAL_LENGTH = 12.0
"""Tokens of a usual message, BM25's mean length. Not the scope's own mean: long documents that join a scope would
change how its short messages rank among each other."""
USUAL_SESSION = 240.0
"""The same for a session: twenty such messages."""
LONG_NOTE = 64.0
"""Tokens at which a note says as much as one can expect; beyond it, more length tells nothing."""


def token_weights(
    idfs: NDArray[np.floating], rarity: Floats, tokens: tuple[str, ...], speakers: frozenset[str]
) -> Floats:
    """How much each asked token tells: rare in the scope, rarer in the world, and not the name of who speaks.

    2 √idf, and not idf, which in a scope that many others' notes join grows by the same amount for all its tokens,
    and so would favour the common ones. ``speakers`` are the tokens of the roles in the scope: in a conversation
    everybody's name is said by the others, and who said it is a feature of its own. (q,) -> (q,) points.
    """
    called = np.fromiter((token in speakers for token in tokens), bool, len(tokens))
    return np.asarray(2.0 * np.sqrt(idfs) * (0.5 + rarity) * np.where(called, SPEAKER_NAME, 1.0), np.float32)


def bm25(tf: NDArray[Any], length: NDArray[Any], usual: float, weights: Floats) -> Floats:
    """BM25 (Robertson and Zaragoza 2009) with other weights than idf: (n, q) counts, (n,) lengths, (q,) -> (n,).

    Σ weight · tf (k₁ + 1) / (tf + k₁ (1 - b + b · length / usual))
    """
    norm = BM25_K1 * (1.0 - BM25_B + BM25_B / usual * length)
    return np.asarray(np.einsum("nq,q->n", tf / (tf + norm[:, None]), weights * (BM25_K1 + 1.0)), np.float32)


def coverage(tf: NDArray[Any], weights: Floats) -> Floats:
    """Share of the asked tokens that a text holds, by weight: (n, q), (q,) -> (n,) in 0..1."""
    share = weights / max(float(weights.sum()), 1e-9)
    return np.asarray(np.einsum("nq,q->n", tf > 0, share), np.float32)


def around(previous: Ints, following: Ints, rows: NDArray[np.intp], steps: int) -> Ints:
    """The rows of the windows of ±``steps`` neighbours, -1 where there is none: (n,), (n,), (r,) -> (1 + 2 steps, r).

    First the rows themselves, then those one place away, and so on.
    """
    before, after = np.append(previous, -1), np.append(following, -1)  # at -1: nothing is before nothing
    windows = np.empty((1 + 2 * steps, len(rows)), np.int64)
    windows[0] = left = right = rows
    for step in range(steps):
        windows[1 + 2 * step] = left = before[left]
        windows[2 + 2 * step] = right = after[right]
    return windows


def window_sums(values: Floats, windows: Ints) -> Floats:
    """Sums over windows: (n, c), (w, r) rows or -1 -> (r, c)."""
    padded = np.concatenate([values, np.zeros((1, values.shape[1]), values.dtype)])  # at -1: nothing
    return np.asarray(padded[windows].sum(axis=0))


def window_best(values: Floats, windows: Ints) -> Floats:
    """The largest value of each window: (n,), (w, r) rows or -1 -> (r,)."""
    return np.asarray(np.append(values, np.float32(-np.inf))[windows].max(axis=0), np.float32)


def of_session(own: Floats, sessions: Floats, session: Ints) -> Floats:
    """Each row's session value, or its own where it has none: (n,), (s,), (n,) -> (n,)."""
    return np.where(session >= 0, np.append(sessions, np.float32(0.0))[session], own)


def speaker_named(role: Ints, named: Sequence[float]) -> Floats:
    """How surely the question names who said it, by :func:`zettel.scoring.names.speakers_named`: (n,), -1: nobody."""
    return np.array([*named, 0.0], np.float32)[role]


def speaker_tokens(role_names: Sequence[str]) -> frozenset[str]:
    """The tokens of everybody's name."""
    return frozenset(token for name in role_names for token in tokenize(name))


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
