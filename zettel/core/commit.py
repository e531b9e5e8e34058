"""Optimistic transactions: read the scope's state, plan a batch, apply it, and plan again after a conflict.

A lock per scope makes conflicts rare in one process. The store's check makes writes of several processes safe.
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from weakref import WeakValueDictionary

import anyio

from zettel.core.changes import Change, ChangeListener, changes_of, is_collecting, touch
from zettel.core.gc_frequency import gc_rarely
from zettel.core.rows import NoteVanished
from zettel.errors import StoreBusy, StoreError
from zettel.model import Scope, from_micros, to_micros
from zettel.ports import GraphStore, ScopeState
from zettel.ports.operations import Batch, Conflict, Op

BUSY_AFTER = 30.0
"""Seconds of conflicts with other writers after which a write fails."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.2
_RANDOM = random.SystemRandom()  # leaves the sequence of a program that seeds "random" as it is


class Clock:
    """Assigns ``seq`` and recorded times to a batch: both only grow in a scope.

    ``now`` is the machine's time. Jobs are due then, even if an earlier write had a clock that was ahead.
    """

    def __init__(self, state: ScopeState) -> None:
        self.seq = state.seq
        self.now = datetime.now(timezone.utc)
        self.micros = max(to_micros(self.now), state.recorded_at)
        self.recorded_at = from_micros(self.micros)

    def next(self) -> int:
        """Return the next ``seq``."""
        self.seq += 1
        return self.seq


Plan = Callable[[ScopeState, Clock], Awaitable[list[Op]]]
"""Plans the operations on a state of the scope; an empty list writes nothing."""
Look = Callable[[], Awaitable[ScopeState]]
"""Reads the state of the scope, and the data that its planner needs."""


class Commits:
    """Applies plans to one store. ``listener`` learns of all changes before the store writes them."""

    def __init__(self, store: GraphStore, listener: ChangeListener | None = None) -> None:
        self._store = store
        self._listener = listener
        # Weak, so that locks of scopes without writers are freed.
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    async def commit(self, scope: Scope, plan: Plan, look: Look | None = None) -> bool:
        """Plan and apply a batch, and return whether anything was written.

        ``look`` replaces the store's ``state`` before each plan. Raises ``StoreBusy`` if conflicts with other writers
        do not end, and what the store's ``apply`` raises. Then nothing was written.
        """
        deadline = time.monotonic() + BUSY_AFTER
        pause = _FIRST_PAUSE
        lock = self._locks.setdefault(scope.key, anyio.Lock())
        async with lock:
            while True:
                state = await (self._store.state(scope) if look is None else look())
                clock = Clock(state)
                try:
                    with gc_rarely():
                        ops = await self._planned(scope, plan, state, clock)
                        if ops:
                            await self._apply(Batch(scope, state.seq, clock.seq, tuple(ops)))
                    return bool(ops)
                except Conflict:
                    if time.monotonic() > deadline:
                        raise StoreBusy(f"other writers blocked {scope} for {BUSY_AFTER:.0f} s; try again") from None
                await anyio.sleep(_RANDOM.uniform(0, pause))
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def _apply(self, batch: Batch) -> None:
        if self._listener is None and not is_collecting():
            await self._store.apply(batch)
            return
        async with self.announced(batch.scope, changes_of(batch.ops)):
            await self._store.apply(batch)

    @asynccontextmanager
    async def announced(self, scope: Scope, changes: Sequence[Change]) -> AsyncIterator[None]:
        """Announce changes that the block writes in one transaction. Raises what the listener raises, before it."""
        if self._listener is None or not changes:
            yield
        else:
            async with self._listener.expecting(scope, changes):
                yield
        for change in changes:
            touch((*change.ids, *change.event_ids))

    async def _planned(self, scope: Scope, plan: Plan, state: ScopeState, clock: Clock) -> list[Op]:
        """Return the operations of a plan. Raises ``Conflict`` if a note was deleted between two reads of the plan."""
        try:
            return await plan(state, clock)
        except NoteVanished as error:
            if (await self._store.state(scope)).seq == state.seq:
                raise StoreError(f"note {error.note_id} is missing: run `zettel doctor --repair`") from None
            raise Conflict(str(error)) from None
