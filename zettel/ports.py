"""The seams of zettel: what a store, an annotator, an embedder, a scorer and a runner must do.

Each is a small async Protocol over frozen values; what is written is in ``zettel.batch``, what is asked and answered in
``zettel.query``. Writing another one is one file and one entry point, and the contract tests say whether it is right.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from typing import TypeAlias

    from zettel.batch import Batch, PutEvent, PutJob, PutMention, PutNoteUse, PutTombstones, RestoreLinks
    from zettel.errors import ModelError
    from zettel.model import (
        EventRecord,
        Evolved,
        Job,
        JobKind,
        JobState,
        Link,
        LoggedSearch,
        ModelUse,
        Note,
        NoteUse,
        Proved,
        Revision,
        Scope,
        Term,
    )
    from zettel.opening import Opening
    from zettel.query import Candidates, Filter, Floats, Query, Question, Scores, Shortlist

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


@runtime_checkable
class QuestionEmbedder(Protocol):
    """What an embedder may do beside being an ``Embedder``: read a question otherwise than the texts that answer it,
    with a prompt of its own before it, say."""

    async def embed_questions(self, texts: Sequence[str]) -> Floats:
        """As ``embed``, for questions."""
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
    """Passages to note fields, in order, one Annotation for each; fit to stand before a commit.

    One that asks a model does not wait there: it is a ``zettel.llm.ports.ModelAnnotator``.
    """

    name: str
    remote: bool
    """False: it talks to no network."""

    async def annotate(self, passages: Sequence[Passage], stats: TermStats) -> list[Annotation]: ...


# --------------------------------------------------------------------------------------------------------------- reads

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


class KeptNote(NamedTuple):
    """A note with its whole history and its vectors: all that cannot be computed from something else.

    ``base`` and ``revisions`` as in ``NoteHistory``; ``vectors`` are (vector set, (dim,) float32), by set.
    """

    base: Note
    revisions: tuple[Revision, ...]
    vectors: tuple[tuple[int, Floats], ...]


if TYPE_CHECKING:
    Kept: TypeAlias = ScopeState | PutEvent | KeptNote | RestoreLinks | PutMention | PutTombstones | PutNoteUse | PutJob
    """What a whole scope consists of, record by record."""


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
        """Notes in ``seq`` order, those past ``after``; archived ones are left out."""
        ...

    async def archived(self, scope: Scope, before: int, limit: int) -> list[Note]:
        """Archived notes from the newest on, those of lower ``seq`` than ``before``; next to free where none is."""
        ...

    async def histories(self, scope: Scope, ids: Sequence[str]) -> dict[str, NoteHistory]: ...

    async def citing(self, scope: Scope, notes: Sequence[str]) -> tuple[Revision, ...]:
        """All revisions with one of these notes as their cause, among their inputs or the targets of their links."""
        ...

    async def links(self, scope: Scope, notes: Sequence[str]) -> list[Link]:
        """Live links that start or end at one of these, MENTIONS included, by (source, type, target)."""
        ...

    async def terms(self, scope: Scope, note: str) -> list[Term]: ...

    async def uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, tuple[TermUse, ...]]:
        """What each note's index says of its Terms."""
        ...

    async def vectors(self, scope: Scope, notes: Sequence[str], space: int) -> dict[str, Floats]:
        """The (d,) vectors of those of the notes that have one in this set."""
        ...

    async def near(self, scope: Scope, notes: Sequence[str], space: int, k: int) -> list[Near]:
        """The k nearest older notes (lower seq) of each that has a vector; exact in a scope of some ten thousand."""
        ...

    async def optimize(self, scope: Scope, space: int) -> None:
        """Bring what makes searches quick in shape after growth, if that is due; link jobs call it."""
        ...

    async def scopes(self) -> list[Scope]: ...

    async def drop_scope(self, scope: Scope) -> int:
        """Destroy all of a scope, tombstones and secret too; returns how many notes it had."""
        ...

    # moving a scope to another store
    def whole(self, scope: Scope) -> AsyncIterator[Sequence[Kept]]:
        """All of one scope, streaming, in pages of at most some hundred records, all of one state.

        First the ScopeState, then everything in the order in which it can be restored: each PutEvent by ``seq``; each
        KeptNote by ``seq``, archived ones too; of each note that owns decided links its RestoreLinks, by the ``seq`` of
        the owner, the links by (source, type, target); each PutMention by the ``seq`` of its source, then by target;
        all tombstones by identity, in one or more PutTombstones; a PutNoteUse of each note that was of use, by its
        ``seq``; each PutJob in the order they were queued, a running one as queued and without token. ``valid_to`` of a
        base and ``live`` of a revision are derived and may say anything. What language models answered and cost is left
        out: it can be paid for, and counted, anew; so is the log of searches. Of a scope never written to: nothing.
        Raises ``StoreBusy`` if the store cannot keep one state in view and the scope was written to meanwhile.
        """
        ...

    async def abandon_restore(self, scope: Scope) -> None:
        """Destroy what restores of this scope have written that did not come to their end (see ``batch.Restore``).

        ``drop_scope`` does that too, and ``check`` names a scope of which there is something.
        """
        ...

    # vector sets
    async def spaces(self) -> list[Space]: ...

    async def add_space(self, name: str, dim: int, fingerprint: str, recipe: str) -> Space:
        """A new vector set; the first one is active at once. An existing one of the same values is returned."""
        ...

    async def without_vector(self, space: int, limit: int) -> list[tuple[Scope, Note]]: ...

    async def activate(self, space: int) -> bool:
        """Switch searches to this set and be rid of all others in one transaction; False while a note lacks a vector.

        Their vectors may be destroyed afterwards: before this returns, or, if it was cut off, when the store is opened
        next. Nothing tells of them meanwhile."""
        ...

    # jobs
    async def claim(
        self, kinds: Sequence[JobKind], limit: int, lease: float, scope: Scope | None, busy: Sequence[Scope] = ()
    ) -> list[Job]:
        """Take up to ``limit`` due jobs for ``lease`` seconds, each with a fresh token; all of one scope and kind.

        Of ``busy`` scopes only jobs are taken whose order does not count (``model.SIDE_BY_SIDE``).
        """
        ...

    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        """Leave jobs that were claimed together to their worker for ``lease`` seconds from now on. Those that were
        taken over or ended meanwhile are left alone."""
        ...

    async def fail(
        self, jobs: Sequence[Job], error: str, retry_at: datetime | None, counts: bool = True
    ) -> None:
        """Keep the error with jobs that were claimed together; queue them again at ``retry_at``, or leave them failed
        when that is None. ``counts``: False takes the claim off their attempts, for nothing was tried. Those that were
        taken over meanwhile are left alone."""
        ...

    async def jobs(self, scope: Scope | None, state: JobState | None = None) -> list[Job]: ...

    async def pending(
        self, scope: Scope | None, kinds: Sequence[JobKind] | None = None, due_by: datetime | None = None
    ) -> int:
        """How many jobs (of these kinds) are running, or queued (to run by then)."""
        ...

    async def retry(self, scope: Scope | None, job: str | None = None) -> int:
        """Queue failed jobs again (only the one of this id, if given); returns how many."""
        ...

    async def cancel(self, scope: Scope, job: str) -> bool:
        """Take the job of this id off the queue unless somebody holds its lease; whether it was taken off."""
        ...

    async def purge(self) -> bool:
        """Remove what deletes left in the store's files; False while another reader holds the old pages."""
        ...

    async def purge_due(self) -> bool:
        """Whether a scope was dropped since the last ``purge``. After a delete of less a job waits for it."""
        ...

    # what language models said and cost
    async def answer(self, scope: Scope, key: str) -> str | None:
        """The kept answer of that key, see ``PutAnswer``."""
        ...

    async def model_use(self, scope: Scope | None, since: date | None = None) -> list[ModelUse]:
        """What models have cost (from a day on), one for each day and model, in this order."""
        ...

    # what was searched, and what was of use
    async def log_searches(self, searches: Mapping[Scope, Sequence[LoggedSearch]]) -> None:
        """Add to the log of each scope's searches, durably; no Batch, for nothing that is planned rests on it.

        What waits of all scopes comes at once: a store that has transactions of its own file writes it in one. One of
        whose hits its scope does not hold any more is left out: it may have been on its way when the note was erased.
        So are all of a scope never written to. Of each scope the newest ``zettel.evolve.feedback.LOGGED``
        searches are kept, by (asked_at, id).
        """
        ...

    async def search_logged(self, scope: Scope, id: str) -> LoggedSearch | None:
        """The search of that id, if it is in the log."""
        ...

    def searches(self, scope: Scope) -> AsyncIterator[LoggedSearch]:
        """All of the log by (asked_at, id), streaming."""
        ...

    async def questions_logged(self, scope: Scope) -> dict[str, str]:
        """What each search in the log asked, by its id."""
        ...

    async def note_uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, NoteUse]:
        """Of each of the notes that is there, what feedback says of it."""
        ...

    async def proved(self, scope: Scope, notes: Sequence[str]) -> dict[str, Proved]:
        """How notes proved by the log of searches; only those found by a search of which something was told."""
        ...

    # looking after
    async def counts(self, scope: Scope | None) -> dict[str, int]: ...

    async def check(self, repair: bool) -> list[str]:
        """What is wrong between notes, postings, vectors, sums and links; one line each. Empty: all is well."""
        ...

    def dump(self, scope: Scope) -> AsyncIterator[tuple[EventRecord, tuple[Note, ...]]]:
        """Every event of a scope with its notes, in ``seq`` order, streaming."""
        ...


@runtime_checkable
class SurveyingStore(Protocol):
    """What a store may do beside being a ``GraphStore``, if every call costs it a round trip: answer two in one."""

    async def survey(self, scope: Scope, ask: Callable[[bytes], Lookup]) -> tuple[ScopeState, Found]:
        """What ``state`` says, and ``lookup`` of that which ``ask`` makes of the scope's secret. ``ask`` may be called
        twice."""
        ...


@runtime_checkable
class CypherStore(Protocol):
    """What a store may do beside being a ``GraphStore``: answer queries in Cypher."""

    async def cypher(self, query: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows of a query that only reads. Raises ``InvalidQuestion``."""
        ...


# -------------------------------------------------------------------------------------------------------------- scoring


class Scorer(Protocol):
    """Scores candidates for a question."""

    name: str

    def score(self, question: Question, candidates: Candidates) -> Scores:
        """Pure and quick; (n,) scores in row order."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """Orders anew the best notes that the default scorer found: ``reads`` of them for each question.

    ``name`` is what hits call it by. ``wants_vectors``: whether it is given the notes' vectors, which takes a read of
    the store. One that reads slots of the whole scope has a ``bank`` as well, see ``zettel.search.slots.Bank``.
    """

    name: str
    reads: int
    wants_vectors: bool

    async def rerank(
        self, questions: Sequence[Question], shortlists: Sequence[Shortlist]
    ) -> Sequence[Floats | ModelError]:
        """(m,) for each shortlist, finite: the larger, the better. All have two notes or more.

        A ``ModelError`` in place of the values, or raised for all of them, leaves the order before as it was, and the
        hits say so. Called outside of any transaction, so it may ask a network.
        """
        ...


# --------------------------------------------------------------------------------------------------------------- runner


class Runner(Protocol):
    """Where jobs are done: in the process of the memory (the default), or in others, as on a Ray cluster.

    The memory claims jobs in their order, leases them for as long as the runner is at them, and keeps with a job what
    went wrong. A runner hands what it is given to ``zettel.jobs.elsewhere.do`` in a process of its choice, and brings
    back what that returns. To hand the same twice, because nobody knows what became of the first, does no harm.
    """

    at_once: int
    """Batches of each lane that may be under way together; those whose order counts wait for others of their scope."""
    away: bool
    """Whether other processes do them. Then vectors that take long to make are made there, too."""

    async def start(self, opening: Opening) -> None:
        """Get ready to do jobs of the memory that is opened so. Raises ``InvalidInput``, ``RunnerUnavailable``."""
        ...

    async def do(self, jobs: Sequence[Job]) -> Evolved:
        """Do jobs of one scope and kind; how many notes that changed. Raises ``RunnerUnavailable``."""
        ...

    async def close(self) -> None:
        """Stop. What is under way may be dropped: its jobs go back to the queue."""
        ...
