"""Bringing a transcript into a memory: in batches, each durable, so that an import can be cut off and run
again.

Every record has an identity (its id, or what it says and when), so a second run finds what the first one
stored.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import anyio
from pydantic import BaseModel, Field

from zettel.annotate.drafts import passages_of
from zettel.errors import InvalidInput
from zettel.identity import Ordinals
from zettel.llm.estimate import Unread
from zettel.model import Event

from . import HEAD_BYTES, Record, Rejected, choose, require_file, whole
from .locomo import CONVERSATION

if TYPE_CHECKING:
    from zettel import AsyncMemory
    from zettel.model import Scope
    from zettel.remember import Remembering
    from zettel.restore import Restoring

BATCH = 500
"""Records in one transaction: few enough that an interruption costs a second's work, many enough to be quick.
"""

Progress: TypeAlias = Callable[[int, int], None]
"""Called after each batch with the number of records read and that of all in the file."""


class ImportReport(BaseModel):
    """What became of a file's records."""

    file: str
    format: str
    added: int = 0
    existing: int = 0
    """Known before, with the same content."""
    revised: int = 0
    """Known before, with other content: the note has a new version now."""
    deleted: int = 0
    """Deleted from this scope once, and so left out."""
    flagged: int = 0
    """Of those written, how many hold what looks like instructions to a model."""
    rejected: list[Rejected] = Field(default_factory=list)
    seconds: float = 0.0
    llm_calls: int = 0
    """Times that a language model was asked while the import and its jobs ran; the command line fills these in."""
    llm_hits: int = 0
    """Questions that an answer from before served."""
    llm_tokens: int = 0
    llm_usd: float = 0.0

    @property
    def records(self) -> int:
        """How many records the file held."""
        return self.added + self.existing + self.revised + self.deleted + len(self.rejected)


async def unread(
    remembering: Remembering,
    path: Path,
    format: str,
    scope: Scope,
    conversation: str | None = None,
    batch: int = BATCH,
) -> list[Unread]:
    """The turns of a transcript that an import would write. Raises as ``import_file``; stores nothing."""
    records = _select(choose(path, format).read(path), conversation)
    ordinals = Ordinals()
    turns: list[Unread] = []
    while taken := await anyio.to_thread.run_sync(_take, records, batch):
        events = [record for record in taken if isinstance(record, Event)]
        for event in await remembering.news(scope, events, ordinals):
            turns += [Unread(event.session, passage) for passage in passages_of(event)]
    return turns


async def import_file(
    memory: AsyncMemory,
    path: str | Path,
    format: str = "auto",
    *,
    scope: Scope | None = None,
    on_progress: Progress | None = None,
    batch: int = BATCH,
    conversation: str | None = None,
) -> ImportReport:
    """Store the events of a transcript; where a record's content has changed since, its note is revised.

    ``conversation`` takes only the one of that name from a file that holds several. Each batch is one
    transaction, so whatever stops an import, what was stored stays, and another run goes on. Raises
    ``UnknownFormat``, ``InvalidInput`` for a path that is no file or a conversation that is not in it, and
    ``BadRecord`` where nothing more can be read (what came before is stored).
    """
    began = time.perf_counter()
    path = Path(path)
    reader = choose(path, format)
    report = ImportReport(file=str(path), format=reader.name)
    total = 0
    if on_progress is not None:
        total = await anyio.to_thread.run_sync(_count, _select(reader.read(path), conversation))
        on_progress(0, total)
    records = _select(reader.read(path), conversation)
    ordinals = Ordinals()
    counts: Counter[str] = Counter()
    while taken := await anyio.to_thread.run_sync(_take, records, batch):
        events = [record for record in taken if isinstance(record, Event)]
        report.rejected += [record for record in taken if isinstance(record, Rejected)]
        if events:
            done = await memory.remember(events, on_conflict="revise", ordinals=ordinals, scope=scope)
            counts.update(one.status for one in done)
            report.flagged += sum(one.flagged for one in done)
        report.added, report.existing = counts["added"], counts["existing"]
        report.revised, report.deleted = counts["revised"], counts["deleted"]
        if on_progress is not None:
            on_progress(report.records, total)
    if conversation is not None and report.records == 0:
        raise InvalidInput(f"{path} holds no conversation called {conversation!r}")
    report.seconds = round(time.perf_counter() - began, 3)
    return report


def is_whole(path: Path, format: str) -> bool:
    """Whether a file is to be taken for whole memories and not for a transcript. Raises as ``choose``."""
    if format not in ("auto", whole.name):
        return False
    require_file(path)
    with path.open("rb") as file:
        return format == whole.name or whole.sniff(path, file.read(HEAD_BYTES))


async def import_whole(
    restoring: Restoring, path: Path, scope: Scope | None, conversation: str | None, on_progress: Progress | None
) -> ImportReport:
    """Bring whole memories back; a scope's events count as added, or as existing where they came before."""
    if conversation is not None:
        raise InvalidInput(f"{path} holds whole memories: no conversation can be taken out of them")
    began = time.perf_counter()
    done = await restoring.restore(path, scope, on_progress)
    seconds = round(time.perf_counter() - began, 3)
    return ImportReport(file=str(path), format=whole.name, added=done.events, existing=done.existing, seconds=seconds)


def _take(records: Iterator[Record], count: int) -> list[Record]:
    return list(islice(records, count))


def _count(records: Iterator[Record]) -> int:
    return sum(1 for _ in records)


def _select(records: Iterator[Record], conversation: str | None) -> Iterator[Record]:
    """Those of one conversation; a rejected record belongs to it if its position says so."""
    if conversation is None:
        return records
    return (record for record in records if _belongs(record, conversation))


def _belongs(record: Record, conversation: str) -> bool:
    if isinstance(record, Rejected):
        return record.position.startswith(f"{conversation}/")
    return record.metadata.get(CONVERSATION) == conversation
