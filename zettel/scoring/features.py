"""Features of the default scorer, declared once: ``NOTE_FEATURES`` of each note, ``QUESTION_FEATURES`` of the question.

To add a feature, write a function of ``FeatureInputs``, list it with its name and group, and fit the weights again
(``zettel scorer fit``). Text is scored at four sizes: the note, all parts of its event, its window of neighbouring
turns (1 or 3 on either side), and its session. Some features compare a note with the TOP best notes by text or by
vector, which every store returns. Apart from that, features do not depend on which other notes are candidates.

One pass computes the features of several searches, such as one question to several scopes. Statistics, weights and best
notes are those of each search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from zettel.model import ROLES, TIME_MIN, Kind
from zettel.ports.candidate_rules import BM25_B, BM25_K1, idf
from zettel.ports.query import Seed
from zettel.scoring.joint import joined, starts_of
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
    norm = (BM25_K1 * (1.0 - BM25_B) + BM25_K1 * BM25_B / max(usual, 1.0) * length).astype(np.float32)
    saturated = tf / (tf + norm[:, None])
    return np.asarray(np.einsum("nq,q->n", saturated, (BM25_K1 + 1.0) * weights), np.float32)


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
    return np.asarray(np.take(padded, windows, axis=0, mode="wrap").sum(axis=0))


def window_best(values: Floats, windows: Ints) -> Floats:
    """Maxima over windows: (n,), (w, r) rows or -1 -> (r,)."""
    padded = np.append(values, np.float32(-np.inf))
    return np.asarray(np.take(padded, windows, mode="wrap").max(axis=0), np.float32)


def of_session(own: Floats, sessions: Floats, session: Ints) -> Floats:
    """Each row's session value, or its own where it has none: (n,), (s,), (n,) -> (n,)."""
    return np.where(session >= 0, np.append(sessions, np.float32(0.0))[session], own)


def speaker_named(speaker: Ints, named: Sequence[float]) -> Floats:
    """Confidence that the question names the note's speaker: (n,), -1 for none -> (n,)."""
    return np.array([*named, 0.0], np.float32)[speaker]


@lru_cache(maxsize=64)
def speaker_tokens(speaker_names: tuple[str, ...]) -> frozenset[str]:
    """All tokens of the speakers' names."""
    return frozenset(token for name in speaker_names for token in tokenize(name))


def in_time(occurred_at: Ints, times: tuple[tuple[int, int], ...]) -> Floats:
    """1 for a note within a time range of the question: (n,)."""
    inside = np.zeros(len(occurred_at), bool)
    for start, end in times:
        inside |= (occurred_at >= start) & (occurred_at < end) & (occurred_at != TIME_MIN)
    return inside.astype(np.float32)


def event_best(values: Floats, event: Ints) -> Floats:
    """Return for each row the best value among the rows of its event: (n,), (n,) -> (n,)."""
    ordered = np.sort(event)
    if not (ordered[1:] == ordered[:-1]).any():
        return np.asarray(values, np.float32)
    _, number = np.unique(event, return_inverse=True)
    best = np.full(int(number.max(initial=-1)) + 1, -np.inf, np.float32)
    np.maximum.at(best, number, values)
    return np.asarray(best[number], np.float32)


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


class TopValues:
    """The TOP highest of some values, at least one: (r,). A value of a note is compared with them."""

    def __init__(self, values: Floats) -> None:
        top = np.partition(values, len(values) - TOP)[-TOP:] if len(values) > TOP else values
        self.ordered = np.sort(top)
        self.highest = float(self.ordered[-1])
        self.mean = float(top.mean())
        self.deviation = float(top.std()) + LEAST_DEVIATION

    def reciprocal_rank(self, values: Floats) -> Floats:
        """Return 1 for the highest value, 1/2 at rank RANK_UNIT, 0 from rank TOP and for values up to 0: (r,) -> (r,).

        Equal values have the same rank.
        """
        rank = len(self.ordered) - np.searchsorted(self.ordered, values, side="right")
        is_ranked = (values >= self.ordered[0]) & (values > 0)
        return np.where(is_ranked, np.float32(RANK_UNIT) / (np.float32(RANK_UNIT) + rank), 0.0).astype(np.float32)


class TokenWeights:
    """Weights of the query tokens of a search, lower for tokens that only name a time: (q,) each.

    ``plain`` are BM25's usual weights, ``weights`` those of :func:`token_weights`. Both sum to 1 at most.
    """

    def __init__(self, question: Question, candidates: Candidates) -> None:
        stats = candidates.stats
        time = np.where(question.time_tokens, np.float32(TIME_TOKEN), np.float32(1.0))
        self.idf = idf(stats.df, stats.notes).astype(np.float32)
        self.plain = normalized(self.idf * time)
        self.weights = normalized(
            time
            * token_weights(self.idf, question.rarity, question.tokens, speaker_tokens(candidates.speaker_names))
        )
        self.rarity = question.rarity
        self.mean_length = stats.tokens / max(stats.notes, 1)


class FeatureInputs:
    """Some searches, each with a possible hit, and the intermediate values that several features use.

    n are all candidates, end to end; r are ``rows``, the possible hits. A search has the rows between two of
    ``starts``, and the possible hits between two of ``bounds``: (searches + 1,) each.
    """

    def __init__(self, searches: Sequence[tuple[Question, Candidates]]) -> None:
        self.searches = searches
        self.candidates = c = joined([candidates for _, candidates in searches])
        self.starts = starts_of([len(candidates.ids) for _, candidates in searches])
        self.rows = np.flatnonzero(c.pool)
        self.bounds = np.searchsorted(self.rows, self.starts)
        self.window = window_rows(c.previous, c.next, self.rows, 3)  # (7, r)
        self.tokens = [TokenWeights(*search) for search in searches]
        self.tf = c.tf[self.rows]
        self.cosine = c.cosine[self.rows]
        self.length = c.length[self.rows]

    def of_each(self, bounds: Ints, values: Callable[[int, slice], Floats]) -> Floats:
        """Return the values of each search, by its number and its rows, end to end."""
        ends = bounds.tolist()
        parts = [values(number, slice(start, end)) for number, (start, end) in enumerate(pairwise(ends))]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def weighted(self, tf: Floats, length: NDArray[Any], usual: float, bounds: Ints) -> Floats:
        """BM25 with the weights of each search: (m, q), (m,), -> (m,)."""

        def of(number: int, rows: slice) -> Floats:
            weights = self.tokens[number].weights
            return bm25(tf[rows, : len(weights)], length[rows], usual, weights)

        return self.of_each(bounds, of)

    @cached_property
    def all_text(self) -> Floats:
        """BM25 of every note, not only of ``rows``, with the scope's mean length, (n,)."""
        c = self.candidates

        def of(number: int, rows: slice) -> Floats:
            plain, usual = self.tokens[number].plain, max(self.tokens[number].mean_length, 1.0)
            return bm25(c.tf[rows, : len(plain)], c.length[rows], usual, plain)

        return self.of_each(self.starts, of)

    @cached_property
    def text(self) -> Floats:
        return self.all_text[self.rows]

    @cached_property
    def top_text(self) -> list[TopValues]:
        return [TopValues(self.text[start:end]) for start, end in pairwise(self.bounds.tolist())]

    @cached_property
    def top_vector(self) -> list[TopValues]:
        return [TopValues(self.cosine[start:end]) for start, end in pairwise(self.bounds.tolist())]

    def standardized(self, values: Floats, top: Sequence[TopValues]) -> Floats:
        return self.of_each(self.bounds, lambda at, rows: (values[rows] - top[at].mean) / top[at].deviation)

    def behind_best(self, values: Floats, top: Sequence[TopValues]) -> Floats:
        return self.of_each(self.bounds, lambda at, rows: values[rows] - top[at].highest)

    def ranked(self, values: Floats, top: Sequence[TopValues]) -> Floats:
        return self.of_each(self.bounds, lambda at, rows: top[at].reciprocal_rank(values[rows]))

    def of_event(self, values: Floats) -> Floats:
        """Return the best value of each row's event: (n,) -> (r,)."""
        event = self.candidates.event
        return self.of_each(self.starts, lambda _, rows: event_best(values[rows], event[rows]))[self.rows]

    @cached_property
    def _columns(self) -> Floats:
        """Values to sum over windows: query tokens, cosine, length, and 1 to count the notes, (n, q + 3)."""
        c = self.candidates
        columns = np.ones((len(c.cosine), c.tf.shape[1] + 3), np.float32)
        columns[:, :-3], columns[:, -3], columns[:, -2] = c.tf, c.cosine, c.length
        return columns

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
        return self.weighted(window[:, :-3], window[:, -2] / window[:, -1], USUAL_LENGTH, self.bounds)

    @cached_property
    def text_alone(self) -> Floats:
        """BM25 with a fixed mean length, (r,)."""
        return self.weighted(self.tf, self.length, USUAL_LENGTH, self.bounds)

    def text_session(self) -> Floats:
        """BM25 of the session, or of the note itself outside a session: (r,)."""
        c = self.candidates
        bounds = starts_of([len(candidates.session_length) for _, candidates in self.searches])
        sessions = self.weighted(c.session_tf, c.session_length, USUAL_SESSION, bounds)
        return of_session(self.text_alone, sessions, c.session[self.rows])

    @cached_property
    def coverage(self) -> Floats:
        def of(number: int, rows: slice) -> Floats:
            weights = self.tokens[number].weights * self.tokens[number].rarity
            return coverage(self.tf[rows, : len(weights)], weights)

        return self.of_each(self.bounds, of)

    def rarest(self) -> Floats:
        """Weight of the rarest query token in the note, relative to that of the rarest in the question: (r,)."""

        def of(number: int, rows: slice) -> Floats:
            weights = self.tokens[number].idf
            share = weights / max(float(weights.max(initial=0.0)), 1e-9)
            return np.asarray(((self.tf[rows, : len(weights)] > 0) * share).max(axis=1, initial=0.0), np.float32)

        return self.of_each(self.bounds, of)

    @cached_property
    def speaker(self) -> Floats:
        speaker = self.candidates.speaker[self.rows]

        def of(number: int, rows: slice) -> Floats:
            question, candidates = self.searches[number]
            return speaker_named(speaker[rows], speakers_named(question, candidates.speaker_names))

        return self.of_each(self.bounds, of)

    def in_time(self) -> Floats:
        occurred_at = self.candidates.occurred_at[self.rows]
        return self.of_each(
            self.bounds, lambda number, rows: in_time(occurred_at[rows], self.searches[number][0].times)
        )

    @cached_property
    def role(self) -> Ints:
        return self.candidates.role[self.rows]

    @cached_property
    def is_in_session(self) -> Bools:
        return np.asarray(self.candidates.session[self.rows] >= 0)

    @cached_property
    def is_titled(self) -> Bools:
        """True for notes with a title that the question names: (r,)."""
        return np.asarray((self.candidates.seeds[self.rows] & Seed.TITLE.value) != 0)

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
        event = c.event[rows]
        return np.asarray((own[c.previous[rows]] == event) | (own[c.next[rows]] == event))


@dataclass(frozen=True, slots=True)
class NoteFeature:
    """A feature of a note: its group, and its values."""

    name: str
    group: FeatureGroup
    values: Callable[[FeatureInputs], Floats | Bools]  # (r,)


def at(values: Floats, rows: Ints) -> Floats:
    """Values of rows, 0 for row -1: (n,), (r,) -> (r,)."""
    return np.append(values, np.float32(0.0))[rows]


_USER, _ASSISTANT = ROLES.index("user"), ROLES.index("assistant")
NOTE_FEATURES = (
    NoteFeature("text", "text", lambda x: x.text),  # 0 .. 2.2, as all BM25 values here
    NoteFeature("text_alone", "text", lambda x: x.text_alone),
    NoteFeature("coverage", "text", lambda x: x.coverage),  # 0 .. 1
    NoteFeature("rarest", "text", FeatureInputs.rarest),  # 0 .. 1
    NoteFeature("text_standardized", "text", lambda x: x.standardized(x.text, x.top_text)),
    NoteFeature("text_behind_best", "text", lambda x: x.behind_best(x.text, x.top_text)),
    NoteFeature("text_rank", "text", lambda x: x.ranked(x.text, x.top_text)),
    NoteFeature("text_event", "text", lambda x: x.of_event(x.all_text)),
    NoteFeature("title", "text", lambda x: x.is_titled),
    NoteFeature("term", "text", FeatureInputs.has_named_term),
    NoteFeature("text_window_1", "windows", lambda x: x.text_of(x.window_1)),
    NoteFeature("text_window_3", "windows", lambda x: x.text_of(x.window_3)),
    NoteFeature("text_session", "windows", FeatureInputs.text_session),
    NoteFeature("text_before", "windows", lambda x: at(x.all_text, x.turn_before)),
    NoteFeature("text_after", "windows", lambda x: at(x.all_text, x.turn_after)),
    NoteFeature("vector", "vector", lambda x: x.cosine),  # -1 .. 1
    NoteFeature("vector_standardized", "vector", lambda x: x.standardized(x.cosine, x.top_vector)),
    NoteFeature("vector_behind_best", "vector", lambda x: x.behind_best(x.cosine, x.top_vector)),
    NoteFeature("vector_rank", "vector", lambda x: x.ranked(x.cosine, x.top_vector)),
    NoteFeature("vector_event", "vector", lambda x: x.of_event(x.candidates.cosine)),
    NoteFeature("vector_window_1", "windows", lambda x: x.window_1[:, -3] / x.window_1[:, -1]),
    NoteFeature("vector_window_3", "windows", lambda x: x.window_3[:, -3] / x.window_3[:, -1]),
    NoteFeature("vector_best_3", "windows", lambda x: window_best(x.candidates.cosine, x.window)),
    NoteFeature("vector_before", "windows", lambda x: at(x.candidates.cosine, x.turn_before)),
    NoteFeature("vector_after", "windows", lambda x: at(x.candidates.cosine, x.turn_after)),
    NoteFeature("user", "role", lambda x: x.role == _USER),
    NoteFeature("assistant", "role", lambda x: x.role == _ASSISTANT),
    NoteFeature("other_role", "role", lambda x: (x.role >= 0) & (x.role != _USER) & (x.role != _ASSISTANT)),
    NoteFeature("length", "length", lambda x: np.log1p(np.minimum(x.length, SHORT_NOTE))),
    NoteFeature("has_other_parts", "length", FeatureInputs.has_other_parts),
    NoteFeature("speaker", "speaker", lambda x: x.speaker),  # 0 .. 1
    NoteFeature("time", "time", FeatureInputs.in_time),
    NoteFeature("question", "form", lambda x: x.candidates.is_question[x.rows]),
    NoteFeature("fact", "form", lambda x: x.candidates.kind[x.rows] == _SEMANTIC),
    NoteFeature("in_session", "form", lambda x: x.is_in_session),
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


def feature_table(question: Question, candidates: Candidates) -> FeatureTable:
    """Return the features of the possible hits, at least one, and of the question."""
    inputs = FeatureInputs([(question, candidates)])
    return FeatureTable(note_features(inputs), question_features(inputs)[0])


def note_features(x: FeatureInputs) -> Floats:
    """Return the features of the possible hits of all searches, (r, NOTE_FEATURES)."""
    values = np.empty((len(NOTE_FEATURES), len(x.rows)), np.float32)
    for place, feature in enumerate(NOTE_FEATURES):
        values[place] = feature.values(x)
    return np.asarray(values.T)


def question_features(x: FeatureInputs) -> Floats:
    """Return the features of each question and its scope, (searches, QUESTION_FEATURES)."""
    return np.array(
        [_question_features(x, number, slice(*bounds)) for number, bounds in enumerate(pairwise(x.bounds.tolist()))],
        np.float32,
    )


def _question_features(x: FeatureInputs, number: int, rows: slice) -> list[float]:
    question, candidates = x.searches[number]
    return [
        *forms_of(question.text),
        question.many,
        question.time_only,
        np.log1p(len(question.tokens)),
        x.speaker[rows].max(),
        bool(question.times),
        x.is_titled[rows].any(),
        x.top_text[number].highest,
        x.top_vector[number].highest,
        (x.role[rows] >= 0).mean() > 0.5,
        x.is_in_session[rows].mean(),
        np.log1p(x.tokens[number].mean_length),
        np.log1p(candidates.stats.notes),
    ]
