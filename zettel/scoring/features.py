"""Features of the default scorer, declared once: ``NOTE_FEATURES`` of each note, ``QUESTION_FEATURES`` of the question.

To add a feature, write a function of ``FeatureInputs``, list it with its name and group, and fit the weights again
(``zettel scorer fit``). Text is scored at four sizes: the note, all parts of its event, its window of neighbouring
turns (1 or 3 on either side), and its session. Some features compare a note with the TOP best notes by text or by
vector, which every store returns. Apart from that, features do not depend on which other notes are candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from zettel.model import ROLES, TIME_MIN, Kind
from zettel.ports.candidate_rules import idf, saturation
from zettel.ports.query import Seed
from zettel.scoring.names import speakers_named
from zettel.scoring.question_forms import FORMS, forms_of
from zettel.text.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from zettel.ports.query import Bools, Candidates, Floats, Ints, Question

FeatureGroup: TypeAlias = Literal["text", "vector", "windows", "role", "length", "speaker", "time", "form"]
"""Subject of a feature. An explanation states how much each group contributes to a score."""
AblationGroup: TypeAlias = Literal[
    "text", "vector", "windows", "role", "length", "speaker", "time", "form", "walk", "terms", "statements"
]
"""A part of the default scorer that an ablation can leave out: a group of features, or a step."""

_SEMANTIC = tuple(Kind).index(Kind.SEMANTIC)
SPEAKER_NAME = 0.1
"""Factor on the weight of a token that is a speaker's name."""
USUAL_LENGTH = 12.0
"""BM25's mean length, in tokens. It is fixed, so that long documents in a scope do not reorder its short messages."""
USUAL_SESSION = 240.0
"""BM25's mean length of a session: twenty messages."""
SHORT_NOTE = 12.0
"""Length in tokens from which a note counts as long enough to state something."""
TIME_TOKEN = 0.1
"""Factor on the weight of a token that only names a time: notes are filtered by the time itself."""
TOP = 96
"""Best notes by text and by vector that a note is compared with: ``Query.pool``, so that every store returns them."""
RANK_UNIT = 3.0
"""Rank at which the reciprocal rank is one half."""
LEAST_DEVIATION = 0.02
"""Added to a deviation, so that equal values do not differ by much."""
MOST_PARTS = 8
"""Parts of a long answer to pass on the way to the turn before or after it: 12,000 characters."""


def token_weights(
    idfs: NDArray[np.floating], rarity: Floats, tokens: tuple[str, ...], speakers: frozenset[str]
) -> Floats:
    """Weights of the query tokens: 2 √idf (0.5 + background rarity), reduced for names of speakers. (q,) -> (q,).

    The square root keeps weights comparable when many notes join a scope: idf grows by the same amount for all
    tokens, which would favour common ones. ``speakers`` are the tokens of the speakers' names.
    """
    is_name = np.fromiter((token in speakers for token in tokens), bool, len(tokens))
    return np.asarray(2.0 * np.sqrt(idfs) * (0.5 + rarity) * np.where(is_name, SPEAKER_NAME, 1.0), np.float32)


def normalized(weights: NDArray[np.floating]) -> Floats:
    """Return weights that sum to 1, or zeros: (q,) -> (q,)."""
    return np.asarray(weights / max(float(weights.sum()), 1e-9), np.float32)


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


def event_best(values: Floats, event: Ints) -> Floats:
    """Return for each row the best value among the rows of its event, numbered from 0: (n,), (n,) -> (n,)."""
    best = np.full(int(event.max(initial=-1)) + 1, -np.inf, np.float32)
    np.maximum.at(best, event, values)
    return np.asarray(best[event], np.float32)


def turn_beside(neighbour: Ints, event: Ints, rows: NDArray[np.intp]) -> Ints:
    """Return the row of the turn before (or after) each row's event, -1 if missing: (n,), (n,), (r,) -> (r,).

    ``neighbour`` is the previous (or next) row in the session. Other parts of the same event are passed.
    """
    step, own = np.append(neighbour, -1), np.append(event, 0)
    beside = step[rows]
    for _ in range(MOST_PARTS):
        same = (beside >= 0) & (own[beside] == event[rows])
        if not same.any():
            break
        beside = np.where(same, step[beside], beside)
    return beside


def reciprocal_rank(values: Floats) -> Floats:
    """Return 1 for the highest value, 1/2 at rank RANK_UNIT, 0 from rank TOP and for values up to 0: (r,) -> (r,).

    Equal values have the same rank.
    """
    rank = len(values) - np.searchsorted(np.sort(values), values, side="right")
    share = RANK_UNIT / (RANK_UNIT + rank)
    return np.where((rank < TOP) & (values > 0), share, 0.0).astype(np.float32)


class TopValues(NamedTuple):
    """The highest value among the rows, and mean and deviation of the TOP highest."""

    highest: float
    mean: float
    deviation: float


def top_values(values: Floats) -> TopValues:
    """Return what to compare a note's value with: (r,), r at least 1."""
    top = np.partition(values, len(values) - TOP)[-TOP:] if len(values) > TOP else values
    return TopValues(float(top.max()), float(top.mean()), float(top.std()) + LEAST_DEVIATION)


class FeatureInputs:
    """A question and its candidates, with the intermediate values that several features use. r are ``rows``.

    ``plain`` are BM25's usual weights of the query tokens, ``weights`` those of :func:`token_weights`. Both are lower
    for tokens that only name a time, and sum to 1 at most.
    """

    def __init__(self, question: Question, candidates: Candidates, rows: NDArray[np.intp]) -> None:
        self.question = question
        self.candidates = c = candidates
        self.rows = rows
        self.window = window_rows(c.previous, c.next, rows, 3)  # (7, r)
        time = np.where(question.time_tokens, np.float32(TIME_TOKEN), np.float32(1.0))
        self.idf = idf(c.stats.df, c.stats.notes).astype(np.float32)
        self.plain = normalized(self.idf * time)
        self.weights = normalized(
            time * token_weights(self.idf, question.rarity, question.tokens, speaker_tokens(c.speaker_names))
        )
        self.mean_length = c.stats.tokens / max(c.stats.notes, 1)

    @cached_property
    def text(self) -> Floats:
        """BM25 of every note, not only of ``rows``, with the scope's mean length, (n,)."""
        return bm25(self.candidates.tf, self.candidates.length, max(self.mean_length, 1.0), self.plain)

    @cached_property
    def top_text(self) -> TopValues:
        return top_values(self.text[self.rows])

    @cached_property
    def top_vector(self) -> TopValues:
        return top_values(self.candidates.cosine[self.rows])

    @cached_property
    def event(self) -> Ints:
        """The number of each note's event, from 0, (n,)."""
        return np.unique(self.candidates.event, return_inverse=True)[1]

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

    @cached_property
    def turn_before(self) -> Ints:
        return turn_beside(self.candidates.previous, self.candidates.event, self.rows)

    @cached_property
    def turn_after(self) -> Ints:
        return turn_beside(self.candidates.next, self.candidates.event, self.rows)

    def text_of(self, window: Floats) -> Floats:
        """BM25 of the mean note of a window: (r, q + 3) -> (r,)."""
        return bm25(window[:, :-3], window[:, -2] / window[:, -1], USUAL_LENGTH, self.weights)

    def text_alone(self) -> Floats:
        """BM25 with a fixed mean length, (r,)."""
        return bm25(self.candidates.tf[self.rows], self.candidates.length[self.rows], USUAL_LENGTH, self.weights)

    def text_session(self) -> Floats:
        """BM25 of the session, or of the note itself outside a session: (r,)."""
        c = self.candidates
        sessions = bm25(c.session_tf, c.session_length, USUAL_SESSION, self.weights)
        return of_session(self.text_alone(), sessions, c.session[self.rows])

    def coverage(self) -> Floats:
        return coverage(self.candidates.tf[self.rows], self.weights * self.question.rarity)

    def rarest(self) -> Floats:
        """Weight of the rarest query token in the note, relative to that of the rarest in the question: (r,)."""
        share = self.idf / max(float(self.idf.max(initial=0.0)), 1e-9)
        return np.asarray(((self.candidates.tf[self.rows] > 0) * share).max(axis=1, initial=0.0), np.float32)

    @cached_property
    def speaker(self) -> Floats:
        c = self.candidates
        return speaker_named(c.speaker[self.rows], speakers_named(self.question, c.speaker_names))

    def has_role(self, *roles: str) -> Bools:
        """True for notes with one of the roles: (r,)."""
        return np.isin(self.candidates.role[self.rows], [ROLES.index(role) for role in roles])

    def seeded(self, seed: Seed) -> Bools:
        """True for notes from this source: (r,)."""
        return np.asarray((self.candidates.seeds[self.rows] & seed) != 0)

    def has_named_term(self) -> Bools:
        """True for notes with a term that the question names: (r,)."""
        c = self.candidates
        has = np.zeros(len(c.ids), bool)
        has[c.term_note[c.term_named[c.term_index]]] = True
        return has[self.rows]

    def has_other_parts(self) -> Bools:
        """True for a part of an event of several parts: (r,)."""
        c, rows = self.candidates, self.rows
        own = np.append(c.event, np.iinfo(np.int64).min)
        return np.asarray((own[c.previous[rows]] == own[rows]) | (own[c.next[rows]] == own[rows]))


@dataclass(frozen=True, slots=True)
class NoteFeature:
    """A feature of a note: its group, and its values."""

    name: str
    group: FeatureGroup
    values: Callable[[FeatureInputs], Floats | Bools]  # (r,)


def at(values: Floats, rows: Ints) -> Floats:
    """Values of rows, 0 for row -1: (n,), (r,) -> (r,)."""
    return np.append(values, np.float32(0.0))[rows]


NOTE_FEATURES = (
    NoteFeature("text", "text", lambda x: x.text[x.rows]),  # 0 .. 2.2, as all BM25 values here
    NoteFeature("text_alone", "text", FeatureInputs.text_alone),
    NoteFeature("coverage", "text", FeatureInputs.coverage),  # 0 .. 1
    NoteFeature("rarest", "text", FeatureInputs.rarest),  # 0 .. 1
    NoteFeature("text_standardized", "text", lambda x: (x.text[x.rows] - x.top_text.mean) / x.top_text.deviation),
    NoteFeature("text_behind_best", "text", lambda x: x.text[x.rows] - x.top_text.highest),
    NoteFeature("text_rank", "text", lambda x: reciprocal_rank(x.text[x.rows])),
    NoteFeature("text_event", "text", lambda x: event_best(x.text, x.event)[x.rows]),
    NoteFeature("title", "text", lambda x: x.seeded(Seed.TITLE)),
    NoteFeature("term", "text", FeatureInputs.has_named_term),
    NoteFeature("text_window_1", "windows", lambda x: x.text_of(x.window_1)),
    NoteFeature("text_window_3", "windows", lambda x: x.text_of(x.window_3)),
    NoteFeature("text_session", "windows", FeatureInputs.text_session),
    NoteFeature("text_before", "windows", lambda x: at(x.text, x.turn_before)),
    NoteFeature("text_after", "windows", lambda x: at(x.text, x.turn_after)),
    NoteFeature("vector", "vector", lambda x: x.candidates.cosine[x.rows]),  # -1 .. 1
    NoteFeature(
        "vector_standardized", "vector",
        lambda x: (x.candidates.cosine[x.rows] - x.top_vector.mean) / x.top_vector.deviation,
    ),
    NoteFeature("vector_behind_best", "vector", lambda x: x.candidates.cosine[x.rows] - x.top_vector.highest),
    NoteFeature("vector_rank", "vector", lambda x: reciprocal_rank(x.candidates.cosine[x.rows])),
    NoteFeature("vector_event", "vector", lambda x: event_best(x.candidates.cosine, x.event)[x.rows]),
    NoteFeature("vector_window_1", "windows", lambda x: x.window_1[:, -3] / x.window_1[:, -1]),
    NoteFeature("vector_window_3", "windows", lambda x: x.window_3[:, -3] / x.window_3[:, -1]),
    NoteFeature("vector_best_3", "windows", lambda x: window_best(x.candidates.cosine, x.window)),
    NoteFeature("vector_before", "windows", lambda x: at(x.candidates.cosine, x.turn_before)),
    NoteFeature("vector_after", "windows", lambda x: at(x.candidates.cosine, x.turn_after)),
    NoteFeature("user", "role", lambda x: x.has_role("user")),
    NoteFeature("assistant", "role", lambda x: x.has_role("assistant")),
    NoteFeature("other_role", "role", lambda x: x.has_role("system", "tool", "document")),
    NoteFeature("length", "length", lambda x: np.log1p(np.minimum(x.candidates.length[x.rows], SHORT_NOTE))),
    NoteFeature("has_other_parts", "length", FeatureInputs.has_other_parts),
    NoteFeature("speaker", "speaker", lambda x: x.speaker),  # 0 .. 1
    NoteFeature("time", "time", lambda x: in_time(x.candidates.occurred_at[x.rows], x.question.times)),
    NoteFeature("question", "form", lambda x: x.candidates.is_question[x.rows]),
    NoteFeature("fact", "form", lambda x: x.candidates.kind[x.rows] == _SEMANTIC),
    NoteFeature("in_session", "form", lambda x: x.candidates.session[x.rows] >= 0),
    NoteFeature("has_turn_before", "form", lambda x: x.turn_before >= 0),
    NoteFeature("has_turn_after", "form", lambda x: x.turn_after >= 0),
)
"""Features of each note. "form" is what kind of note it is, apart from its length."""

QUESTION_FEATURES = (
    *FORMS, "many", "time_only", "length", "speaker_named", "time_named", "title_named", "best_text", "best_vector",
    "roles", "sessions", "mean_length", "notes",
)  # fmt: skip
"""Features of the question and its scope: the situation in which the notes are compared."""


class FeatureTable(NamedTuple):
    """Features of r notes and of their question."""

    notes: Floats  # (r, NOTE_FEATURES)
    question: Floats  # (QUESTION_FEATURES,)

    @property
    def values(self) -> Floats:
        """The input of the local score, (r, FEATURE_NAMES)."""
        question = np.broadcast_to(self.question, (len(self.notes), len(self.question)))
        return np.concatenate([self.notes, question], axis=1)

    def note(self, name: str) -> Floats:
        """Return the values of a note feature, (r,)."""
        return self.notes[:, NOTE_NAMES.index(name)]


NOTE_NAMES = tuple(feature.name for feature in NOTE_FEATURES)
FEATURE_NAMES = (*NOTE_NAMES, *(f"question: {name}" for name in QUESTION_FEATURES))
"""Names of the inputs of the local score."""


def feature_table(question: Question, candidates: Candidates, rows: NDArray[np.intp]) -> FeatureTable:
    """Return the features of ``rows``, at least one, and of the question."""
    inputs = FeatureInputs(question, candidates, rows)
    notes = np.column_stack([feature.values(inputs) for feature in NOTE_FEATURES])
    return FeatureTable(notes.astype(np.float32), question_features(inputs))


def question_features(x: FeatureInputs) -> Floats:
    """Return the features of the question and its scope, (QUESTION_FEATURES,)."""
    c = x.candidates
    return np.array(
        [
            *forms_of(x.question.text),
            x.question.many,
            x.question.time_only,
            np.log1p(len(x.question.tokens)),
            x.speaker.max(),
            bool(x.question.times),
            x.seeded(Seed.TITLE).any(),
            x.top_text.highest,
            x.top_vector.highest,
            (c.role[x.rows] >= 0).mean() > 0.5,
            (c.session[x.rows] >= 0).mean(),
            np.log1p(x.mean_length),
            np.log1p(c.stats.notes),
        ],
        np.float32,
    )
