"""The seams of zettel: what a store, an annotator, an embedder, a scorer and a runner must do.

Each is a small async Protocol over frozen values; batches are lists of such values. Writing another one is one file
and one entry point, and the contract tests say whether it is right.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntFlag
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from zettel.model import EventRecord, Job, JobKind, JobState, Link, LinkType, Note, Revision, Scope, Term

    Floats: TypeAlias = NDArray[np.float32]
    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

# ---------------------------------------------------------------------------------------------------------------- embed


class EmbedderInfo(NamedTuple):
    """Which embedder filled a store: ``fingerprint`` is the sha256 of its weights, or of its name if it is remote."""

    name: str
    dim: int
    fingerprint: str


class Embedder(Protocol):
    """Texts to vectors."""

    remote: bool
    """Whether it talks to a network; then it never stands before a commit: an ``embed`` job follows."""

    @property
    def info(self) -> EmbedderInfo:
        """Name, dimension and fingerprint. A remote embedder may have to be asked once before it knows ``dim``."""
        ...

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return (n, dim) float32 unit rows; a text without a known word gives a zero row.

        Raises ``EmbedderUnavailable`` when a remote one does not answer.
        """
        ...


# ------------------------------------------------------------------------------------------------------------- annotate


class TimeRange(NamedTuple):
    """A stretch of time named by a text: UTC, ``end`` not included."""

    start: datetime
    end: datetime
    text: str


class TermUse(NamedTuple):
    """How often a note uses a Term: ``key`` is the normal form, ``kind`` one of keyword, tag, name, speaker."""

    key: str
    text: str
    kind: str
    count: int  # type: ignore[assignment]  # a field, not the method of tuple


class Annotation(NamedTuple):
    """What an annotator makes of one text."""

    caption: str
    context: str
    keywords: tuple[str, ...]
    tags: tuple[str, ...]


class Passage(NamedTuple):
    """What an annotator reads: one part of an event."""

    content: str
    title: str | None
    role: str | None
    occurred_at: datetime | None


class TermStats(NamedTuple):
    """The scope's own statistics: number of notes, and in how many each asked token stands."""

    notes: int
    df: Mapping[str, int]


class Annotator(Protocol):
    """Passages to note fields, in order, one Annotation for each."""

    name: str

    async def annotate(self, passages: Sequence[Passage], stats: TermStats) -> list[Annotation]: ...


# --------------------------------------------------------------------------------------------------------------- writes


@dataclass(frozen=True, slots=True)
class NoteIndex:
    """What a note is found by; always a pure function of the note (see ``zettel.annotate.index``).

    ``tokens`` are the tokens of its searchable text with their counts, ``terms`` its Terms, ``title_keys`` the normal
    forms under which other texts name it (empty without a title; only the head of an event has them).
    """

    tokens: Mapping[str, int]
    terms: tuple[TermUse, ...]
    title_keys: tuple[str, ...]

    @property
    def length(self) -> int:
        """Number of tokens, repetitions counted."""
        return sum(self.tokens.values())


@dataclass(frozen=True, slots=True)
class PutEvent:
    """Store an event. ``identity`` is the keyed hash that makes it this event."""

    event: EventRecord
    identity: str


@dataclass(frozen=True, slots=True)
class PutNote:
    """Store a new note (version 1, its base for ever) and what it is found by."""

    note: Note
    index: NoteIndex


@dataclass(frozen=True, slots=True)
class PutRevision:
    """Add a Revision and set the note to the state that the fold now gives.

    ``index`` is None where no searchable field changed. ``links`` is the whole set of decided links that the fold
    gives for this note: the store ends those that are no longer in it, and adds the new ones.
    """

    revision: Revision
    note: Note
    index: NoteIndex | None
    links: tuple[Link, ...] | None


@dataclass(frozen=True, slots=True)
class PutVector:
    """Store a note's vector, (dim,) float32, in one of the store's vector sets."""

    note: str
    space: int
    vector: Floats


@dataclass(frozen=True, slots=True)
class PutMention:
    """One note's text names another note's title. Derived, so it has no Revision."""

    link: Link


@dataclass(frozen=True, slots=True)
class DropMentions:
    """Forget the MENTIONS that start or end at these notes."""

    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EraseNotes:
    """Destroy notes with all that hangs on them: index, vectors, links both ways, revisions, jobs."""

    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EraseEvents:
    """Destroy events, and leave the keyed hashes of their identities as tombstones."""

    events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EraseRevisions:
    """Destroy single revisions of a note (a PutRevision in the same batch says what the note falls back to)."""

    note: str
    versions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PutJob:
    """Queue a job; one that is there already for the same (scope, kind, note, version) stays as it is."""

    job: Job


@dataclass(frozen=True, slots=True)
class FinishJob:
    """Take a job off the queue. The commit fails with StaleLease unless ``token`` is the one of its lease."""

    job: str
    token: str


Op: TypeAlias = (
    PutEvent | PutNote | PutRevision | PutVector | PutMention | DropMentions | EraseNotes | EraseEvents
    | EraseRevisions | PutJob | FinishJob
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Batch:
    """Operations on one scope, applied in order, all or none.

    ``expects`` is the scope's ``seq`` that the batch was planned on, ``seq`` the last one it uses. A store whose
    scope has moved on raises ``Conflict`` and writes nothing; the caller plans anew.
    """

    scope: Scope
    expects: int
    seq: int
    ops: tuple[Op, ...]


class Conflict(Exception):
    """The scope has moved on since the batch was planned. Never reaches a user: the plan is made anew."""


class StaleLease(Exception):
    """The job was taken over by another worker. Never reaches a user: the work is dropped."""


# ---------------------------------------------------------------------------------------------------------------- reads


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
    role: str | None = None
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


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its clocks and its filter, as the caller put them."""

    text: str
    k: int = 10
    as_of: datetime | None = None
    known_at: datetime | None = None
    now: datetime | None = None
    filter: Filter = field(default_factory=Filter)
    min_score: float | None = None
    explain: bool = False


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
    pool: int = 128
    window: int = 3


@dataclass(frozen=True, slots=True)
class ScopeStats:
    """Of the scope alone, and of what the two clocks let through: notes, their tokens in all, df of asked tokens."""

    notes: int
    tokens: int
    df: Ints  # (q,)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a store knows about a question, in columns. n rows are notes, q the asked tokens, t the Terms in reach.

    Rows stand in ``seq`` order. ``pool`` rows may become hits; the others are context: neighbours in time, and notes
    that the walk passes through but the filter does not let out.
    """

    ids: tuple[str, ...]  # (n,)
    pool: Bools  # (n,)
    seeds: Ints  # (n,) Seed flags
    seq: Ints  # (n,)
    event: Ints  # (n,) same number: parts of the same event
    kind: tuple[str, ...]  # (n,)
    role: tuple[str | None, ...]  # (n,)
    session: Ints  # (n,) index into sessions_*, -1: none
    previous: Ints  # (n,) row of the note before it in its session, -1: none or not here
    next: Ints  # (n,) row of the note after it
    occurred_at: Ints  # (n,) microseconds, TIME_MIN: unknown
    valid_from: Ints  # (n,) microseconds, TIME_MIN: always
    valid_to: Ints  # (n,) microseconds, TIME_MAX: still valid
    length: Ints  # (n,) tokens
    is_question: Bools  # (n,)
    tf: csr_array  # (n, q) count of each asked token
    vectors: Floats  # (n, d) unit rows, zero where there is none
    link_source: Ints  # (e,) row
    link_target: Ints  # (e,) row
    link_type: tuple[LinkType, ...]  # (e,)
    link_weight: Floats  # (e,)
    term_keys: tuple[str, ...]  # (t,)
    term_df: Ints  # (t,) notes of the scope that hold it
    term_named: Bools  # (t,) the question names it
    has_term: csr_array  # (n, t) counts
    session_names: tuple[str, ...]  # (s,)
    session_tf: csr_array  # (s, q) over the whole session
    session_length: Ints  # (s,) tokens over the whole session
    session_vectors: Floats  # (s, d) sum of the session's vectors
    stats: ScopeStats


class ScopeState(NamedTuple):
    """The scope's last ``seq``, its secret for keyed hashes (made with the scope, gone with it), and two last times.

    ``recorded_at`` and ``latest`` (the latest ``occurred_at`` of its events) are microseconds, TIME_MIN: none yet.
    """

    seq: int
    secret: bytes
    recorded_at: int
    latest: int


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a write has to know before it can be planned.

    ``identities``: keyed hashes of events. ``names``: phrases in the new texts that may be titles. ``titles``: title
    keys of the new notes, each with the tokens that a text naming it must hold.
    """

    identities: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    titles: tuple[tuple[str, tuple[str, ...]], ...] = ()
    tokens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a Lookup.

    ``events``: per identity its newest event with the ids of the notes that are its parts, head first: those that were
    made as episodic ones and rest on it in any version, for one may have been reverted or called by another kind since.
    ``tombstones``: identities that were deleted here. ``named``: per title key the notes that have it. ``naming``: per
    title key the notes whose tokens hold all of the title's (the caller checks the wording). ``has_titles``: whether
    any note of the scope has a title. ``notes`` and ``df`` answer ``tokens``.
    """

    events: Mapping[str, tuple[EventRecord, tuple[str, ...]]]
    tombstones: frozenset[str]
    named: Mapping[str, tuple[str, ...]]
    naming: Mapping[str, tuple[Note, ...]]
    has_titles: bool
    notes: int
    df: Mapping[str, int]


class NoteHistory(NamedTuple):
    """A note's base (version 1) and all its revisions in ``seq`` order."""

    base: Note
    revisions: tuple[Revision, ...]


class Near(NamedTuple):
    """For one note: older notes by cosine, best first."""

    note: str
    others: tuple[tuple[str, float], ...]


class Space(NamedTuple):
    """One of the store's vector sets: which embedder filled it, by which recipe, and whether searches use it."""

    id: int
    name: str
    dim: int
    fingerprint: str
    recipe: str
    active: bool


class GraphStore(Protocol):
    """Keeps memories. All reads of one call see one state of the store; writes are batches, all or nothing."""

    name: str

    async def open(self) -> None:
        """Raises ``NotAStore``, ``StoreTooNew``, ``StoreReadOnly``."""
        ...

    async def close(self) -> None: ...

    async def apply(self, batch: Batch) -> None:
        """Write all of a batch, durably, or nothing.

        Raises ``Conflict``, ``StaleLease``, ``StoreBusy``, ``StoreFull``, ``StoreReadOnly``.
        """
        ...

    async def state(self, scope: Scope) -> ScopeState:
        """Of a scope never written to: seq 0, and a fresh secret that the first batch makes durable."""
        ...

    async def lookup(self, scope: Scope, ask: Lookup) -> Found: ...

    async def candidates(self, query: Query) -> Candidates: ...

    async def notes(self, scope: Scope, ids: Sequence[str]) -> dict[str, Note]: ...

    async def events(self, scope: Scope, ids: Sequence[str]) -> dict[str, EventRecord]: ...

    async def events_like(self, scope: Scope, ids: Sequence[str]) -> tuple[str, ...]:
        """The ids of all events that share an identity with one of these, themselves included."""
        ...

    async def events_from(self, scope: Scope, source: str | None, session: str | None, limit: int) -> tuple[str, ...]:
        """The ids of the first ``limit`` events read from that file or said in that session, whichever is not None."""
        ...

    async def notes_of(self, scope: Scope, events: Sequence[str]) -> tuple[str, ...]:
        """The ids of all notes that have one of these among their ``event_ids`` in any version."""
        ...

    async def page(self, scope: Scope, filter: Filter, after: int, limit: int) -> list[Note]:
        """Notes in ``seq`` order, those past ``after``."""
        ...

    async def histories(self, scope: Scope, ids: Sequence[str]) -> dict[str, NoteHistory]: ...

    async def citing(self, scope: Scope, notes: Sequence[str]) -> tuple[Revision, ...]:
        """All revisions with one of these notes among their inputs or the targets of their links."""
        ...

    async def links(self, scope: Scope, notes: Sequence[str]) -> list[Link]:
        """Live links that start or end at one of these, MENTIONS included, by (source, type, target)."""
        ...

    async def terms(self, scope: Scope, note: str) -> list[Term]: ...

    async def uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, tuple[TermUse, ...]]:
        """What each note's index says of its Terms."""
        ...

    async def near(self, scope: Scope, notes: Sequence[str], space: int, k: int) -> list[Near]:
        """The k nearest older notes (lower seq) of each that has a vector; exact."""
        ...

    async def scopes(self) -> list[Scope]: ...

    async def drop_scope(self, scope: Scope) -> int:
        """Destroy all of a scope, tombstones and secret too; returns how many notes it had."""
        ...

    # vector sets
    async def spaces(self) -> list[Space]: ...

    async def add_space(self, name: str, dim: int, fingerprint: str, recipe: str) -> Space:
        """A new vector set; the first one is active at once. An existing one of the same values is returned."""
        ...

    async def without_vector(self, space: int, limit: int) -> list[tuple[Scope, Note]]: ...

    async def activate(self, space: int) -> bool:
        """Switch searches to this set and destroy all others in one transaction; False while a note lacks a vector."""
        ...

    # jobs
    async def claim(self, kinds: Sequence[JobKind], limit: int, lease: float, scope: Scope | None) -> list[Job]:
        """Take up to ``limit`` due jobs for ``lease`` seconds, each with a fresh token; all of one scope and kind."""
        ...

    async def fail(self, job: Job, error: str, retry_at: datetime | None) -> None:
        """Keep the error; queue again at ``retry_at``, or leave it failed when that is None."""
        ...

    async def jobs(self, scope: Scope | None, state: JobState | None = None) -> list[Job]: ...

    async def pending(self, scope: Scope | None) -> int:
        """How many jobs are queued or running."""
        ...

    async def retry(self, scope: Scope | None) -> int:
        """Queue failed jobs again; returns how many."""
        ...

    async def purge(self) -> bool:
        """Remove what deletes left in the store's files; False while another reader holds the old pages."""
        ...

    # looking after
    async def counts(self, scope: Scope | None) -> dict[str, int]: ...

    async def check(self, repair: bool) -> list[str]:
        """What is wrong between notes, postings, vectors, sums and links; one line each. Empty: all is well."""
        ...

    def dump(self, scope: Scope) -> AsyncIterator[tuple[EventRecord, tuple[Note, ...]]]:
        """Every event of a scope with its notes, in ``seq`` order, streaming."""
        ...


# -------------------------------------------------------------------------------------------------------------- scoring


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
    near: Floats  # (n,)
    walk: Floats  # (n,)
    features: Floats  # (n, f) value times weight
    feature_names: tuple[str, ...]
    came_from: Ints  # (n + t,) per row and Term the node that sent most of its share: row, n + term, or -1: the start


class Scorer(Protocol):
    """Scores candidates for a question."""

    name: str

    def score(self, question: Question, candidates: Candidates) -> Scores:
        """Pure and quick; (n,) scores in row order."""
        ...


# --------------------------------------------------------------------------------------------------------------- runner


class Runner(Protocol):
    """Runs jobs that are due until there are none, or until it is closed."""

    async def start(self) -> None: ...

    def wake(self) -> None:
        """There is new work."""
        ...

    def purge_later(self) -> None:
        """Purge the store as soon as other readers let it: work without a scope that could hold a job for it."""
        ...

    async def drain(self, scope: Scope | None, deadline: float | None) -> None:
        """Run or wait for all due jobs. Raises ``FlushTimeout`` past the deadline (event-loop seconds)."""
        ...

    async def close(self) -> None: ...
