"""Import of transcripts in durable batches.

Every record has an identity (its id, or its text and time). An interrupted import can run again: it skips the
records that are already stored.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import anyio

from zettel.core import memory_file as whole
from zettel.core.drafts import passages_of
from zettel.core.identity import Ordinals
from zettel.core.origin import Origin, sender_of
from zettel.errors import BadRecord, InvalidEvent, InvalidInput, NotFound, PermissionDenied, SecretRefused
from zettel.model import CallKind, Cause, Event, Remembered, Scope, Source
from zettel.ports.unread import Unread

from . import HEAD_BYTES, Rejected, require_file, vault_edits
from .options import ImportOptions, Selected
from .records import redacted_keys, rejected
from .redaction import Redactor
from .report import FileReport, ImportCounter, ImportReport, OnRejected, Secret
from .scopes import MAX_BATCH_CHARACTERS, MAX_BUFFERED, ScopeBuffer, ScopedEvent, scope_of
from .sources import Transcript, TranscriptPart
from .vault_notes import VaultEvent

if TYPE_CHECKING:
    from zettel.core.privacy import SecretGuard
    from zettel.core.restore import ScopeRestorer
    from zettel.model import Note, OnConflict, Status
    from zettel.ports import GraphStore

BATCH = 1000
"""Records in one transaction: an interruption costs about a second of work. Long records make smaller batches."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called after each batch with the number of records read and the total."""

BY_EDIT = Cause(by=CallKind.EDIT)

Store: TypeAlias = Callable[
    [Scope, Sequence[Event], Ordinals, "Origin | None"], Awaitable[Sequence[Remembered | Rejected]]
]
"""Handles a batch of events of one file and scope, and returns one result per event."""


class Destination(Protocol):
    """The part of a memory that an import writes to."""

    @property
    def store(self) -> GraphStore: ...

    @property
    def guard(self) -> SecretGuard: ...

    async def remember(
        self,
        scope: Scope,
        events: Sequence[Event],
        on_conflict: OnConflict,
        ordinals: Ordinals,
        origin: Origin | None = None,
    ) -> list[Remembered]:
        """Store events and return one result per event, in order."""
        ...

    async def update(self, scope: Scope, note_id: str, changes: Mapping[str, Any], cause: Cause) -> Note:
        """Revise a note. Raises ``InvalidInput``, ``NotFound``."""
        ...

    async def foresee(
        self, scope: Scope, events: Sequence[Event], ordinals: Ordinals, origin: Origin | None = None
    ) -> Sequence[tuple[str, Status]]:
        """Return the identity of each event and its status if it were stored; store nothing."""
        ...


@dataclass
class TranscriptImport:
    """One import of a transcript; it fills ``report``.

    Each batch is one transaction, so an interrupted import keeps its batches, and another run continues. Changed
    records of the same file and sender revise their notes. With the option ``edits``, so do edited vault files, and
    records of other files.
    """

    destination: Destination
    transcript: Transcript
    options: ImportOptions
    report: ImportReport
    scope: Scope
    on_progress: Progress | None = None
    on_rejected: OnRejected | None = None

    async def run(self) -> None:
        """Store the selected records.

        Raises ``InvalidInput`` for an unknown conversation, and ``BadRecord`` if the rest of a file cannot be read.
        In a folder the import reports such a file as rejected and continues with the next.
        """
        await self._import_each(self._store)

    async def preview(self, unread: list[Unread] | None = None) -> None:
        """Fill the report as ``run`` would, and ``unread`` with the turns to annotate; store nothing.

        Raises what ``run`` raises. It caches one hash per record to recognise repeated records.
        """
        seen: dict[int, tuple[int, int]] = {}

        async def preview(
            scope: Scope, events: Sequence[Event], ordinals: Ordinals, origin: Origin | None
        ) -> Sequence[Remembered]:
            edited = await vault_edits.edits(self.destination.store, scope, events)
            outcome = [Remembered(None, "revised" if self._applies(edits) else "existing") for edits in edited.values()]
            events = [event for place, event in enumerate(events) if place not in edited]
            foreseen = await self.destination.foresee(scope, events, ordinals, origin)
            for event, (identity, status) in zip(events, foreseen, strict=True):
                digest = hash(repr(event.model_copy(update={"source": None}))), hash(sender_of(event))
                known = hash((scope.key, identity))
                before = seen.get(known)
                if before is not None and before[1] != digest[1] and origin is not None:  # the id of another sender
                    known = hash((known, digest))
                    origin.foreign, before = origin.foreign + 1, seen.get(known)
                if status in ("added", "revised"):
                    if before is not None:
                        status = "existing" if before == digest else "revised"
                    seen[known] = digest
                    if unread is not None and status != "existing":
                        unread.extend(Unread(event.session, passage, scope) for passage in passages_of(event))
                outcome.append(Remembered(None, status))
            return outcome

        await self._import_each(preview)

    async def _store(
        self, scope: Scope, events: Sequence[Event], ordinals: Ordinals, origin: Origin | None
    ) -> Sequence[Remembered | Rejected]:
        edited = await vault_edits.edits(self.destination.store, scope, events)
        new_events = [event for place, event in enumerate(events) if place not in edited]
        done = iter(await self.destination.remember(scope, new_events, "revise", ordinals, origin))
        return [
            await self._apply_edits(scope, event, edited[place]) if place in edited else next(done)
            for place, event in enumerate(events)
        ]

    def _applies(self, edits: Mapping[str, Any] | None) -> bool:
        """Return whether the edits of an exported file are to be applied; count those that are not."""
        is_unapplied = edits is None or (bool(edits) and not self.options.edits)
        self.report.unapplied_edits += is_unapplied
        return bool(edits) and not is_unapplied

    async def _apply_edits(self, scope: Scope, event: Event, edits: Mapping[str, Any] | None) -> Remembered | Rejected:
        """Apply the edits of an exported file to its note in this scope."""
        assert isinstance(event, VaultEvent)
        if not self._applies(edits):
            return Remembered(event.file.note, "existing")
        try:
            note = await self.destination.update(scope, event.file.note, edits or {}, BY_EDIT)
        except (InvalidInput, NotFound, PermissionDenied) as error:  # NotFound: another process has just deleted it
            return rejected(event.source or Source(file=""), str(error))
        return Remembered(note.id, "revised", flagged=bool(note.flags))

    async def _import_each(self, store: Store) -> None:
        """Read the parts in order and hand their events to ``store`` in batches."""
        began = time.perf_counter()
        transcript, options, report = self.transcript, self.options, self.report
        options.check_columns(transcript)
        report.unknown_files = list(transcript.unknown)
        total = read = 0
        if self.on_progress is not None:
            for part in transcript.parts:
                total += await anyio.to_thread.run_sync(_count, part, options, self.destination.guard)
            self.on_progress(0, total)
        counter = ImportCounter(report, self.on_rejected)
        for part in transcript.parts:
            file = FileReport(file=part.where, format=part.format.name)
            report.files.append(file)
            storing = _BatchStore(store, self.scope, options, file, counter)
            with closing(_BatchReader(part, options, self.destination.guard, counter)) as batches:
                while batch := await anyio.to_thread.run_sync(batches.next_batch):
                    await storing.add([record for record in batch if isinstance(record, ScopedEvent)])
                    counter.reject(file, [record for record in batch if isinstance(record, Rejected)])
                    counter.skip(file, batch.count(None))
                    read += len(batch)
                    if self.on_progress is not None:
                        self.on_progress(read, max(read, total))
                await storing.end()
                report.foreign_ids += storing.foreign
                if batches.error is not None:
                    if not transcript.walked:
                        raise batches.error
                    reason = str(batches.error).removeprefix(f"{part.where}:").strip()
                    counter.reject(file, [batches.redacted(rejected(Source(file=part.where), reason))])
        counter.end()
        if options.conversation is not None and report.records == 0 and report.skipped == 0:
            raise InvalidInput(f"{report.file} has no conversation called {options.conversation!r}: check the name")
        report.seconds = round(time.perf_counter() - began, 3)


class _BatchStore:
    """Stores the events of a part in batches of one scope each, and counts the results."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        options: ImportOptions,
        file: FileReport,
        counter: ImportCounter,
    ) -> None:
        by_rule = options.scope_by is not None
        self._rule = options.scope_by
        self._store = store
        self._scope = scope
        self._edits = options.edits
        self._file = file
        self._counter = counter
        self._buffer = ScopeBuffer(BATCH, MAX_BUFFERED if by_rule else 0)
        self._ordinals: dict[str | None, Ordinals] = defaultdict(Ordinals)
        self._origins: dict[str | None, Origin] = defaultdict(lambda: Origin(file.file))

    @property
    def foreign(self) -> int:
        """The number of records with the id of an event of another sender or file."""
        return sum(origin.foreign for origin in self._origins.values())

    async def add(self, batch: list[ScopedEvent]) -> None:
        """Add the next events; with a scope rule they wait for more events of their scope."""
        self._buffer.add(batch)
        await self._store_batches(self._buffer.due())

    async def end(self) -> None:
        """Store the remaining events."""
        await self._store_batches(self._buffer.due(all=True))

    async def _store_batches(self, due: Iterable[tuple[str | None, list[Event]]]) -> None:
        for owner, events in due:
            scope = scope_of(self._scope, owner, self._rule)
            origin = None if self._edits else self._origins[owner]
            outcome = await self._store(scope, events, self._ordinals[owner], origin)
            done = [item for item in outcome if isinstance(item, Remembered)]
            self._counter.count(self._file, done, scope if self._rule is not None else None)
            self._counter.reject(self._file, [item for item in outcome if isinstance(item, Rejected)])
            self._counter.observe(events)


class _BatchReader:
    """Reads the records of a part in batches; ``error`` is set if the part cannot be read to its end."""

    def __init__(
        self, part: TranscriptPart, options: ImportOptions, guard: SecretGuard, counter: ImportCounter | None = None
    ) -> None:
        """``counter`` counts private data; without it the records are only counted."""
        self._part = part
        self._guard = guard
        self._counter = counter
        self._redactor = Redactor(options.region, counter.redacted) if counter and options.redact else None
        self._records = options.records(part, self._redactor)
        self.error: BadRecord | None = None

    def next_batch(self) -> list[Selected]:
        """Return the next records; an empty list at the end."""
        batch: list[Selected] = []
        try:
            with redacted_keys(self._clean if self._redactor is not None or self._guard.keeps_out else None):
                # One by one: what was read before an error counts.
                characters = 0
                for record in islice(self._records, BATCH):
                    batch.append(record)
                    characters += len(record.event.content) if isinstance(record, ScopedEvent) else 0
                    if characters >= MAX_BATCH_CHARACTERS:
                        break
        except BadRecord as error:
            self.error = error
        if self._counter is None:
            return batch
        counter = self._counter
        return [None if record is None else self._screened(record, counter) for record in batch]

    def _clean(self, text: str) -> str:
        return self._guard.cleaned(text if self._redactor is None else self._redactor.text(text))

    def _screened(self, record: ScopedEvent | Rejected, counter: ImportCounter) -> ScopedEvent | Rejected:
        """Return what may be stored of a record, and count its secrets."""
        if isinstance(record, Rejected):
            return record.model_copy(update={"reason": self._guard.cleaned(record.reason)})
        place = record.event.source or Source(file=self._part.where)
        try:
            if record.owner is not None:
                self._guard.require_clean_scope(Scope(user=record.owner))
            event, kinds = self._guard.event(record.event)
        except (SecretRefused, InvalidEvent) as error:
            return rejected(place, str(error))
        if self._guard.keeps_out:
            counter.redacted.update(kinds)
        else:
            counter.find([Secret(kind, place.file, place.position or "") for kind in kinds])
        return record._replace(event=event)

    def redacted(self, rejected: Rejected) -> Rejected:
        """Return the rejected record with private data redacted."""
        return rejected if self._redactor is None else self._redactor.rejected(rejected)

    def close(self) -> None:
        """Close the file."""
        self._records.close()


def _count(part: TranscriptPart, options: ImportOptions, guard: SecretGuard) -> int:
    with closing(_BatchReader(part, options, guard)) as batches:
        return sum(len(batch) for batch in iter(batches.next_batch, []))


def is_memory_file(path: Path, format: str) -> bool:
    """Return whether the path is a memory file rather than a transcript. Raises as ``choose``."""
    if format not in ("auto", whole.name) or (path.is_dir() and format == "auto"):
        return False
    require_file(path)
    with path.open("rb") as file:
        return format == whole.name or whole.sniff(path, file.read(HEAD_BYTES))


async def import_memory_file(
    restoring: ScopeRestorer, path: Path, scope: Scope | None, called: str, on_progress: Progress | None
) -> ImportReport:
    """Import a memory file. The events of a scope count as added, or as existing if that scope was imported before."""
    began = time.perf_counter()
    done = await restoring.restore(path, scope, on_progress)
    seconds = round(time.perf_counter() - began, 3)
    return ImportReport(file=called, format=whole.name, added=done.events, existing=done.existing, seconds=seconds)
