"""Bringing transcripts into a memory: in batches, each durable, so that an import can be cut off and run again.

Every record has an identity (its id, or what it says and when), so a second run finds what the first one stored.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import anyio

from zettel.annotate.drafts import passages_of
from zettel.errors import BadRecord, InvalidInput
from zettel.identity import Ordinals
from zettel.llm.estimate import Unread
from zettel.model import Event, Remembered

from . import HEAD_BYTES, Rejected, require_file, whole
from .parts import Part, Transcript
from .report import FileReport, ImportReport, Tally
from .wanted import Chosen, Wanted

if TYPE_CHECKING:
    from zettel import AsyncMemory
    from zettel.model import Scope
    from zettel.remember import Remembering
    from zettel.restore import Restoring

BATCH = 500
"""Records in one transaction: few enough that an interruption costs a second's work, many enough to be quick."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called after each batch with the number of records read and that of all there are."""

Store: TypeAlias = Callable[[Sequence[Event], Ordinals], Awaitable[list[Remembered]]]
"""What is done with some events of one file."""


async def import_parts(
    memory: AsyncMemory,
    transcript: Transcript,
    wanted: Wanted,
    report: ImportReport,
    *,
    scope: Scope | None = None,
    on_progress: Progress | None = None,
) -> None:
    """Store what is wanted of a transcript; where a record's content has changed since, its note is revised.

    Each batch is one transaction, so whatever stops an import, what was stored stays, and another run goes on. Raises
    ``InvalidInput`` for a conversation that is not in it, and ``BadRecord`` for a file of which nothing more can be
    read (what came before is stored); in a folder that file is told as rejected there, and the next is read.
    """

    async def store(events: Sequence[Event], ordinals: Ordinals) -> list[Remembered]:
        return await memory.remember(events, on_conflict="revise", ordinals=ordinals, scope=scope)

    await _each(transcript, wanted, report, store, on_progress)


async def foresee(
    remembering: Remembering,
    transcript: Transcript,
    wanted: Wanted,
    report: ImportReport,
    *,
    scope: Scope,
    on_progress: Progress | None = None,
    unread: list[Unread] | None = None,
) -> None:
    """Fill the report as ``import_parts`` would, and ``unread`` with the turns it would write; stores nothing.

    Raises what ``import_parts`` raises. Of each record it remembers a hash, to know one that comes again.
    """
    seen: dict[int, int] = {}

    async def look(events: Sequence[Event], ordinals: Ordinals) -> list[Remembered]:
        outcome = []
        foreseen = await remembering.foresee(scope, events, ordinals)
        for event, (identity, status) in zip(events, foreseen, strict=True):
            said = hash(repr(event.model_copy(update={"source": None})))
            before = seen.get(hash(identity))
            if status in ("added", "revised"):
                if before is not None:
                    status = "existing" if before == said else "revised"
                seen[hash(identity)] = said
                if unread is not None and status != "existing":
                    unread.extend(Unread(event.session, passage) for passage in passages_of(event))
            outcome.append(Remembered(None, status))
        return outcome

    await _each(transcript, wanted, report, look, on_progress)


async def _each(
    transcript: Transcript, wanted: Wanted, report: ImportReport, store: Store, on_progress: Progress | None
) -> None:
    """Read the parts one after the other, in batches."""
    began = time.perf_counter()
    wanted.require_fit(transcript)
    report.unknown = list(transcript.unknown)
    total = read = 0
    if on_progress is not None:
        for part in transcript.parts:
            total += await anyio.to_thread.run_sync(_count, part, wanted)
        on_progress(0, total)
    tally = Tally(report)
    for part in transcript.parts:
        file = FileReport(file=part.where, format=part.format.name)
        report.files.append(file)
        ordinals = Ordinals()
        with closing(_Batches(part, wanted)) as batches:
            while taken := await anyio.to_thread.run_sync(batches.take):
                events = [record for record in taken if isinstance(record, Event)]
                if events:
                    done = await store(events, ordinals)
                    tally.count(file, (one.status for one in done))
                    tally.look_at(events)
                    report.flagged += sum(one.flagged for one in done)
                tally.reject(file, [record for record in taken if isinstance(record, Rejected)])
                tally.leave_out(file, taken.count(None))
                read += len(taken)
                if on_progress is not None:
                    on_progress(read, max(read, total))
            if batches.error is not None:
                if not transcript.walked:
                    raise batches.error
                reason = str(batches.error).removeprefix(f"{part.where}:").strip()
                tally.reject(file, [Rejected(file=part.where, position="", reason=reason)])
    tally.end()
    if wanted.conversation is not None and report.records == 0 and report.left_out == 0:
        raise InvalidInput(f"{report.file} holds no conversation called {wanted.conversation!r}")
    report.seconds = round(time.perf_counter() - began, 3)


class _Batches:
    """The records of a part, some at a time; ``error`` is why there are no more, if that is not the end."""

    def __init__(self, part: Part, wanted: Wanted) -> None:
        self._records = wanted.records(part)
        self.error: BadRecord | None = None

    def take(self) -> list[Chosen]:
        """The next ones, none at the end."""
        taken: list[Chosen] = []
        try:
            # One by one: what was read before an error counts.
            taken.extend(islice(self._records, BATCH))
        except BadRecord as error:
            self.error = error
        return taken

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
