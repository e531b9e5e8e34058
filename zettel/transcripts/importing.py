"""Bringing transcripts into a memory: in batches, each durable, so that an import can be cut off and run again.

Every record has an identity (its id, or what it says and when), so a second run finds what the first one stored.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from zettel.annotate.drafts import passages_of
from zettel.errors import BadRecord, InvalidInput, NotFound
from zettel.identity import Ordinals
from zettel.llm.estimate import Unread
from zettel.model import Event, Remembered, Scope, Source

from . import HEAD_BYTES, Rejected, require_file, returning, whole
from .by_scope import HELD, MOST_CHARACTERS, Taken, Waiting, scope_of
from .own_notes import Written
from .parts import Part, Transcript
from .records import keys_of_cleaned, rejected
from .redaction import Redactor
from .report import FileReport, ImportReport, OnRejected, Tally
from .secret_shapes import secrets_among
from .wanted import Chosen, Wanted

if TYPE_CHECKING:
    from zettel.engine import Engine
    from zettel.face.adding import Adding
    from zettel.restore import Restoring

BATCH = 1000
"""Records in one transaction: few enough that an interruption costs a second's work, many enough to be quick. There are
fewer where they are long."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called after each batch with the number of records read and that of all there are."""

Store: TypeAlias = Callable[[Scope, Sequence[Event], Ordinals], Awaitable[Sequence[Remembered | Rejected]]]
"""What is done with some events of one file and scope, and what became of each."""


async def import_parts(
    memory: Adding,
    engine: Engine,
    transcript: Transcript,
    wanted: Wanted,
    report: ImportReport,
    *,
    scope: Scope,
    on_progress: Progress | None = None,
    on_rejected: OnRejected | None = None,
) -> None:
    """Store what is wanted of a transcript; where a record's content has changed since, its note is revised, and so is
    a note that was exported from here and edited.

    Each batch is one transaction, so whatever stops an import, what was stored stays, and another run goes on. Raises
    ``InvalidInput`` for a conversation that is not in it, and ``BadRecord`` for a file of which nothing more can be
    read (what came before is stored); in a folder that file is told as rejected there, and the next is read.
    """

    async def store(scope: Scope, events: Sequence[Event], ordinals: Ordinals) -> Sequence[Remembered | Rejected]:
        edited = await returning.edits(engine.store, scope, events)
        others = [event for place, event in enumerate(events) if place not in edited]
        done = iter(await memory.remember(others, on_conflict="revise", ordinals=ordinals, scope=scope))
        return [
            await _returned(engine, scope, event, edited[place]) if place in edited else next(done)
            for place, event in enumerate(events)
        ]

    await _each(transcript, wanted, report, store, scope, on_progress, on_rejected)


async def _returned(engine: Engine, scope: Scope, event: Event, edits: Mapping[str, Any]) -> Remembered | Rejected:
    """A note that came back to this scope, with its edits if there are any."""
    assert isinstance(event, Written)
    if not edits:
        return Remembered(event.file.note, "existing")
    try:
        note = await engine.editing.update(scope, event.file.note, edits)
    except (InvalidInput, NotFound) as error:  # NotFound: it was deleted just now
        return rejected(event.source or Source(file=""), str(error))
    engine.loop.wake()
    return Remembered(note.id, "revised", flagged=bool(note.flags))


async def foresee(
    engine: Engine,
    transcript: Transcript,
    wanted: Wanted,
    report: ImportReport,
    *,
    scope: Scope,
    on_progress: Progress | None = None,
    on_rejected: OnRejected | None = None,
    unread: list[Unread] | None = None,
) -> None:
    """Fill the report as ``import_parts`` would, and ``unread`` with the turns it would write; stores nothing.

    Raises what ``import_parts`` raises. Of each record it remembers a hash, to know one that comes again.
    """
    seen: dict[int, int] = {}

    async def look(scope: Scope, events: Sequence[Event], ordinals: Ordinals) -> Sequence[Remembered]:
        edited = await returning.edits(engine.store, scope, events)
        outcome = [Remembered(None, "revised" if edits else "existing") for edits in edited.values()]
        events = [event for place, event in enumerate(events) if place not in edited]
        foreseen = await engine.remembering.foresee(scope, events, ordinals)
        for event, (identity, status) in zip(events, foreseen, strict=True):
            said = hash(repr(event.model_copy(update={"source": None})))
            known = hash((scope.key, identity))
            before = seen.get(known)
            if status in ("added", "revised"):
                if before is not None:
                    status = "existing" if before == said else "revised"
                seen[known] = said
                if unread is not None and status != "existing":
                    unread.extend(Unread(event.session, passage, scope) for passage in passages_of(event))
            outcome.append(Remembered(None, status))
        return outcome

    await _each(transcript, wanted, report, look, scope, on_progress, on_rejected)


async def _each(
    transcript: Transcript,
    wanted: Wanted,
    report: ImportReport,
    store: Store,
    scope: Scope,
    on_progress: Progress | None,
    on_rejected: OnRejected | None,
) -> None:
    """Read the parts one after the other, in batches, each into one scope."""
    began = time.perf_counter()
    wanted.require_fit(transcript)
    report.unknown = list(transcript.unknown)
    total = read = 0
    if on_progress is not None:
        for part in transcript.parts:
            total += await anyio.to_thread.run_sync(_count, part, wanted)
        on_progress(0, total)
    tally = Tally(report, on_rejected)
    for part in transcript.parts:
        file = FileReport(file=part.where, format=part.format.name)
        report.files.append(file)
        keep = _Keep(store, scope, wanted.scope_by is not None, file, tally)
        with closing(_Batches(part, wanted, tally)) as batches:
            while taken := await anyio.to_thread.run_sync(batches.take):
                await keep.add([record for record in taken if isinstance(record, Taken)])
                tally.reject(file, [record for record in taken if isinstance(record, Rejected)])
                tally.leave_out(file, taken.count(None))
                read += len(taken)
                if on_progress is not None:
                    on_progress(read, max(read, total))
            await keep.end()
            if batches.error is not None:
                if not transcript.walked:
                    raise batches.error
                reason = str(batches.error).removeprefix(f"{part.where}:").strip()
                tally.reject(file, [batches.cleaned(Rejected(file=part.where, position="", reason=reason))])
    tally.end()
    if wanted.conversation is not None and report.records == 0 and report.left_out == 0:
        raise InvalidInput(f"{report.file} holds no conversation called {wanted.conversation!r}")
    report.seconds = round(time.perf_counter() - began, 3)


class _Keep:
    """Stores the events of a part in batches of one scope each, and counts what became of them."""

    def __init__(self, store: Store, scope: Scope, by_rule: bool, file: FileReport, tally: Tally) -> None:
        self._store = store
        self._scope = scope
        self._by_rule = by_rule
        self._file = file
        self._tally = tally
        self._waiting = Waiting(BATCH, HELD if by_rule else 0)
        self._ordinals: dict[str | None, Ordinals] = defaultdict(Ordinals)

    async def add(self, taken: list[Taken]) -> None:
        """Those that were read next; by a rule they wait for more of their scope."""
        self._waiting.add(taken)
        await self._put(self._waiting.due())

    async def end(self) -> None:
        """There are no more."""
        await self._put(self._waiting.due(all=True))

    async def _put(self, due: Iterable[tuple[str | None, list[Event]]]) -> None:
        for user, events in due:
            scope = scope_of(self._scope, user)
            outcome = await self._store(scope, events, self._ordinals[user])
            done = [one for one in outcome if isinstance(one, Remembered)]
            self._tally.count(self._file, done, scope if self._by_rule else None)
            self._tally.reject(self._file, [one for one in outcome if isinstance(one, Rejected)])
            self._tally.look_at(events)


class _Batches:
    """The records of a part, some at a time; ``error`` is why there are no more, if that is not the end."""

    def __init__(self, part: Part, wanted: Wanted, tally: Tally | None = None) -> None:
        """``tally`` counts what of them is private; without one they are only counted, and nobody looks."""
        self._part = part
        self._tally = tally
        self._redactor = Redactor(wanted.region, tally.redacted) if tally is not None and wanted.redact else None
        self._records = wanted.records(part, self._redactor)
        self.error: BadRecord | None = None

    def take(self) -> list[Chosen]:
        """The next ones, none at the end."""
        taken: list[Chosen] = []
        try:
            with keys_of_cleaned(None if self._redactor is None else self._redactor.text):
                # One by one: what was read before an error counts.
                characters = 0
                for record in islice(self._records, BATCH):
                    taken.append(record)
                    characters += len(record.event.content) if isinstance(record, Taken) else 0
                    if characters >= MOST_CHARACTERS:
                        break
        except BadRecord as error:
            self.error = error
        if self._tally is not None and self._redactor is None:
            events = [record.event for record in taken if isinstance(record, Taken)]
            self._tally.find(secrets_among(events, self._part.where))
        return taken

    def cleaned(self, rejected: Rejected) -> Rejected:
        """What may be told of it."""
        return rejected if self._redactor is None else self._redactor.rejected(rejected)

    def close(self) -> None:
        """Let go of the file."""
        self._records.close()


def _count(part: Part, wanted: Wanted) -> int:
    with closing(_Batches(part, wanted)) as batches:
        return sum(len(taken) for taken in iter(batches.take, []))


def is_whole(path: Path, format: str) -> bool:
    """Whether a file is to be taken for whole memories and not for a transcript. Raises as ``choose``."""
    if format not in ("auto", whole.name) or (path.is_dir() and format == "auto"):
        return False
    require_file(path)
    with path.open("rb") as file:
        return format == whole.name or whole.sniff(path, file.read(HEAD_BYTES))


async def import_whole(
    restoring: Restoring, path: Path, scope: Scope | None, called: str, on_progress: Progress | None
) -> ImportReport:
    """Bring whole memories back; a scope's events count as added, or as existing where they came before."""
    began = time.perf_counter()
    done = await restoring.restore(path, scope, on_progress)
    seconds = round(time.perf_counter() - began, 3)
    return ImportReport(file=called, format=whole.name, added=done.events, existing=done.existing, seconds=seconds)
