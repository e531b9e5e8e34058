"""What a write is: small frozen operations, and batches of them on one scope, applied in order, all or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from zettel.model import (
        EventRecord,
        Job,
        Link,
        LoggedSearch,
        ModelUse,
        Note,
        NoteIndex,
        NoteUse,
        Revision,
        Scope,
    )
    from zettel.ports.query import Floats


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
    gives for this note: the store ends those that are no longer in it, and adds the new ones. ``bare`` tells that no
    field changed but the version, which is what most revisions do: they only link.
    """

    revision: Revision
    note: Note
    index: NoteIndex | None
    links: tuple[Link, ...] | None
    bare: bool = False


@dataclass(frozen=True, slots=True)
class PutVector:
    """Store a note's vector, (dim,) float32, in one of the store's vector sets.

    One in the active set is of the note's wording as it is now, so those that the note has in other sets go with it: a
    set that is being filled gets one of this wording, too.
    """

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
    """Destroy notes with all that hangs on them: index, vectors, links both ways, revisions, jobs, what feedback says
    of them, and the logged searches that found them."""

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
    """Queue a job; one that is there already for the same (scope, kind, note, version) stays as it is.

    ``attempts``, ``error`` and a ``state`` of queued or failed are kept as the job has them.
    """

    job: Job


@dataclass(frozen=True, slots=True)
class FinishJob:
    """Take a job off the queue. The commit fails with StaleLease unless ``token`` is the one of its lease."""

    job: str
    token: str


@dataclass(frozen=True, slots=True)
class PutAnswer:
    """Keep what a model answered, so that the same is not paid for or computed twice; one that is there is replaced.

    ``key`` is a keyed hash of the model and of all it was asked; ``notes`` are those whose text stands in the question.
    Once one of them is gone, the answer is not kept: it may have been on its way when the note was erased.
    """

    key: str
    text: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EraseAnswers:
    """Destroy the answers to questions in which text of these notes stands (comes before their ``EraseNotes``)."""

    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PutUse:
    """Add to what a language model has cost this scope; see ``ModelUse``."""

    use: ModelUse


@dataclass(frozen=True, slots=True)
class PutFeedback:
    """Keep with a logged search what was of use, in the place of what was told before; nothing if it has gone."""

    search: LoggedSearch


@dataclass(frozen=True, slots=True)
class PutNoteUse:
    """Set what feedback says of a note; with ``times`` 0 it is as one that never was of use."""

    note: str
    use: NoteUse


@dataclass(frozen=True, slots=True)
class EraseSearches:
    """Destroy searches in the log. (Those that found a note go with it: ``EraseNotes`` does that.)"""

    searches: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RestoreNote:
    """Store a note with all its history at once (only in a batch with ``restore``).

    ``base`` is its version 1 and ``revisions`` are all that came after, in ``seq`` order; ``note`` is the state that
    they fold to and ``index`` that state's index. The events of every version are there already. The links that the
    revisions decided follow as ``RestoreLinks``, once all notes are there.
    """

    base: Note
    revisions: tuple[Revision, ...]
    note: Note
    index: NoteIndex


@dataclass(frozen=True, slots=True)
class RestoreLinks:
    """The whole set of links that the live revisions of the note ``owner`` give: what ``PutRevision.links`` says of it.

    Both ends of each are there already.
    """

    owner: str
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class PutTombstones:
    """Keyed hashes of identities that were deleted, beside those that ``EraseEvents`` leaves."""

    identities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EndRestore:
    """The scope is whole: from this batch on everybody sees it (see ``Restore``).

    ``recorded_at`` is the scope's last recorded time in microseconds, for what was recorded last may have been deleted.
    """

    recorded_at: int


Op: TypeAlias = (
    PutEvent | PutNote | PutRevision | PutVector | PutMention | DropMentions | EraseNotes | EraseEvents
    | EraseRevisions | PutJob | FinishJob | PutAnswer | EraseAnswers | PutUse | PutFeedback | PutNoteUse | EraseSearches
    | RestoreNote | RestoreLinks | PutTombstones | EndRestore
)  # fmt: skip


class Restore(NamedTuple):
    """What makes a batch part of a restore: the bringing back of a whole scope as it was in another store.

    The scope takes the ``secret`` that it had there, for its identities and tombstones are keyed with it. ``token`` is
    random and tells this restore from any other one of the same scope.

    The batches of one restore go to a place of their own: until the one that holds ``EndRestore`` is committed, every
    read and every list answers as if nothing of them were there, and other writers find the scope as empty as it was.
    The first batch of a token expects 0 and makes that place, each further one expects the ``seq`` of the one before
    and raises ``Conflict`` if the place is gone; so does ``EndRestore`` if somebody has meanwhile written to the scope.
    They hold only PutEvent, RestoreNote, PutVector, RestoreLinks, PutMention, PutTombstones, PutNoteUse, PutJob and
    EndRestore, in this order; jobs come in the batch that ends it, so that nobody can claim one before.
    """

    secret: bytes
    token: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Operations on one scope, applied in order, all or none.

    ``expects`` is the scope's ``seq`` that the batch was planned on, ``seq`` the last one it uses. A store whose
    scope has moved on raises ``Conflict`` and writes nothing; the caller plans anew. ``restore`` is None for all but
    the batches that bring a whole scope back.
    """

    scope: Scope
    expects: int
    seq: int
    ops: tuple[Op, ...]
    restore: Restore | None = None


class Conflict(Exception):
    """The scope has moved on since the batch was planned. Never reaches a user: the plan is made anew."""


class StaleLease(Exception):
    """The job was taken over by another worker. Never reaches a user: the work is dropped."""
