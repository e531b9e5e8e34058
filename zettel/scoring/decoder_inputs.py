"""Inputs of the memory decoder: features of the question, of each note on the shortlist, and of each pair of notes.

All features are small numbers on fixed scales (about -3 .. 3), derived from the default scorer's candidates. m notes;
NOTE_FEATURES, QUESTION_FEATURES and PAIR_FEATURES name the columns. Weights belong to one list of features: change
``FEATURE_VERSION`` with it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zettel.model import TIME_MIN, Kind, LinkType
from zettel.ports.candidate_rules import idf
from zettel.ports.query import Seed
from zettel.scoring.features import NOTE_NAMES
from zettel.scoring.names import speakers_named

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zettel.ports.query import Candidates, Floats, Ints, Question, Shortlist

FEATURE_VERSION = 2
LOCAL_FEATURES = NOTE_NAMES
"""The default scorer's features, all of which the decoder reads."""
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
"""Kinds of questions; several may match."""

NOTE_FEATURES = (
    *LOCAL_FEATURES,
    "local score", "likelihood", "graph score", "place", "score", "session likelihood",
    "matched", "rarest matched", "coverage before", "cosine before", "question before", "coverage after",
    "cosine after", "question after", "first of its session", "speaker of the best",
    *(f"seed {seed.name}".lower() for seed in _SEEDS), *(f"kind {kind}" for kind in _KINDS),
    "dated", "time", "links", "terms",
)  # fmt: skip
QUESTION_FEATURES = (
    *_ASKS, "length", "speaker named", "time named", "best local score", "perplexity", "coverage", "sessions", "notes",
)  # fmt: skip
LINK_TYPES = tuple(kind for kind in LinkType if kind is not LinkType.UPDATES)
"""The types of links that the decoder knows. It reads UPDATES, the last type, as SUPERSEDES."""
_SUPERSEDES, _UPDATES = (tuple(LinkType).index(kind) for kind in (LinkType.SUPERSEDES, LinkType.UPDATES))
PAIR_FEATURES = (
    "same session", "neighbours", "near neighbours", "same speaker", "cosine", "time gap", "shared term", "two hops",
    *(f"{kind.value} out".lower() for kind in LINK_TYPES), *(f"{kind.value} in".lower() for kind in LINK_TYPES),
)  # fmt: skip
WINDOW = 3
"""Distance in a session up to which notes are near neighbours."""
_DAY = 86_400_000_000.0  # microseconds


class DecoderInput(NamedTuple):
    """A question with its shortlist of m notes, as numbers."""

    notes: Floats  # (m, NOTE_FEATURES)
    question: Floats  # (QUESTION_FEATURES,)
    pairs: Floats  # (m, m, PAIR_FEATURES)
    note_vectors: Floats  # (m, d)
    question_vector: Floats  # (d,) zeros if the question has none
    embedder: str  # fingerprint of the embedder that made the vectors
    base_score: Floats  # (m,) logarithm of the default scorer's score, 0 for the best
    is_conversation: bool = True  # False: no note belongs to a session, so they are documents


def decoder_input(question: Question, shortlist: Shortlist, *, pairs: bool = True) -> DecoderInput:
    """Return the decoder's input for a question and its shortlist, which has at least one note.

    Without ``pairs`` the features of pairs are left out, (m, m, 0).
    """
    candidates, rows = shortlist.candidates, shortlist.rows
    local = shortlist.first.local_score[rows].astype(np.float64)
    likelihood = np.exp(local - local.max())
    likelihood /= likelihood.sum()
    score = np.log(np.maximum(shortlist.score, 1e-9) / max(float(shortlist.score.max()), 1e-9))
    notes = np.column_stack(
        [
            _local_features(shortlist),
            _rank_features(shortlist, local, likelihood, score),
            _match_features(question, candidates, rows),
            _neighbour_features(candidates, rows),
            _flags(candidates, rows),
            _time_and_degree(shortlist),
        ]
    )
    vector = question.vector if question.vector is not None else np.zeros(shortlist.vectors.shape[1], np.float32)
    return DecoderInput(
        notes=np.clip(notes, -10.0, 10.0).astype(np.float32),
        question=_question_features(question, shortlist, local, notes),
        pairs=_pair_features(shortlist) if pairs else np.zeros((len(rows), len(rows), 0), np.float32),
        note_vectors=shortlist.vectors,
        question_vector=vector,
        embedder=shortlist.embedder,
        base_score=score.astype(np.float32),
        is_conversation=bool((candidates.session[rows] >= 0).any()),
    )


def _local_features(shortlist: Shortlist) -> Floats:
    """The default scorer's features: (m, LOCAL_FEATURES); zeros where another scorer made the shortlist."""
    first = shortlist.first
    if first.feature_names != LOCAL_FEATURES:
        return np.zeros((len(shortlist.rows), len(LOCAL_FEATURES)), np.float32)
    return first.features[shortlist.rows]


def _rank_features(
    shortlist: Shortlist, local: NDArray[np.float64], likelihood: NDArray[np.float64], score: Floats
) -> Floats:
    """Scores and ranks relative to the other notes: (m, 6)."""
    session = shortlist.candidates.session[shortlist.rows]
    graph = shortlist.first.graph_score[shortlist.rows].astype(np.float64)
    place = np.log1p(np.arange(len(local))) / 2.0
    totals = np.bincount(session + 1, likelihood, session.max() + 2)
    by_session = np.where(session >= 0, totals[session + 1], likelihood)
    share = np.log(np.maximum(graph, 1e-6) / max(graph.max(), 1e-6))
    return np.column_stack(
        [(local - local.max()) / 3.0, 3.0 * likelihood, share / 3.0, place, score / 3.0, 2.0 * by_session]
    )


def _match_features(question: Question, candidates: Candidates, rows: Ints) -> Floats:
    """Query tokens in the note itself: their number, and the rarity of the rarest: (m, 2)."""
    present = candidates.tf[rows] > 0
    if not present.shape[1]:
        return np.zeros((len(rows), 2), np.float32)
    rarity = idf(candidates.stats.df, candidates.stats.notes) * question.rarity / 5.0
    return np.column_stack([present.sum(axis=1) / 4.0, (present * rarity).max(axis=1)])


def _neighbour_features(candidates: Candidates, rows: Ints) -> Floats:
    """The previous and next turns, start of the session, and the speaker of the best note: (m, 8)."""
    weights = idf(candidates.stats.df, candidates.stats.notes)
    covered = (candidates.tf > 0) @ weights / max(float(weights.sum()), 1e-9)
    columns = []
    for other in (candidates.previous[rows], candidates.next[rows]):
        for values in (covered, candidates.cosine, candidates.is_question):
            columns.append(np.where(other >= 0, values[other], 0.0))
    first = (candidates.session[rows] >= 0) & (candidates.previous[rows] < 0)
    speaker = candidates.speaker[rows]
    return np.column_stack([*columns, first, (speaker == speaker[0]) & (speaker >= 0)])


def _flags(candidates: Candidates, rows: Ints) -> Floats:
    """Candidate sources and kinds: (m, 9)."""
    seeds = [candidates.seeds[rows] & seed != 0 for seed in _SEEDS]
    return np.column_stack([*seeds, *(candidates.kind[rows] == kind for kind in range(len(_KINDS)))])


def _time_and_degree(shortlist: Shortlist) -> Floats:
    """Time within the span of the shortlist, and counts of links and terms: (m, 4)."""
    candidates, rows = shortlist.candidates, shortlist.rows
    when = candidates.occurred_at[rows]
    dated = when != TIME_MIN
    time = np.zeros(len(rows))
    if dated.any():
        since, until = when[dated].min(), when[dated].max()
        time[dated] = (when[dated] - since) / max(float(until - since), 1.0)
    ends = np.concatenate([candidates.link_source, candidates.link_target])
    degree, terms = (np.bincount(x, minlength=len(candidates.ids)) for x in (ends, candidates.term_note))
    return np.column_stack([dated, time, np.log1p(degree[rows]) / 2.0, np.log1p(terms[rows]) / 2.0])


def perplexity(local: NDArray[np.float64]) -> float:
    """Return the effective number of answers, from 1: exp of the entropy of the softmax of the local scores."""
    below = local - local.max()
    odds = np.exp(below)
    total = float(odds.sum())
    return total * float(np.exp(-(odds @ below) / total))


def _question_features(
    question: Question, shortlist: Shortlist, local: NDArray[np.float64], notes: Floats
) -> Floats:
    """(QUESTION_FEATURES,)"""
    candidates = shortlist.candidates
    named = speakers_named(question, candidates.speaker_names)
    sessions = len(np.unique(candidates.session[shortlist.rows]))
    features = [
        len(question.tokens) / 5.0, max(named, default=0.0), float(bool(question.times)), local.max() / 10.0,
        np.log(perplexity(local)) / 3.0, notes[:, NOTE_FEATURES.index("coverage")].max(),
        np.log1p(sessions) / 3.0, np.log1p(candidates.stats.notes) / 8.0,
    ]  # fmt: skip
    asks = [form.search(question.text) is not None for form in _ASKS.values()]
    return np.array([*asks, *features], np.float32)


def _pair_features(shortlist: Shortlist) -> Floats:
    """(m, m, PAIR_FEATURES); a link is "out" if the first note of the pair is its source."""
    candidates, rows = shortlist.candidates, shortlist.rows
    m = len(rows)
    place = np.full(len(candidates.ids), -1)
    place[rows] = np.arange(m)
    session, speaker, when = candidates.session[rows], candidates.speaker[rows], candidates.occurred_at[rows]
    same = (session[:, None] == session) & (session >= 0)
    steps = _steps(candidates, rows, place)
    days = np.abs(when[:, None] - when.astype(np.float64)) / _DAY
    known = (when != TIME_MIN)[:, None] & (when != TIME_MIN)
    links = np.zeros((m, m, len(LINK_TYPES)), np.float32)
    ends = place[candidates.link_source], place[candidates.link_target]
    type = np.where(candidates.link_type == _UPDATES, _SUPERSEDES, candidates.link_type)
    inside = (ends[0] >= 0) & (ends[1] >= 0)
    links[ends[0][inside], ends[1][inside], type[inside]] = candidates.link_weight[inside]
    has_term = np.zeros((m, max(len(candidates.term_df), 1)), np.float32)
    use = place[candidates.term_note]
    has_term[use[use >= 0], candidates.term_index[use >= 0]] = 1.0
    shared = (has_term @ has_term.T > 0).astype(np.float32)
    connected = np.minimum(links.sum(axis=2) + links.sum(axis=2).T + shared, 1.0)
    columns = [same, steps == 1, steps <= WINDOW, (speaker[:, None] == speaker) & (speaker >= 0),
            shortlist.vectors @ shortlist.vectors.T, np.where(known, np.log1p(days) / 5.0, 0.0), shared,
            np.minimum(connected @ connected, 1.0)]  # fmt: skip
    return np.concatenate([np.stack(columns, axis=2), links, links.transpose(1, 0, 2)], axis=2).astype(np.float32)


def _steps(candidates: Candidates, rows: Ints, place: Ints) -> Ints:
    """Distance of two notes in their session, WINDOW + 1 if farther: (m, m)."""
    m = len(rows)
    steps = np.full((m, m), WINDOW + 1)
    following = rows
    for step in range(1, WINDOW + 1):
        following = np.where(following >= 0, candidates.next[following], -1)
        column = np.where(following >= 0, place[following], -1)
        row = np.flatnonzero(column >= 0)
        steps[row, column[row]] = steps[column[row], row] = step
    return steps
