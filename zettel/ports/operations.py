"""Write operations on a store, and atomic batches of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from zettel.model import (
        Checkpoint,
        EventRecord,
        Job,
        Link,
        LoggedSearch,
        ModelUse,
        Note,
        NoteIndex,
        NoteUse,
        Retention,
        Revision,
        Scope,
    )
    from zettel.ports.query import Floats


@dataclass(frozen=True, slots=True)
class PutEvent:
    """Store an event. ``identity`` is the keyed hash by which a second import recognizes the event."""

    event: EventRecord
    identity: str


@dataclass(frozen=True, slots=True)
class PutNote:
    """Store a new note with its index. This version 1 stays the base of the note."""

    note: Note
    index: NoteIndex


@dataclass(frozen=True, slots=True)
class PutRevision:
    """Add a revision and set the note to its new folded state.

    ``index`` is None if no searchable field changed. ``links`` is the complete new set of the note's decided links: the
    store ends the links that are missing from it and adds the new ones. ``bare`` is True if only the version changed,
    as in revisions that only add links. ``checkpoint`` replaces an earlier checkpoint of the note, see ``recent``.
    """

    revision: Revision
    note: Note
    index: NoteIndex | None
    links: tuple[Link, ...] | None
    bare: bool = False
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True, slots=True)
class PutVector:
    """Store a note's vector, (dim,) float32, in the vector set ``space``.

    A vector in the active set belongs to the current wording. The store then deletes the note's vectors in other sets,
    and a set that is being filled computes a new vector.
    """

    note: str
    space: int
    vector: Floats


@dataclass(frozen=True, slots=True)
class PutMention:
    """Store a MENTIONS link: one note's text contains another note's title. It is derived and has no revision."""

    link: Link


@dataclass(frozen=True, slots=True)
class DropMentions:
    """Delete the MENTIONS links that start or end at these notes."""

    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EraseNotes:
    """Destroy notes with their index, vectors, links in both directions, revisions, jobs and feedback.

    This also destroys the logged searches with one of the notes among their hits.
    """

    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EraseEvents:
    """Destroy events, and store the keyed hashes of their identities as tombstones."""

    events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EraseRevisions:
    """Destroy single revisions of a note, and its checkpoint. A PutRevision in the batch sets its new state."""

    note: str
    versions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PutJob:
    """Queue a job, unless a job with the same (scope, kind, note, version) exists.

    The store writes ``attempts``, ``error`` and a ``state`` of queued or failed as they are in the job.
    """

    job: Job


@dataclass(frozen=True, slots=True)
class FinishJob:
    """Delete a finished job. The commit raises ``StaleLease`` if ``token`` differs from the token of its lease."""

    job: str
    token: str


@dataclass(frozen=True, slots=True)
class PutAnswer:
    """Cache the answer of a model, so that the same request costs nothing again; replaces an earlier answer.

    The learned preferences of a scope are cached in the same way, under ``zettel.core.feedback.PREFERENCES``. ``key``
    is a keyed hash of the model and the whole request. ``notes`` are the notes whose text the request contains.
    The store skips the answer if one of these notes is missing: it may have been erased during the request.
    """

    key: str
    text: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EraseAnswers:
    """Destroy cached answers to requests that contain text of these notes; precedes their ``EraseNotes``."""

    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PutUse:
    """Add to the cost of a language model in this scope, see ``ModelUse``."""

    use: ModelUse


@dataclass(frozen=True, slots=True)
class PutFeedback:
    """Store the feedback on a logged search, in place of earlier feedback. Does nothing if the log lacks the search."""

    search: LoggedSearch


@dataclass(frozen=True, slots=True)
class PutNoteUse:
    """Set the feedback counts of a note; ``times`` 0 means that the note was never useful."""

    note: str
    use: NoteUse


@dataclass(frozen=True, slots=True)
class EraseSearches:
    """Destroy searches in the log by id. ``EraseNotes`` itself destroys the searches that found its notes."""

    searches: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RestoreNote:
    """Store a note with its complete history; only in a batch with ``restore``.

    ``base`` is version 1, ``revisions`` are all later versions in ``seq`` order. ``note`` is their folded state, and
    ``index`` the index of that state. Earlier operations stored the events; ``RestoreLinks`` follows with the links,
    after all notes.
    """

    base: Note
    revisions: tuple[Revision, ...]
    note: Note
    index: NoteIndex


@dataclass(frozen=True, slots=True)
class RestoreLinks:
    """Store all links that the live revisions of the note ``owner`` decided, as in ``PutRevision.links``.

    Earlier operations stored the notes at both ends.
    """

    owner: str
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class PutTombstones:
    """Store keyed hashes of deleted identities, in addition to those that ``EraseEvents`` stores."""

    identities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PutRetention:
    """Set the retention of the scope, or remove it (None). ``ScopeState`` contains it."""

    retention: Retention | None


@dataclass(frozen=True, slots=True)
class EndRestore:
    """Complete a restore: this batch makes the scope visible to all readers, see ``Restore``.

    ``recorded_at`` is the scope's last transaction time in microseconds; a later delete may have removed its record.
    """

    recorded_at: int


Op: TypeAlias = (
    PutEvent | PutNote | PutRevision | PutVector | PutMention | DropMentions | EraseNotes | EraseEvents
    | EraseRevisions | PutJob | FinishJob | PutAnswer | EraseAnswers | PutUse | PutFeedback | PutNoteUse | EraseSearches
    | RestoreNote | RestoreLinks | PutTombstones | PutRetention | EndRestore
)  # fmt: skip


class Restore(NamedTuple):
    """Marks a batch as part of a restore, which copies a complete scope from another store.

    The scope takes the ``secret`` of the other store, because it keys identities and tombstones. ``token`` is a random
    id of this restore.

    The batches of a restore write to a staging area. Until the batch with ``EndRestore`` commits, no read returns their
    data, and the scope is empty for other writers. The first batch expects seq 0 and creates the staging area; each
    later batch expects the ``seq`` of the batch before. A later batch raises ``Conflict`` if the staging area is
    missing, and ``EndRestore`` does if another writer has written to the scope.
    The batches contain only PutEvent, RestoreNote, PutVector, RestoreLinks, PutMention, PutTombstones, PutNoteUse,
    PutJob, PutRetention and EndRestore, in this order. Jobs are in the last batch, so that no worker claims them
    earlier.
    """

    secret: bytes
    token: str


@dataclass(frozen=True, slots=True)
class Batch:
    """An atomic list of operations on one scope, applied in order.

    ``expects`` is the scope's ``seq`` when the caller planned the batch, and ``seq`` is the scope's ``seq`` after it.
    If the scope has another ``seq``, the store raises ``Conflict`` and writes nothing, and the caller plans again.
    ``restore`` is set only in the batches of a restore.
    """

    scope: Scope
    expects: int
    seq: int
    ops: tuple[Op, ...]
    restore: Restore | None = None


class Conflict(Exception):
    """The scope changed after the batch was planned. Internal: the caller plans the batch again."""


class StaleLease(Exception):
    """Another worker took over the job. Internal: the caller drops its result."""
