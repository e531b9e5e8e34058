"""The log of searches, on its way to the store: a bounded buffer that is written in the background.

A search puts what it found into memory and nothing else. What is in the buffer when a process is killed is lost: a log
is there to learn from, and nothing rests on it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.to_thread

from zettel.embed.rows import readable
from zettel.errors import StoreError
from zettel.model import LoggedHit, LoggedSearch, Scope

if TYPE_CHECKING:
    from datetime import datetime

    from zettel.model import Hit
    from zettel.ports import GraphStore
    from zettel.query import Floats

BUFFERED = 1_000
"""Searches that wait in memory at most; then the oldest are dropped."""
QUESTION_CHARACTERS = 2_000
"""Beginning of a question that is kept: what is longer is a pasted document, and its beginning tells it from others."""
WRITTEN_AFTER = 5.0
"""Seconds until what waits is written, unless something asks for it before."""


class Found(NamedTuple):
    """What a search found, as it lies in the buffer: turned into a record when it is written."""

    scope: Scope
    id: str
    question: str
    asked_at: datetime
    scorer: str
    hits: Sequence[Hit]
    features: Floats  # (hits, f)
    names: tuple[str, ...]


class SearchLog:
    """The buffer of one memory, in its event loop."""

    def __init__(self, store: GraphStore) -> None:
        self._store = store
        self._waiting: deque[Found] = deque(maxlen=BUFFERED)
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._one_at_a_time = anyio.Lock()

    def add(self, found: Found) -> None:
        """Remember a search."""
        self._waiting.append(found._replace(question=found.question[:QUESTION_CHARACTERS]))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITTEN_AFTER, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._writing = asyncio.get_running_loop().create_task(self._write_in_passing())

    async def _write_in_passing(self) -> None:
        with suppress(StoreError):  # what could not be written waits for the next time
            await self.flush()

    async def flush(self) -> None:
        """Write what waits. Raises what the store's ``log_searches`` raises; then it waits on."""
        async with self._one_at_a_time:
            if not self._waiting:
                return
            taken = list(self._waiting)
            self._waiting.clear()
            try:
                await self._store.log_searches(await anyio.to_thread.run_sync(_records, taken))
            except StoreError:
                self._waiting = deque([*taken, *self._waiting], maxlen=BUFFERED)
                raise

    async def close(self) -> None:
        """Write what waits, if the store takes it."""
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            await self._writing
        await self._write_in_passing()


def _records(searches: Iterable[Found]) -> dict[Scope, list[LoggedSearch]]:
    by_scope: dict[Scope, list[LoggedSearch]] = defaultdict(list)
    for search in searches:
        by_scope[search.scope].append(_record(search))
    return by_scope


def _record(search: Found) -> LoggedSearch:
    return LoggedSearch(
        id=search.id,
        question=readable(search.question),
        asked_at=search.asked_at,
        scorer=search.scorer,
        hits=tuple(
            LoggedHit(
                note=hit.note.id,
                version=hit.note.version,
                score=hit.score,
                features={name: round(value, 4) for name, value in zip(search.names, row, strict=True) if value},
            )
            for hit, row in zip(search.hits, search.features.tolist(), strict=True)
        ),
    )
