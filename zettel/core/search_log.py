"""Bounded buffer of the search log, written to the store in the background.

A search only appends to memory. A killed process loses its buffer, because nothing depends on the log.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.to_thread

from zettel.errors import StoreError
from zettel.model import LoggedHit, LoggedSearch, Scope
from zettel.text.tokens import readable

if TYPE_CHECKING:
    from datetime import datetime

    from zettel.core.privacy import SecretGuard
    from zettel.ports import GraphStore
    from zettel.ports.query import Floats

BUFFERED = 1_000
"""Searches in memory at most; then the oldest are dropped."""
QUESTION_CHARACTERS = 2_000
"""Logged beginning of a question: a longer one is a pasted document, and its beginning identifies it."""
WITH_FEATURES = 10
"""First hits that are logged with their features. The searches of an adapter have dozens of hits."""
WRITTEN_AFTER = 1.0
"""Seconds until the buffer is written, unless ``flush`` comes first."""


class FoundNote(NamedTuple):
    """The part of a hit that the log stores, so that the buffer contains no notes."""

    id: str
    version: int
    score: float


class PendingSearch(NamedTuple):
    """A buffered search, which becomes a ``LoggedSearch`` when it is written."""

    scope: Scope
    id: str
    question: str
    asked_at: datetime
    scorer: str
    hits: Sequence[FoundNote]
    features: Floats  # (hits, f)
    names: tuple[str, ...]


class SearchLogBuffer:
    """The buffer of one memory, in its event loop."""

    def __init__(self, store: GraphStore, guard: SecretGuard) -> None:
        self._store = store
        self._guard = guard
        self._pending: deque[PendingSearch] = deque(maxlen=BUFFERED)
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._flush_lock = anyio.Lock()

    def add(self, search: PendingSearch) -> None:
        """Append a search."""
        self._pending.append(search._replace(question=search.question[:QUESTION_CHARACTERS]))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITTEN_AFTER, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._writing = asyncio.get_running_loop().create_task(self._write_in_passing())

    async def _write_in_passing(self) -> None:
        with suppress(StoreError):  # it remains in the buffer until the next write
            await self.flush()

    async def flush(self) -> None:
        """Write the buffer. Raises what the store's ``log_searches`` raises; then the buffer is unchanged."""
        async with self._flush_lock:
            if not self._pending:
                return
            taken = list(self._pending)
            self._pending.clear()
            try:
                await self._store.log_searches(await anyio.to_thread.run_sync(_records, taken, self._guard))
            except StoreError:
                self._pending = deque([*taken, *self._pending], maxlen=BUFFERED)
                raise

    async def close(self) -> None:
        """Write the buffer, if the store accepts it."""
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            await self._writing
        await self._write_in_passing()


def _records(searches: Iterable[PendingSearch], guard: SecretGuard) -> dict[Scope, list[LoggedSearch]]:
    by_scope: dict[Scope, list[LoggedSearch]] = defaultdict(list)
    for search in searches:
        by_scope[search.scope].append(_record(search, guard))
    return by_scope


def _record(search: PendingSearch, guard: SecretGuard) -> LoggedSearch:
    return LoggedSearch(
        id=search.id,
        question=readable(guard.cleaned(search.question)),
        asked_at=search.asked_at,
        scorer=search.scorer,
        hits=tuple(
            LoggedHit(
                note=hit.id,
                version=hit.version,
                score=hit.score,
                features={name: round(value, 4) for name, value in zip(search.names, row, strict=True) if value}
                if place < WITH_FEATURES
                else {},
            )
            for place, (hit, row) in enumerate(zip(search.hits, search.features.tolist(), strict=True))
        ),
    )
