"""Export format ``zettel``: complete scopes, each in one consistent state, for import into another store."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from zettel.core.memory_file import LineWriter, record, vectors_record
from zettel.ports.operations import PutEvent
from zettel.version import VERSION

from .task import ExportTask


async def pages(task: ExportTask) -> AsyncGenerator[bytes, None]:
    """Yield lines with checksums in the format of ``zettel.core.memory_file``."""
    await task.count_total(events=1)
    lines = LineWriter()
    yield lines.header(VERSION)
    spaces = await task.store.spaces()
    sets = {space.id: number for number, space in enumerate(spaces, start=1)}
    yield b"".join(lines.line(vectors_record(sets[space.id], space)) for space in spaces)
    for scope in task.scopes:
        async for page in task.store.whole(scope):
            yield b"".join(lines.line(text) for item in page for text in record(item, scope, sets))
            events = sum(isinstance(item, PutEvent) for item in page)
            task.report.events += events
            task.advance(events)
    yield lines.end()
