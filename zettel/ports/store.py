"""The store port: small protocols by purpose, and `GraphStore`, which combines them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from typing import TypeAlias

    from zettel.model import (
        Checkpoint,
        EventRecord,
        Job,
        JobKind,
        JobState,
        Link,
        LoggedSearch,
        ModelUse,
        Note,
        NoteUse,
        Proved,
        Retention,
        Revision,
        Scope,
        Term,
        TermUse,
    )
    from zettel.ports.operations import (
        Batch,
        PutEvent,
        PutJob,
        PutMention,
        PutNoteUse,
        PutTombstones,
        RestoreLinks,
    )
    from zettel.ports.query import Candidates, Filter, Floats, Query, Selection, Tally


class ScopeState(NamedTuple):
    """A scope's last ``seq``, its secret for keyed hashes, and its latest times.

    The secret is created with the scope and destroyed with it. ``recorded_at`` and ``latest`` (the latest
    ``occurred_at`` of its events) are microseconds; TIME_MIN means that there is none yet. ``expires`` is the first
    ``expires_at`` of its unarchived notes, TIME_MAX if none expires.
    """

    seq: int
    secret: bytes
    recorded_at: int
    latest: int
    expires: int
    retention: Retention | None = None


@dataclass(frozen=True, slots=True)
class LookupQuery:
    """The data that the engine needs before it can plan a write.

    ``identities``: keyed hashes of events. ``names``: phrases in the new texts that may be titles. ``titles``: title
    keys of the new notes, each with the tokens that a text naming it must contain. ``tokens``: tokens to count.
    """

    identities: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    titles: tuple[tuple[str, tuple[str, ...]], ...] = ()
    tokens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LookupResult:
    """The answer to a LookupQuery.

    ``events``: per identity its newest event with the ids of its parts, head first. A part is a note that was created
    as episodic and cites the event in any version, even if it was reverted or changed its kind since.
    ``tombstones``: identities that were deleted here. ``named``: per title key the notes with this title. ``naming``:
    per title key the notes that contain all of the title's tokens; the caller checks the wording. ``has_titles``: any
    note of the scope has a title. ``notes`` and ``df``: note count, and document frequency per requested token.
    """

    events: Mapping[str, tuple[EventRecord, tuple[str, ...]]]
    tombstones: frozenset[str]
    named: Mapping[str, tuple[str, ...]]
    naming: Mapping[str, tuple[Note, ...]]
    has_titles: bool
    notes: int
    df: Mapping[str, int]


class NoteHistory(NamedTuple):
    """A note's base (version 1) and all its revisions in ``seq`` order.

    With a ``checkpoint`` its revisions replace those up to its version.
    """

    base: Note
    revisions: tuple[Revision, ...]
    checkpoint: Checkpoint | None = None

    @property
    def since(self) -> int:
        """The version from which on the history is complete."""
        return self.base.version if self.checkpoint is None else self.checkpoint.version

    def then(self, revision: Revision) -> NoteHistory:
        """Return the history after another revision."""
        return self._replace(revisions=(*self.revisions, revision))


class Written(NamedTuple):
    """The writes of a principal: the ids of its events, and its changes as (note, version)."""

    events: tuple[str, ...]
    changes: tuple[tuple[str, int], ...]


class NearestNotes(NamedTuple):
    """The older notes nearest to one note: (id, cosine), highest cosine first."""

    note: str
    others: tuple[tuple[str, float], ...]


class VectorSet(NamedTuple):
    """One of the store's vector sets: its embedder, its text recipe, and if searches use it."""

    id: int
    name: str
    dim: int
    fingerprint: str
    recipe: str
    active: bool


class NoteRecord(NamedTuple):
    """A note with its history and vectors: everything about it that cannot be derived.

    ``base`` and ``revisions`` as in ``NoteHistory``; ``vectors`` are (vector set, (dim,) float32), by set.
    """

    base: Note
    revisions: tuple[Revision, ...]
    vectors: tuple[tuple[int, Floats], ...]


if TYPE_CHECKING:
    ScopeRecord: TypeAlias = (
        ScopeState | PutEvent | NoteRecord | RestoreLinks | PutMention | PutTombstones | PutNoteUse | PutJob
    )
    """One record of a scope that is streamed to another store."""


class NoteStore(Protocol):
    """Stores scopes with their events, notes, revisions and links. Each read sees one state of the store."""

    async def apply(self, batch: Batch) -> None:
        """Write all operations of a batch durably, or none.

        Raises ``Conflict``, ``StaleLease``, ``StoreBusy``, ``StoreFull``, ``StoreReadOnly``.
        """
        ...

    async def state(self, scope: Scope) -> ScopeState:
        """Return a scope's state. A new scope has seq 0 and a fresh secret, which its first batch makes durable."""
        ...

    async def lookup(self, scope: Scope, ask: LookupQuery) -> LookupResult:
        """Return the data to plan a write with."""
        ...

    async def notes(self, scope: Scope, ids: Sequence[str]) -> dict[str, Note]:
        """Return notes by id; omits unknown ids."""
        ...

    async def events(self, scope: Scope, ids: Sequence[str]) -> dict[str, EventRecord]:
        """Return events by ``event_id``; omits unknown ids."""
        ...

    async def events_like(self, scope: Scope, ids: Sequence[str]) -> tuple[str, ...]:
        """Return the ids of all events that share an identity with one of these, including themselves."""
        ...

    async def events_from(self, scope: Scope, source: str | None, session: str | None, limit: int) -> tuple[str, ...]:
        """Return the ids of the first ``limit`` events of a source and a session; None matches all."""
        ...

    async def written_by(self, scope: Scope, principal: str) -> Written:
        """Return the events and the changes of a principal, by ``seq``."""
        ...

    async def notes_of(self, scope: Scope, events: Sequence[str]) -> tuple[str, ...]:
        """Return the ids of all notes with one of these in their ``event_ids`` in any version."""
        ...

    async def page(self, scope: Scope, filter: Filter, after: int, limit: int) -> list[Note]:
        """Return notes with ``seq`` above ``after`` in ``seq`` order, without archived ones."""
        ...

    async def archived(self, scope: Scope, before: int, limit: int) -> list[Note]:
        """Return archived notes with ``seq`` below ``before``, newest first. Cheap if the scope has none."""
        ...

    async def expired(
        self, scope: Scope, until: int, after: tuple[int, int], limit: int, archived: bool = False
    ) -> list[Note]:
        """Return the unarchived (or the archived) notes with ``expires_at`` up to ``until``.

        They are in the order of (``expires_at``, ``seq``), after the position ``after``; times are microseconds.
        """
        ...

    async def tally(self, scope: Scope, selection: Selection, by: Sequence[str]) -> list[Tally]:
        """Count the selected notes or events by the values of these ``TALLY_FIELDS``, in any order.

        A note with several tags (or terms) is in several groups, and in none without one; ``by`` contains at most one
        of the two. A day or slot is None without a time. Without fields there is one group, even of nothing.
        """
        ...

    async def select(self, scope: Scope, selection: Selection, order: str, limit: int) -> list[str]:
        """Return the ids of the first ``limit`` selected notes or events, each once.

        ``order`` is ``time`` (undated ones last) or ``arrival`` (by ``seq``), with "-" the other way around; undated
        ones stay last, and equal times are in the order of arrival, or the other way around.
        """
        ...

    async def histories(self, scope: Scope, ids: Sequence[str]) -> dict[str, NoteHistory]:
        """Return the bases and revisions of notes by id; omits unknown ids."""
        ...

    async def recent(self, scope: Scope, ids: Sequence[str]) -> dict[str, NoteHistory]:
        """Return histories that may begin with the checkpoint of the note, in a time that does not grow with them.

        They have the same state and reverted decisions. The store reads the full history if a later revision undoes a
        version before the checkpoint (``zettel.core.checkpoints.is_valid``), and a store without checkpoints always.
        """
        ...

    async def citing(self, scope: Scope, notes: Sequence[str]) -> tuple[Revision, ...]:
        """Return all revisions with one of these notes as cause, among their inputs or as a link target."""
        ...

    async def links(self, scope: Scope, notes: Sequence[str]) -> list[Link]:
        """Return live links that start or end at one of these, including MENTIONS, by (source, type, target)."""
        ...

    async def terms(self, scope: Scope, note: str) -> list[Term]: ...

    async def uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, tuple[TermUse, ...]]:
        """Return the term uses in each note's index."""
        ...

    async def scopes(self) -> list[Scope]: ...

    async def drop_scope(self, scope: Scope) -> int:
        """Destroy a scope with its tombstones and secret, and return how many notes it had."""
        ...

    def dump(self, scope: Scope) -> AsyncIterator[tuple[EventRecord, tuple[Note, ...]]]:
        """Stream every event of a scope with its notes, in ``seq`` order."""
        ...


class SearchStore(Protocol):
    """Finds the candidates of a query, and the nearest notes of a note."""

    async def candidates(self, query: Query) -> Candidates:
        """Return the candidates that ``zettel.ports.candidate_rules`` defines. Raises ``EmbedderMismatch``."""
        ...

    async def near(self, scope: Scope, notes: Sequence[str], space: int, k: int) -> list[NearestNotes]:
        """Return the k nearest older notes (lower seq) of each note with a vector.

        The result is exact in scopes of up to some ten thousand notes.
        """
        ...

    async def optimize(self, scope: Scope, space: int) -> None:
        """Rebuild search indexes that growth has made slow, if it is due. Link jobs call this."""
        ...


class VectorSetStore(Protocol):
    """Stores the vectors of notes in sets, one set per embedder and text recipe. ``space`` is the id of a set."""

    async def vectors(self, scope: Scope, notes: Sequence[str], space: int) -> dict[str, Floats]:
        """Return the (d,) float32 vectors of the notes that have one in this set, by note id."""
        ...

    async def spaces(self) -> list[VectorSet]: ...

    async def add_space(self, name: str, dim: int, fingerprint: str, recipe: str) -> VectorSet:
        """Create a vector set, or return the existing one of the same values. The first set is active at once."""
        ...

    async def without_vector(self, space: int, limit: int) -> list[tuple[Scope, Note]]:
        """Return unarchived notes that lack a vector in this set, oldest first."""
        ...

    async def activate(self, space: int) -> bool:
        """Switch searches to this set and remove all others in one transaction; False while a note lacks a vector.

        The store may destroy the removed vectors later: before this returns, or, after an interruption, at the next
        ``open``. No read returns them in between.
        """
        ...


class JobQueue(Protocol):
    """Stores durable background jobs and leases them to workers."""

    async def claim(
        self, kinds: Sequence[JobKind], limit: int, lease: float, scope: Scope | None, busy: Sequence[Scope] = ()
    ) -> list[Job]:
        """Lease up to ``limit`` due jobs for ``lease`` seconds, each with a fresh token; all of one scope and kind.

        The most urgent come first; all jobs of a kind have one priority.
        From ``busy`` scopes it takes only jobs that may run side by side (``JobKind.order_free``).
        """
        ...

    async def renew(self, jobs: Sequence[Job], lease: float) -> None:
        """Extend the lease of jobs that were claimed together to ``lease`` seconds from now.

        Jobs that another worker took over or that ended are skipped.
        """
        ...

    async def fail(
        self, jobs: Sequence[Job], error: str, retry_at: datetime | None, counts: bool = True
    ) -> None:
        """Store the error with jobs that were claimed together, and queue them for ``retry_at``.

        With ``retry_at`` None they stay failed. ``counts=False`` does not count the claim as an attempt. Jobs that
        another worker took over are skipped.
        """
        ...

    async def jobs(self, scope: Scope | None, state: JobState | None = None) -> list[Job]: ...

    async def pending(
        self, scope: Scope | None, kinds: Sequence[JobKind] | None = None, due_by: datetime | None = None
    ) -> int:
        """Count jobs (of these kinds) that are running or queued (to run by then)."""
        ...

    async def retry(self, scope: Scope | None, job: str | None = None) -> int:
        """Queue failed jobs again (only the one with this id, if given), and return how many."""
        ...

    async def cancel(self, scope: Scope, job: str) -> bool:
        """Remove a job from the queue unless a worker has leased it; return if it was removed."""
        ...


class ModelLog(Protocol):
    """Stores cached answers and costs of language models."""

    async def answer(self, scope: Scope, key: str) -> str | None:
        """Return the cached answer with this key, see ``PutAnswer``."""
        ...

    async def model_use(self, scope: Scope | None, since: date | None = None) -> list[ModelUse]:
        """Return the cost of models since a day: one entry for each day and model, in this order."""
        ...


class SearchLog(Protocol):
    """Stores the search log, and the feedback on notes."""

    async def log_searches(self, searches: Mapping[Scope, Sequence[LoggedSearch]]) -> None:
        """Append to each scope's log durably, in one transaction if the store can; not part of any Batch.

        The store skips searches with a hit that is missing from the scope (the note may have been erased in the
        meantime) and searches in scopes that were never written to. Each scope keeps its newest
        ``zettel.core.feedback.LOGGED`` searches by (asked_at, id).
        """
        ...

    async def search_logged(self, scope: Scope, id: str) -> LoggedSearch | None: ...

    def searches(self, scope: Scope) -> AsyncIterator[LoggedSearch]:
        """Stream the log by (asked_at, id)."""
        ...

    async def questions_logged(self, scope: Scope) -> dict[str, str]:
        """Return the question of each search in the log, by search id."""
        ...

    async def note_uses(self, scope: Scope, notes: Sequence[str]) -> dict[str, NoteUse]:
        """Return the feedback on each existing note."""
        ...

    async def proved(self, scope: Scope, notes: Sequence[str]) -> dict[str, Proved]:
        """Return the use of notes by the log; only of notes that a logged search found."""
        ...


class StoreMaintenance(Protocol):
    """Counts and checks the data, purges files, and transfers scopes between stores."""

    async def counts(self, scope: Scope | None) -> dict[str, int]: ...

    async def check(self, repair: bool) -> list[str]:
        """Return one line per inconsistency between notes, postings, vectors, sums and links; empty if there is none.

        ``repair`` derives the affected data again.
        """
        ...

    async def purge(self) -> bool:
        """Remove deleted data from the store's files; False while another reader still uses the old pages."""
        ...

    async def purge_due(self) -> bool:
        """Return if a scope was dropped since the last ``purge``. Smaller deletes queue a purge job instead."""
        ...

    def whole(self, scope: Scope) -> AsyncIterator[Sequence[ScopeRecord]]:
        """Stream one scope as of one state, in pages of at most some hundred records, in the order to restore them.

        The order: the ScopeState; each PutEvent by ``seq``; each NoteRecord by ``seq``, including archived notes; for
        each note with decided links its RestoreLinks, by ``seq``, the links by (source, type, target); each PutMention
        by ``seq`` of the source, then by target; all tombstones by identity, in one or more PutTombstones; a PutNoteUse
        of each note with feedback, by ``seq``; each PutJob in queue order, running ones as queued and without token.

        ``live`` of a revision is derived and may have any value. The stream omits cached
        model answers, model costs and the search log. A scope that was never written to yields nothing.
        Raises ``StoreBusy`` if the store has no snapshot reads and the scope was written to in between.
        """
        ...

    async def abandon_restore(self, scope: Scope) -> None:
        """Destroy the data of restores of this scope that did not complete (see ``batch.Restore``).

        ``drop_scope`` does this too, and ``check`` reports scopes with such data.
        """
        ...


class GraphStore(
    NoteStore, SearchStore, VectorSetStore, JobQueue, ModelLog, SearchLog, StoreMaintenance, Protocol
):
    """A complete store, as ``Memory`` requires it. ``name`` is the name of the implementation, such as "embedded"."""

    name: str

    async def open(self) -> None:
        """Open or create the store. Raises ``NotAStore``, ``StoreTooNew``, ``StoreReadOnly``."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class SurveyingStore(Protocol):
    """Optional: ``state`` and ``lookup`` in one round trip."""

    async def survey(self, scope: Scope, ask: Callable[[bytes], LookupQuery]) -> tuple[ScopeState, LookupResult]:
        """Return ``state`` and the ``lookup`` of the query that ``ask`` builds from the scope's secret.

        The store may call ``ask`` twice.
        """
        ...


@runtime_checkable
class CypherStore(Protocol):
    """Optional: read-only queries in Cypher."""

    async def cypher(self, query: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the rows of a read-only query. Raises ``InvalidQuestion``."""
        ...
