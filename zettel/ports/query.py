"""The values that the steps of a search exchange, in order.

``SearchRequest`` (from the caller), ``Question`` (analysed), ``Query`` (to the store), ``Candidates`` (from the store),
``Scores`` (from the scorer), ``Shortlist`` (to a reranker). Exact queries rank nothing: they have a ``Selection`` (to
the store) and each ``Tally`` (from the store).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntFlag
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from zettel.model import Note, Role, Scope
    from zettel.ports.conditions import Condition
    from zettel.ports.language_model import Ask

    Floats: TypeAlias = NDArray[np.float32]
    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that a note must meet to become a hit. Stores apply them before any top-k.

    An empty or None field sets no condition. ``kinds`` and ``tags`` match if any of them does, ``metadata`` if all of
    its ``key=value`` strings do, ``where`` by ``zettel.ports.conditions.matches``. ``since`` (included) and
    ``until`` (excluded) are microseconds of ``occurred_at``, and a note without a time fails both. ``source``
    is the file that the event was imported from. With ``unexpired_at`` (microseconds), unarchived notes that expired by
    then fail.
    """

    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    session: str | None = None
    speaker: str | None = None
    role: Role | None = None
    since: int | None = None
    until: int | None = None
    metadata: tuple[str, ...] = ()
    where: Condition | None = None
    source: str | None = None
    unexpired_at: int | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """The notes or events that an exact query selects.

    Selected notes are unarchived and pass the filter, whose ``source`` is None. Their index has all tokens of one of
    ``tokens``, and one of ``terms`` (keys), unless these are empty. With ``as_of`` (microseconds) they were valid then:
    ``valid_from`` is not later, and ``valid_to`` is later.

    With ``of_events``, the events that selected episodic notes are based on in their present version. Each event has
    the kind, speaker, role, tags and terms of its note; ``session``, ``since`` and ``until`` of the filter apply to the
    event instead of the note.
    """

    filter: Filter
    tokens: tuple[tuple[str, ...], ...] = ()
    terms: tuple[str, ...] = ()
    as_of: int | None = None
    of_events: bool = False


TALLY_FIELDS = ("kind", "speaker", "role", "session", "day", "slot", "tag", "term")
"""The fields by which stores group. A day in UTC and a slot are numbers: ``occurred_at`` // DAY and // SLOT."""
DAY, SLOT = 24 * 60 * 60 * 1_000_000, 15 * 60 * 1_000_000
"""Microseconds. The offsets of time zones are multiples of a slot, so slots add up to the days of any zone."""


class Tally(NamedTuple):
    """A group: its values of the fields, in their order; its number of notes or events; their first and last times.

    The times are microseconds, None if no time is known.
    """

    key: tuple[str | int | None, ...]
    count: int  # type: ignore[assignment]  # a field, not the method of tuple
    first: int | None
    last: int | None


class Seed(IntFlag):
    """The sources of a candidate, as flags; ``zettel.ports.candidate_rules`` defines each source."""

    VECTOR = 1
    TEXT = 2
    TERM = 4
    TITLE = 8
    TIME = 16
    NEIGHBOUR = 32
    WALK = 64
    ARCHIVE = 128


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """The caller's search: the question, the times, the filter, and the options.

    ``k`` is the number of hits. ``as_of`` is the valid time, ``known_at`` the transaction time; relative dates in the
    question count from ``now``. ``current_only`` omits outdated notes. ``log`` writes the search to the search log.
    ``archived`` and ``quarantined`` include such notes. ``recalls`` includes decayed notes if only they contain a word
    of the question; ``restore_decayed`` restores those that become hits. ``min_trust`` (0 .. 1) omits notes of less
    trust.
    """

    text: str
    k: int = 10
    as_of: datetime | None = None
    known_at: datetime | None = None
    now: datetime | None = None
    filter: Filter = field(default_factory=Filter)
    min_score: float | None = None
    min_trust: float | None = None
    explain: bool = False
    current_only: bool = False
    log: bool = False
    archived: bool = False
    quarantined: bool = False
    recalls: bool = False
    restore_decayed: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A question in the form that stores take.

    ``vector``: (d,) float32 of length 1, compared with the vectors of the set ``space``, or None. ``tokens``: the
    distinct query tokens. ``names``: normal forms of phrases that may be terms or titles. ``times``: named time ranges
    (start, end) in microseconds, without the end. ``as_of``, ``known_at``: microseconds. ``pool``: maximum number of
    candidates per source. ``window``: number of neighbouring turns on either side of a candidate.
    """

    scope: Scope
    space: int
    vector: Floats | None
    tokens: tuple[str, ...]
    names: tuple[str, ...]
    times: tuple[tuple[int, int], ...]
    filter: Filter = field(default_factory=Filter)
    as_of: int | None = None
    known_at: int | None = None
    pool: int = 96
    window: int = 3


@dataclass(frozen=True, slots=True)
class ScopeStats:
    """Statistics of one scope for one query.

    ``notes`` (count), ``tokens`` (total length) and ``df`` (document frequency per query token) cover the notes that
    ``as_of`` and ``known_at`` select. The flags cover the whole scope: ``used`` is True if any note has useful
    feedback, ``archived`` is False only if the store knows that no note is archived.
    """

    notes: int
    tokens: int
    df: Ints  # (q,)
    used: bool = False
    archived: bool = True


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of a query, as columns: n notes (rows), q query tokens, t terms, e links, u term uses, s sessions.

    Rows are in ``seq`` order. Rows with ``pool`` may become hits. The others are context: neighbouring turns, and notes
    on the graph walk that fail the filter.
    """

    ids: Sequence[str]  # (n,)
    pool: Bools  # (n,)
    seeds: Ints  # (n,) Seed flags
    seq: Ints  # (n,)
    event: Ints  # (n,) parts of one event have the same number
    kind: Ints  # (n,) index into tuple(Kind)
    speaker: Ints  # (n,) index into speaker_names, -1: none
    speaker_names: tuple[str, ...]
    role: Ints  # (n,) index into ROLES, -1: none
    session: Ints  # (n,) index into session_*, -1: none
    previous: Ints  # (n,) row of the previous note in its session, -1: none or not a row
    next: Ints  # (n,) row of the next note in its session, -1: none or not a row
    occurred_at: Ints  # (n,) microseconds, TIME_MIN: unknown
    valid_from: Ints  # (n,) microseconds, TIME_MIN: always
    valid_to: Ints  # (n,) microseconds, TIME_MAX: still valid
    length: Ints  # (n,) tokens
    is_question: Bools  # (n,)
    tf: Floats  # (n, q) count of each query token
    cosine: Floats  # (n,) with the vector of the question, 0 if one of the two has no vector
    link_source: Ints  # (e,) row
    link_target: Ints  # (e,) row
    link_type: Ints  # (e,) index into tuple(LinkType)
    link_weight: Floats  # (e,)
    term_keys: Sequence[str]  # (t,) terms in the question, and rare terms that two candidates share
    term_df: Ints  # (t,) number of notes in the scope with the term
    term_named: Bools  # (t,) the question contains the term
    term_note: Ints  # (u,) row of the note
    term_index: Ints  # (u,) position of the term in term_keys
    session_tf: Floats  # (s, q) token counts of the whole session; 0 for tokens that step 2 skips
    session_length: Ints  # (s,) number of tokens of the whole session
    stats: ScopeStats


@dataclass(frozen=True, slots=True)
class Question:
    """An analysed question, the input of a scorer.

    ``tokens``, ``names``, ``times`` and ``vector`` as in ``Query``. ``today`` is the time that relative dates count
    from, in microseconds, and ``valid_at`` the time at which notes must be true (None: any time). ``time_tokens``
    marks the tokens that occur only in phrases that name a time. ``time_only`` is True if the question names a time and
    no other subject. ``many`` is True if it asks for several different things.
    """

    text: str
    tokens: tuple[str, ...]
    rarity: Floats  # (q,) rarity of each token in general text, 0 (common) .. 1 (unknown)
    names: tuple[str, ...]
    times: tuple[tuple[int, int], ...]
    vector: Floats | None
    today: int | None
    valid_at: int | None
    time_tokens: Bools  # (q,)
    time_only: bool
    many: bool
    present: bool


@dataclass(frozen=True, slots=True)
class Scores:
    """The result of a scorer for n rows: ``score`` is calibrated to 0..1 and ranks the rows; the rest explains it.

    ``explanation`` returns how much each named part contributes to the local score of a row; the parts add up to it. A
    scorer without it is explained by its features.
    """

    score: Floats  # (n,)
    local_score: Floats  # (n,)
    graph_score: Floats  # (n,)
    features: Floats  # (n, f)
    feature_names: tuple[str, ...]
    sender: Callable[[int], int]  # node (row, or n + term) to the node that sent most of its share; -1: the start
    explanation: Callable[[int], Mapping[str, float]] | None = None


@dataclass(frozen=True, slots=True)
class Shortlist:
    """The m best notes of the default scorer, best first: the input of a reranker.

    ``score`` (0..1) are their scores, taken from ``first``, the scores of all ``candidates``. ``vectors`` are rows of
    length 1, zeros for a note without a vector; the shape is (m, 0) if the reranker does not request vectors.
    """

    candidates: Candidates
    first: Scores
    rows: Ints  # (m,) rows in candidates
    score: Floats  # (m,)
    notes: Sequence[Note]  # (m,)
    vectors: Floats  # (m, d)
    embedder: str  # fingerprint of the embedder of the vectors
    ask: Ask | None  # calls the memory's language model about these notes; None without a model
    utility: Floats | None = None  # (m,) usefulness, see scoring.preferences; None: not requested
