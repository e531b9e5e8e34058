"""How every write gets into a store: read the scope's state, plan a batch on it, apply it, and plan anew if the scope
has moved on meanwhile.

Inside a process a lock for each scope makes that rare; between processes the store's check makes it safe.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from weakref import WeakValueDictionary

import anyio

from zettel.core.gc_frequency import gc_rarely
from zettel.core.rows import NoteVanished
from zettel.errors import StoreBusy, StoreError
from zettel.model import Scope, from_micros, to_micros
from zettel.ports import GraphStore, ScopeState
from zettel.ports.operations import Batch, Conflict, Op

BUSY_AFTER = 30.0
"""Seconds of losing to other writers before a write gives up, with nothing written."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.2


class Clock:
    """Numbers and dates what a batch writes: ``seq`` only grows, and recorded time never goes back in a scope.

    ``now`` is what the machine's clock shows: jobs are due then, however far ahead the clock of an earlier write was.
    """

    def __init__(self, state: ScopeState) -> None:
        self.seq = state.seq
        self.now = datetime.now(timezone.utc)
        self.micros = max(to_micros(self.now), state.recorded_at)
        self.recorded_at = from_micros(self.micros)

    def next(self) -> int:
        """The next place in the order of arrival."""
        self.seq += 1
        return self.seq


Plan = Callable[[ScopeState, Clock], Awaitable[list[Op]]]
"""Makes the operations for a scope that stands at that state; an empty list writes nothing."""
Look = Callable[[], Awaitable[ScopeState]]
"""Reads where the scope stands, and whatever else its planner wants to know."""


class Commits:
    """Applies plans to one store."""

    def __init__(self, store: GraphStore) -> None:
        self._store = store
        # Weak: the lock of a scope that nobody writes to is forgotten.
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    async def commit(self, scope: Scope, plan: Plan, look: Look | None = None) -> bool:
        """Plan and apply; whether anything was written. ``look`` is called before each plan, in the place of the
        store's ``state``.

        Raises ``StoreBusy`` when other writers were always first, and what the store's ``apply`` raises; then
        nothing of this plan was written.
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
                            await self._store.apply(Batch(scope, state.seq, clock.seq, tuple(ops)))
                    return bool(ops)
                except Conflict:
                    if time.monotonic() > deadline:
                        raise StoreBusy(f"other writers kept {scope} busy for {BUSY_AFTER:.0f} s; try again") from None
                await anyio.sleep(random.uniform(0, pause))
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def _planned(self, scope: Scope, plan: Plan, state: ScopeState, clock: Clock) -> list[Op]:
        """Return the operations of a plan. Raises ``Conflict`` if a note was deleted between two reads of the plan."""
        try:
            return await plan(state, clock)
        except NoteVanished as error:
            if (await self._store.state(scope)).seq == state.seq:
                raise StoreError(f"note {error.note_id} is missing: run `zettel doctor --repair`") from None
            raise Conflict(str(error)) from None
