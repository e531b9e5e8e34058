"""Local features of the default scorer, declared once in ``FEATURES``.

To add a feature, write a function of ``FeatureInputs`` and list it in ``FEATURES`` with its name, weight and group.
Features have fixed scales or use the scope's stored statistics. They do not depend on which other notes are
candidates. Text is scored at three sizes: the note, its window of neighbouring turns (1 or 3 on either side), and its
session.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from zettel.model import TIME_MIN
from zettel.ports.candidate_rules import idf, saturation
from zettel.scoring.names import speakers_named
from zettel.text.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from zettel.ports.query import Candidates, Floats, Ints, Question

AblationGroup: TypeAlias = Literal[
    "windows", "walk", "text", "vector", "time", "speaker", "terms", "spread", "statements"
]
"""A part of the default scorer that an ablation can leave out."""

SPEAKER_NAME = 0.1
"""Factor on the weight of a token that is a speaker's name."""
USUAL_LENGTH = 12.0
"""BM25's mean length, in tokens. It is fixed, so that long documents in a scope do not reorder its short messages."""
USUAL_SESSION = 240.0
"""BM25's mean length of a session: twenty messages."""
LONG_NOTE = 64.0
"""Length in tokens from which the brevity penalty is 0."""


def token_weights(
    idfs: NDArray[np.floating], rarity: Floats, tokens: tuple[str, ...], speakers: frozenset[str]
) -> Floats:
    """Weights of the query tokens: 2 √idf (0.5 + background rarity), reduced for names of speakers. (q,) -> (q,).

    The square root keeps weights comparable when many notes join a scope: idf grows by the same amount for all
    tokens, which would favour common ones. ``speakers`` are the tokens of the speakers' names.
    """
    is_name = np.fromiter((token in speakers for token in tokens), bool, len(tokens))
    return np.asarray(2.0 * np.sqrt(idfs) * (0.5 + rarity) * np.where(is_name, SPEAKER_NAME, 1.0), np.float32)


def bm25(tf: NDArray[Any], length: NDArray[Any], usual: float, weights: Floats) -> Floats:
    """BM25 with ``weights`` in place of idf: (n, q) counts, (n,) lengths, (q,) -> (n,)."""
    return np.asarray(np.einsum("nq,q->n", saturation(tf, length[:, None], usual), weights), np.float32)


def coverage(tf: NDArray[Any], weights: Floats) -> Floats:
    """Weighted share of the query tokens in a text: (n, q), (q,) -> (n,) in 0..1."""
    share = weights / max(float(weights.sum()), 1e-9)
    return np.asarray(np.einsum("nq,q->n", tf > 0, share), np.float32)


def window_rows(previous: Ints, following: Ints, rows: NDArray[np.intp], steps: int) -> Ints:
    """Rows of the ±``steps`` neighbouring turns, nearest first, -1 if missing: (n,), (n,), (r,) -> (1 + 2 steps, r)."""
    before, after = np.append(previous, -1), np.append(following, -1)  # row -1 has no neighbours
    windows = np.empty((1 + 2 * steps, len(rows)), np.int64)
    windows[0] = left = right = rows
    for step in range(steps):
        windows[1 + 2 * step] = left = before[left]
        windows[2 + 2 * step] = right = after[right]
    return windows


def window_sums(values: Floats, windows: Ints) -> Floats:
    """Sums over windows: (n, c), (w, r) rows or -1 -> (r, c)."""
    padded = np.concatenate([values, np.zeros((1, values.shape[1]), values.dtype)])  # row -1 adds nothing
    return np.asarray(padded[windows].sum(axis=0))


def window_best(values: Floats, windows: Ints) -> Floats:
    """Maxima over windows: (n,), (w, r) rows or -1 -> (r,)."""
    return np.asarray(np.append(values, np.float32(-np.inf))[windows].max(axis=0), np.float32)


def of_session(own: Floats, sessions: Floats, session: Ints) -> Floats:
    """Each row's session value, or its own where it has none: (n,), (s,), (n,) -> (n,)."""
    return np.where(session >= 0, np.append(sessions, np.float32(0.0))[session], own)


def speaker_named(speaker: Ints, named: Sequence[float]) -> Floats:
    """Confidence that the question names the note's speaker: (n,), -1 for none -> (n,)."""
    return np.array([*named, 0.0], np.float32)[speaker]


def speaker_tokens(speaker_names: Sequence[str]) -> frozenset[str]:
    """All tokens of the speakers' names."""
    return frozenset(token for name in speaker_names for token in tokenize(name))


def in_time(occurred_at: Ints, times: tuple[tuple[int, int], ...]) -> Floats:
    """1 for a note within a time range of the question: (n,)."""
    inside = np.zeros(len(occurred_at), bool)
    for start, end in times:
        inside |= (occurred_at >= start) & (occurred_at < end) & (occurred_at != TIME_MIN)
    return inside.astype(np.float32)


def brevity(length: Ints) -> Floats:
    """1 for an empty note down to 0 for one of LONG_NOTE tokens, on a log scale: (n,)."""
    return np.asarray(1.0 - np.log1p(np.minimum(length, LONG_NOTE)) / np.log1p(LONG_NOTE), np.float32)


class FeatureInputs:
    """A question and its candidates, with the intermediate values that several features use. r are ``rows``.

    Without ``windows``, every note is scored alone: no neighbouring turns and no session.
    """

    def __init__(
        self, question: Question, candidates: Candidates, rows: NDArray[np.intp], *, windows: bool = True
    ) -> None:
        self.question = question
        self.candidates = candidates
        self.rows = rows
        self.window = window_rows(candidates.previous, candidates.next, rows, 3 if windows else 0)  # (7 or 1, r)
        self.session = candidates.session[rows] if windows else np.full(len(rows), -1)
        self.tf = candidates.tf[rows]
        self.length = candidates.length[rows]
        self.token_weights = token_weights(
            idf(candidates.stats.df, candidates.stats.notes), question.rarity, question.tokens,
            speaker_tokens(candidates.speaker_names),
        )  # fmt: skip

    @cached_property
    def _columns(self) -> Floats:
        """Values to sum over windows: query tokens, cosine, length, and 1 to count the notes, (n, q + 3)."""
        c = self.candidates
        return np.column_stack([c.tf, c.cosine, c.length, np.ones(len(c.cosine))]).astype(np.float32)

    @cached_property
    def window_1(self) -> Floats:
        """Sums over the note and 1 turn on either side, (r, q + 3)."""
        return window_sums(self._columns, self.window[:3])

    @cached_property
    def window_3(self) -> Floats:
        """Sums over the note and 3 turns on either side, (r, q + 3)."""
        return self.window_1 + window_sums(self._columns, self.window[3:])

    def text(self, window: Floats) -> Floats:
        """BM25 of the mean note of a window: (r, q + 3) -> (r,)."""
        return bm25(window[:, :-3], window[:, -2] / window[:, -1], USUAL_LENGTH, self.token_weights)

    def text_session(self) -> Floats:
        """BM25 of the session, or of the note itself outside a session: (r,)."""
        c, weights = self.candidates, self.token_weights
        sessions = bm25(c.session_tf, c.session_length, USUAL_SESSION, weights)
        return of_session(bm25(self.tf, self.length, USUAL_LENGTH, weights), sessions, self.session)

    def speaker(self) -> Floats:
        c = self.candidates
        return speaker_named(c.speaker[self.rows], speakers_named(self.question, c.speaker_names))


@dataclass(frozen=True, slots=True)
class Feature:
    """A local feature: its weight in log-odds per unit, the group that an ablation removes it with, and its values."""

    name: str
    weight: float
    group: AblationGroup | None
    values: Callable[[FeatureInputs], Floats]  # (r,)


FEATURES = (
    Feature("text_window_1", 0.1, "text", lambda x: x.text(x.window_1)),  # a rare word scores about 7
    Feature("text_window_3", 0.2, "text", lambda x: x.text(x.window_3)),
    Feature("text_session", 0.05, "text", FeatureInputs.text_session),
    Feature("coverage", 1.0, "text", lambda x: coverage(x.tf, x.token_weights * x.question.rarity)),  # 0 .. 1
    Feature("vector", 4.0, "vector", lambda x: x.candidates.cosine[x.rows]),  # related texts differ by about 0.3
    Feature("vector_window_1", 2.0, "vector", lambda x: x.window_1[:, -3] / x.window_1[:, -1]),
    Feature("vector_window_3", 1.0, "vector", lambda x: x.window_3[:, -3] / x.window_3[:, -1]),
    Feature("vector_best_3", 5.0, "vector", lambda x: window_best(x.candidates.cosine, x.window)),
    Feature("speaker", 2.0, "speaker", FeatureInputs.speaker),  # 0 .. 1, as the features below
    Feature("time", 2.0, "time", lambda x: in_time(x.candidates.occurred_at[x.rows], x.question.times)),
    Feature("question", -0.6, None, lambda x: x.candidates.is_question[x.rows].astype(np.float32)),
    Feature("brevity", -4.0, None, lambda x: brevity(x.length)),
)
"""The weights are fitted by listwise softmax regression (:mod:`zettel.scoring.fit`) to the 171 answerable questions of
six conversations in this repository. The penalty, 0.1, has the lowest loss in leave-one-conversation-out validation.
Weights are rounded to one significant digit. Recall@10 is 0.65 on the six, also with each left out of its own fit, and
0.69 on two others. To fit them again, in a checkout::

    zettel scorer fit zettel/cli/demo/conversation.json tests/data/team.json \\
        tests/data/conversations/{family,coding-agent,meetings,friends}.json \\
        --test tests/data/conversations/research.json --test tests/data/conversations/travel.json \\
        --documents tests/data/documents.jsonl tests/data/documents-questions.jsonl
"""


def local_features(
    question: Question, candidates: Candidates, rows: NDArray[np.intp], *, windows: bool = True
) -> dict[str, Floats]:
    """Values of all features for ``rows`` by name, (r,) each. ``windows=False`` ignores neighbouring turns."""
    inputs = FeatureInputs(question, candidates, rows, windows=windows)
    return {feature.name: feature.values(inputs) for feature in FEATURES}
