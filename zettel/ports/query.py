"""What a question is, on its way: as it was asked, taken apart, as a store sees it, what the store answers, what a
scorer makes of that, and what a reranker is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntFlag
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from zettel.model import Note, Role, Scope
    from zettel.ports.language_model import Ask

    Floats: TypeAlias = NDArray[np.float32]
    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Filter:
    """What a note must be like to be a hit; applied before any top-k. Empty or None asks for nothing.

    ``kinds``, ``tags``: any of them. ``since`` (included) and ``until`` (excluded) are microseconds of
    ``occurred_at``; an undated note passes neither. ``metadata`` are flat ``key=value`` strings, all of which must
    hold. ``source`` is the file an event was read from.
    """

    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    session: str | None = None
    speaker: str | None = None
    role: Role | None = None
    since: int | None = None
    until: int | None = None
    metadata: tuple[str, ...] = ()
    source: str | None = None


class Seed(IntFlag):
    """Where a candidate came from."""

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
    """The caller's search: question, times and filter.

    ``current_only`` leaves out outdated notes. ``log`` records the search for feedback. ``archived`` and
    ``quarantined`` include such notes. ``recalls`` looks at decayed notes if only they contain a word of the question;
    ``restore_decayed`` restores those that become hits.
    """

    text: str
    k: int = 10
    as_of: datetime | None = None
    known_at: datetime | None = None
    now: datetime | None = None
    filter: Filter = field(default_factory=Filter)
    min_score: float | None = None
    explain: bool = False
    current_only: bool = False
    log: bool = False
    archived: bool = False
    quarantined: bool = False
    recalls: bool = False
    restore_decayed: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A question as a store sees it.

    ``vector``: (d,) float32 unit row or None, compared in ``space``. ``tokens``: distinct asked tokens.
    ``names``: normal forms of the phrases in the question that may be a Term or a title. ``times``: named stretches as
    microseconds, end excluded. ``as_of``, ``known_at``: microseconds. ``pool``: how many notes each way of seeding
    may bring; ``window``: how many neighbours in time each pool note has beside it, on either side.
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
    """Of the scope alone, and of what the two clocks let through: notes, their tokens in all, df of asked tokens.

    Whatever the clocks let through: ``used`` is whether feedback says of any note of the scope that it was of use,
    ``archived`` whether any is archived; the archive of a store that does not tell is looked at.
    """

    notes: int
    tokens: int
    df: Ints  # (q,)
    used: bool = False
    archived: bool = True


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a store knows about a question, in columns. n rows are notes, q the asked tokens, t the Terms in reach.

    Rows stand in ``seq`` order. ``pool`` rows may become hits; the others are context: neighbours in time, and notes
    that the walk passes through but the filter does not let out.
    """

    ids: Sequence[str]  # (n,)
    pool: Bools  # (n,)
    seeds: Ints  # (n,) Seed flags
    seq: Ints  # (n,)
    event: Ints  # (n,) same number: parts of the same event
    kind: Ints  # (n,) index into tuple(Kind)
    speaker: Ints  # (n,) index into speaker_names, -1: none
    speaker_names: tuple[str, ...]
    session: Ints  # (n,) index into session_*, -1: none
    previous: Ints  # (n,) row of the note before it in its session, -1: none or not here
    next: Ints  # (n,) row of the note after it
    occurred_at: Ints  # (n,) microseconds, TIME_MIN: unknown
    valid_from: Ints  # (n,) microseconds, TIME_MIN: always
    valid_to: Ints  # (n,) microseconds, TIME_MAX: still valid
    length: Ints  # (n,) tokens
    is_question: Bools  # (n,)
    tf: Floats  # (n, q) count of each asked token
    cosine: Floats  # (n,) of the note's vector with the question's, 0 where either has none
    link_source: Ints  # (e,) row
    link_target: Ints  # (e,) row
    link_type: Ints  # (e,) index into tuple(LinkType)
    link_weight: Floats  # (e,)
    term_keys: Sequence[str]  # (t,) those that the question names, and rare ones that two notes of the pool hold
    term_df: Ints  # (t,) notes of the scope that hold it
    term_named: Bools  # (t,) the question names it
    term_note: Ints  # (u,) row of a use
    term_index: Ints  # (u,) its Term
    session_tf: Floats  # (s, q) over the whole session, of the tokens that were read
    session_length: Ints  # (s,) tokens over the whole session
    stats: ScopeStats


@dataclass(frozen=True, slots=True)
class Question:
    """A question taken apart.

    ``words`` are its surface words in order, ``today`` the moment that relative dates count from, in microseconds.
    """

    text: str
    tokens: tuple[str, ...]
    rarity: Floats  # (q,) background rarity of each token, 0 common .. 1 never seen
    names: tuple[str, ...]
    times: tuple[tuple[int, int], ...]
    vector: Floats | None
    today: int | None


@dataclass(frozen=True, slots=True)
class Scores:
    """What a scorer says: ``score`` is calibrated to 0..1 and ranks the rows; the rest explains it."""

    score: Floats  # (n,)
    local_score: Floats  # (n,)
    graph_score: Floats  # (n,)
    features: Floats  # (n, f) value times weight
    feature_names: tuple[str, ...]
    sender: Callable[[int], int]  # of a row, or n + Term, which node sent most of its share; -1: the start


@dataclass(frozen=True, slots=True)
class Shortlist:
    """The best m notes for a question by the default scorer, best first, to be ordered anew.

    ``score`` is what they have from it, 0..1; ``first`` and ``candidates`` are what that was chosen from. ``vectors``
    are unit rows, zeros for a note without one; (m, 0) for who does not want them.
    """

    candidates: Candidates
    first: Scores
    rows: Ints  # (m,) of the candidates
    score: Floats  # (m,)
    notes: Sequence[Note]  # (m,)
    vectors: Floats  # (m, d)
    embedder: str  # fingerprint of what made the vectors
    ask: Ask | None  # asks the memory's language model about these notes; None: it has none
    utility: Floats | None = None  # (m,) usefulness, see scoring.preferences; None: not requested
