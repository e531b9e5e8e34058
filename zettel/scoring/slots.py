"""What the memory decoder is shown: of the question, of every note on the shortlist, and of every two of them.

All are small numbers on fixed scales (about -3 .. 3), made from what the default scorer had already. m notes;
SLOT_FEATURES, QUESTION_FEATURES and PAIR_FEATURES name the columns. Weights go with one list of names:
:data:`FEATURE_VERSION` changes with it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.model import TIME_MIN, Kind, LinkType
from zettel.query import Seed
from zettel.scoring.fusion import FEATURES, perplexity
from zettel.scoring.names import speakers_named
from zettel.search.pool import idf

if TYPE_CHECKING:

    from numpy.typing import NDArray

    from zettel.query import Candidates, Floats, Ints, Question, Shortlist

FEATURE_VERSION = 1
_SCALES = {"text_window_1": 0.1, "text_window_3": 0.1, "text_session": 0.1}
"""Of the default scorer's features that are points, not shares."""
_KINDS = tuple(kind.value for kind in Kind)
_SEEDS = (Seed.VECTOR, Seed.TEXT, Seed.TERM, Seed.TITLE, Seed.TIME)
_ASKS = {
    "when": re.compile(r"\b(?:when|what (?:day|date|month|year|time)|which (?:day|date|month|year))\b", re.IGNORECASE),
    "how many": re.compile(r"\bhow (?:many|much|long|often|old|far|big|tall)\b", re.IGNORECASE),
    "who": re.compile(r"\bwho(?:m|se)?\b", re.IGNORECASE),
    "where": re.compile(r"\bwhere\b|\b(?:which|what) (?:city|cities|town|country|countries|place)s?\b", re.IGNORECASE),
    "why": re.compile(r"\bwhy\b|\breasons?\b", re.IGNORECASE),
    "how": re.compile(r"^how\b(?! (?:many|much|long|often|old|far|big|tall))", re.IGNORECASE),
    "what": re.compile(r"\b(?:what|which)\b", re.IGNORECASE),
    "yes or no": re.compile(
        r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|would|will|should)\b", re.IGNORECASE
    ),
    "several": re.compile(r"\b(?:all|both|each|kinds?|types?|ways|things|list|(?:what|which) \w+s)\b", re.IGNORECASE),
    "first or last": re.compile(r"\b(?:first|last|latest|recent(?:ly)?|before|after|now|still)\b", re.IGNORECASE),
    "likely": re.compile(r"\b(?:would|might|could|likely|probably|considered|suggest)\b", re.IGNORECASE),
}
"""What a question asks for; several may hold."""

SLOT_FEATURES = (
    *(feature.name for feature in FEATURES),
    "near", "likelihood", "walk", "place", "score", "session likelihood",
    "matched", "rarest matched", "coverage before", "cosine before", "question before", "coverage after",
    "cosine after", "question after", "first of its session", "role of the best",
    *(f"seed {seed.name}".lower() for seed in _SEEDS), *(f"kind {kind}" for kind in _KINDS),
    "dated", "time", "links", "terms",
)  # fmt: skip
QUESTION_FEATURES = (
    *_ASKS, "length", "speaker named", "time named", "best near", "perplexity", "coverage", "sessions", "notes",
)  # fmt: skip
PAIR_FEATURES = (
    "same session", "neighbours", "near neighbours", "same speaker", "cosine", "time gap", "shared term", "two hops",
    *(f"{kind.value} out".lower() for kind in LinkType), *(f"{kind.value} in".lower() for kind in LinkType),
)  # fmt: skip
WINDOW = 3
"""Places in a session within which notes are near neighbours."""
_DAY = 86_400_000_000.0  # microseconds


class Shown(NamedTuple):
    """A question with its shortlist, in numbers."""

    slots: Floats  # (m, SLOT_FEATURES)
    question: Floats  # (QUESTION_FEATURES,)
    pairs: Floats  # (m, m, PAIR_FEATURES)
    vectors: Floats  # (m, d)
    vector: Floats  # (d,) of the question; zeros if it has none
    embedder: str  # fingerprint of what made the vectors
    score: Floats  # (m,) the default scorer's, the logarithm, 0 the best
    talk: bool = True  # a note of it belongs to a session; else they are documents
    bank: Floats | None = None  # (s, width) the scope's slots; None: not known


def show(question: Question, shortlist: Shortlist) -> Shown:
    """What the decoder is shown of a question and its shortlist of m notes, m at least 1."""
    candidates, rows = shortlist.candidates, shortlist.rows
    near = shortlist.first.near[rows].astype(np.float64)
    likelihood = np.exp(near - near.max())
    likelihood /= likelihood.sum()
    score = np.log(np.maximum(shortlist.score, 1e-9) / max(float(shortlist.score.max()), 1e-9))
    slots = np.column_stack(
        [
            _local(shortlist),
            _ranks(shortlist, near, likelihood, score),
            _matched(question, candidates, rows),
            _around(candidates, rows),
            _flags(candidates, rows),
            _time_and_ties(shortlist),
        ]
    )
    pairs = _pairs(shortlist)
    vector = question.vector if question.vector is not None else np.zeros(shortlist.vectors.shape[1], np.float32)
    return Shown(
        slots=np.clip(slots, -10.0, 10.0).astype(np.float32),
        question=_asked(question, shortlist, near, slots),
        pairs=pairs,
        vectors=shortlist.vectors,
        vector=vector,
        embedder=shortlist.embedder,
        score=score.astype(np.float32),
        talk=bool((candidates.session[rows] >= 0).any()),
        bank=shortlist.slots,
    )


def _local(shortlist: Shortlist) -> Floats:
    """The default scorer's local features, without its weights: (m, FEATURES)."""
    names, first = shortlist.first.feature_names, shortlist.first.features[shortlist.rows]
    columns = []
    for feature in FEATURES:
        if feature.name in names:
            raw = first[:, names.index(feature.name)] / feature.weight
            columns.append(raw * _SCALES.get(feature.name, 1.0))
        else:
            columns.append(np.zeros(len(first), np.float32))
    return np.column_stack(columns)


def _ranks(shortlist: Shortlist, near: NDArray[np.float64], likelihood: NDArray[np.float64], score: Floats) -> Floats:
    """How the notes stand among each other: (m, 6)."""
    session = shortlist.candidates.session[shortlist.rows]
    walk = shortlist.first.walk[shortlist.rows].astype(np.float64)
    place = np.log1p(np.arange(len(near))) / 2.0
    hot = np.where(session >= 0, np.bincount(session + 1, likelihood, session.max() + 2)[session + 1], likelihood)
    share = np.log(np.maximum(walk, 1e-6) / max(walk.max(), 1e-6))
    return np.column_stack([(near - near.max()) / 3.0, 3.0 * likelihood, share / 3.0, place, score / 3.0, 2.0 * hot])


def _matched(question: Question, candidates: Candidates, rows: Ints) -> Floats:
    """Asked tokens in the note itself: how many, and how rare the rarest is: (m, 2)."""
    held = candidates.tf[rows] > 0
    if not held.shape[1]:
        return np.zeros((len(rows), 2), np.float32)
    rarity = idf(candidates.stats.df, candidates.stats.notes) * question.rarity / 5.0
    return np.column_stack([held.sum(axis=1) / 4.0, (held * rarity).max(axis=1)])


def _around(candidates: Candidates, rows: Ints) -> Floats:
    """The turns before and after, whether the session begins here, and who speaks: (m, 8)."""
    weights = idf(candidates.stats.df, candidates.stats.notes)
    covered = (candidates.tf > 0) @ weights / max(float(weights.sum()), 1e-9)
    columns = []
    for other in (candidates.previous[rows], candidates.next[rows]):
        for values in (covered, candidates.cosine, candidates.is_question):
            columns.append(np.where(other >= 0, values[other], 0.0))
    first = (candidates.session[rows] >= 0) & (candidates.previous[rows] < 0)
    role = candidates.role[rows]
    return np.column_stack([*columns, first, (role == role[0]) & (role >= 0)])


def _flags(candidates: Candidates, rows: Ints) -> Floats:
    """Where the notes came from, and their kinds: (m, 9)."""
    seeds = [candidates.seeds[rows] & seed != 0 for seed in _SEEDS]
    return np.column_stack([*seeds, *(candidates.kind[rows] == kind for kind in range(len(_KINDS)))])


def _time_and_ties(shortlist: Shortlist) -> Floats:
    """Whether and when it happened, among the notes of the shortlist, and what it is tied to there: (m, 4)."""
    candidates, rows = shortlist.candidates, shortlist.rows
    when = candidates.occurred_at[rows]
    dated = when != TIME_MIN
    time = np.zeros(len(rows))
    if dated.any():
        since, until = when[dated].min(), when[dated].max()
        time[dated] = (when[dated] - since) / max(float(until - since), 1.0)
    degree = np.bincount(candidates.link_source, minlength=len(candidates.ids)) + np.bincount(
        candidates.link_target, minlength=len(candidates.ids)
    )
    terms = np.bincount(candidates.term_note, minlength=len(candidates.ids))
    return np.column_stack([dated, time, np.log1p(degree[rows]) / 2.0, np.log1p(terms[rows]) / 2.0])


def _asked(question: Question, shortlist: Shortlist, near: NDArray[np.float64], slots: Floats) -> Floats:
    """(QUESTION_FEATURES,)"""
    candidates = shortlist.candidates
    named = speakers_named(question, candidates.role_names)
    sessions = len(np.unique(candidates.session[shortlist.rows]))
    told = [
        len(question.tokens) / 5.0, max(named, default=0.0), float(bool(question.times)), near.max() / 10.0,
        np.log(perplexity(near)) / 3.0, slots[:, SLOT_FEATURES.index("coverage")].max(),
        np.log1p(sessions) / 3.0, np.log1p(candidates.stats.notes) / 8.0,
    ]  # fmt: skip
    asks = [form.search(question.text) is not None for form in _ASKS.values()]
    return np.array([*asks, *told], np.float32)


def _pairs(shortlist: Shortlist) -> Floats:
    """What is between every two notes: (m, m, PAIR_FEATURES); links as seen from the first of the two."""
    candidates, rows = shortlist.candidates, shortlist.rows
    m = len(rows)
    place = np.full(len(candidates.ids), -1)
    place[rows] = np.arange(m)
    session, role, when = candidates.session[rows], candidates.role[rows], candidates.occurred_at[rows]
    same = (session[:, None] == session) & (session >= 0)
    steps = _steps(candidates, rows, place)
    days = np.abs(when[:, None] - when.astype(np.float64)) / _DAY
    known = (when != TIME_MIN)[:, None] & (when != TIME_MIN)
    links = np.zeros((m, m, len(LinkType)), np.float32)
    ends = place[candidates.link_source], place[candidates.link_target]
    inside = (ends[0] >= 0) & (ends[1] >= 0)
    links[ends[0][inside], ends[1][inside], candidates.link_type[inside]] = candidates.link_weight[inside]
    held = np.zeros((m, max(len(candidates.term_df), 1)), np.float32)
    use = place[candidates.term_note]
    held[use[use >= 0], candidates.term_index[use >= 0]] = 1.0
    shared = (held @ held.T > 0).astype(np.float32)
    tied = np.minimum(links.sum(axis=2) + links.sum(axis=2).T + shared, 1.0)
    told = [same, steps == 1, steps <= WINDOW, (role[:, None] == role) & (role >= 0),
            shortlist.vectors @ shortlist.vectors.T, np.where(known, np.log1p(days) / 5.0, 0.0), shared,
            np.minimum(tied @ tied, 1.0)]  # fmt: skip
    return np.concatenate([np.stack(told, axis=2), links, links.transpose(1, 0, 2)], axis=2).astype(np.float32)


def _steps(candidates: Candidates, rows: Ints, place: Ints) -> Ints:
    """How many places apart two notes stand in their session, WINDOW + 1 for farther: (m, m)."""
    m = len(rows)
    steps = np.full((m, m), WINDOW + 1)
    here = rows
    for step in range(1, WINDOW + 1):
        here = np.where(here >= 0, candidates.next[here], -1)
        there = np.where(here >= 0, place[here], -1)
        found = np.flatnonzero(there >= 0)
        steps[found, there[found]] = steps[there[found], found] = step
    return steps
