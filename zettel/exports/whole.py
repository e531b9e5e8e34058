"""``zettel``: all that scopes hold, each in one state, so that another store can take it in as it was."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from zettel import __version__
from zettel.batch import PutEvent
from zettel.transcripts.whole import Lines, record, vectors_record

from .work import Work


async def pages(work: Work) -> AsyncGenerator[bytes, None]:
    """The lines, each with its checksum; the format is that of ``zettel.transcripts.whole``."""
    await work.expect(events=1)
    lines = Lines()
    yield lines.header(__version__)
    spaces = await work.store.spaces()
    sets = {space.id: number for number, space in enumerate(spaces, start=1)}
    yield b"".join(lines.line(vectors_record(sets[space.id], space)) for space in spaces)
    for scope in work.scopes:
        async for page in work.store.whole(scope):
            yield b"".join(lines.line(one) for kept in page for one in record(kept, scope, sets))
            events = sum(isinstance(kept, PutEvent) for kept in page)
            work.report.events += events
            work.told(events)
    yield lines.end()
