"""LangGraph's long-term memory: a ``BaseStore`` over a memory, its tools for agents, and what stands around a model.

``ZettelStore`` keeps items under namespaces and keys as LangGraph defines it; what an item is in the memory tells
``zettel.integrations.langgraph_items``. ``memory_tools`` and ``MemoryHooks`` come from
``zettel.integrations.langgraph_agents``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from zettel.errors import InvalidInput, MissingExtra, NotFound

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        IndexConfig,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
    )
except ModuleNotFoundError as error:
    raise MissingExtra("the store for LangGraph", "langgraph") from error

from zettel.async_memory import AsyncMemory
from zettel.integrations.either import Either, reach, require_memory, wait
from zettel.integrations.keyed import destroy, first, notes, ranked, write
from zettel.integrations.langgraph_agents import MemoryHooks as MemoryHooks
from zettel.integrations.langgraph_agents import memory_tools as memory_tools
from zettel.integrations.langgraph_items import (
    EXPIRING,
    TTL,
    UNINDEXED,
    WHOLE,
    Place,
    event_of,
    expired,
    fits,
    item_of,
    now_utc,
    place_of,
    refreshed,
    require_namespace,
    search_item_of,
    texts_asked,
    value_of,
    within,
)
from zettel.integrations.plain import plain
from zettel.model import Note, Scope


class ZettelStore(BaseStore):  # type: ignore[misc]
    """One scope of a ``Memory`` or ``AsyncMemory`` as LangGraph's store; an ``AsyncMemory`` has only the methods that
    begin with an a.

    Each ``put`` is a version of one note, so that ``history`` and ``revert`` work on items too; ``delete`` destroys it
    with all its versions. What a query finds is ranked as ``Memory.search`` ranks. ``index`` may name the ``fields``
    that are searched, as paths; vectors are the memory's own. ``ttl`` is LangGraph's config: what has expired is
    destroyed by ``sweep_ttl``, and every ``sweep_interval_minutes`` by the call that comes next. Raises
    ``InvalidInput``.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Either,
        *,
        scope: Scope | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        require_memory(memory)
        if index and ("embed" in index or "dims" in index):
            raise InvalidInput("index: vectors are the memory's, Memory(embedder=...) chooses them: give fields alone")
        self._memory = memory
        self._scope = scope or memory.scope
        self._fields = list((index or {}).get("fields") or [WHOLE])
        self.ttl_config = ttl
        self._writing = asyncio.Lock()
        self._swept: datetime | None = None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do all of them: first what reads, on the state before, then what deletes, one after the other, then what
        puts, in one transaction, and in a second one for keys that were ever deleted; of several puts of a key the
        last. Raises what ``add_many`` and ``search`` raise, and ``InvalidNamespaceError``."""
        return wait(self._memory, partial(self._do, list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same, awaited, in any event loop for a ``Memory``."""
        return await reach(self._memory, partial(self._do, list(ops)))

    def sweep_ttl(self) -> int:
        """Destroy what has expired; how many items that were."""
        return wait(self._memory, self._sweep)

    async def asweep_ttl(self) -> int:
        """The same, awaited."""
        return await reach(self._memory, self._sweep)

    # -------------------------------------------------------------------------------------------- in the memory's loop

    async def _do(self, ops: Sequence[Op], memory: AsyncMemory) -> list[Result]:
        every = (self.ttl_config or {}).get("sweep_interval_minutes")
        if every is not None and (self._swept is None or now_utc() - self._swept >= timedelta(minutes=every)):
            await self._sweep(memory)
        results: list[Result] = []
        puts: dict[Place, PutOp] = {}
        read: dict[Place, Note] = {}
        for op in ops:
            result: Result = None
            if isinstance(op, GetOp):
                result = await self._get(memory, op, read)
            elif isinstance(op, SearchOp):
                result = await self._search(memory, op, read)
            elif isinstance(op, ListNamespacesOp):
                result = await self._namespaces(memory, op)
            elif isinstance(op, PutOp):
                puts[Place(require_namespace(op.namespace), op.key)] = op
            else:
                raise InvalidInput(f"{type(op).__name__} is no operation of a store")
            results.append(result)
        due = [place for place, note in read.items() if refreshed(note, now_utc())]
        if puts or due:
            async with self._writing:
                for place in due:
                    await self._refresh(memory, place)
                await self._write(memory, puts)
        return results

    # read -----------------------------------------------------------------------------------------------------------

    async def _get(self, memory: AsyncMemory, op: GetOp, read: dict[Place, Note]) -> Item | None:
        place = Place(tuple(op.namespace), op.key)
        note = await self._note(memory, place)
        if note is None or self._hides(note):
            return None
        value = await value_of(memory, self._scope, note)
        if value is None:
            return None
        if op.refresh_ttl:
            read[place] = note
        return item_of(note, value)

    async def _note(self, memory: AsyncMemory, place: Place) -> Note | None:
        return await first(memory, self._scope, place.asked())

    async def _search(self, memory: AsyncMemory, op: SearchOp, read: dict[Place, Note]) -> list[SearchItem]:
        _require_counts(op)
        wanted = op.offset + op.limit
        found: dict[Place, tuple[Note, float | None]] = {}
        if op.query and op.query.strip() and wanted:
            found |= await self._ranked(memory, op, wanted)
        if len(found) < wanted:
            async for note in notes(memory, self._scope, within(op.namespace_prefix) | texts_asked(op.filter or {})):
                if place_of(note) not in found and await self._passes(memory, note, op):
                    found[place_of(note)] = (note, None)
                    if len(found) == wanted:
                        break
        chosen = list(found.values())[op.offset : wanted]
        if op.refresh_ttl:
            read |= {place_of(note): note for note, _ in chosen}
        values = [await value_of(memory, self._scope, note) for note, _ in chosen]
        return [
            search_item_of(note, value, score)
            for (note, score), value in zip(chosen, values, strict=True)
            if value is not None
        ]

    async def _ranked(
        self, memory: AsyncMemory, op: SearchOp, wanted: int
    ) -> dict[Place, tuple[Note, float | None]]:
        asked = within(op.namespace_prefix) | texts_asked(op.filter or {})
        assert op.query is not None

        async def look(note: Note) -> Note | None:
            head = await self._head(memory, note)
            if head is None or UNINDEXED in head.metadata:
                return None
            return head if await self._passes(memory, head, op) else None

        hits = await ranked(memory, self._scope, op.query, asked, wanted, look, sieves=bool(op.filter))
        return {place_of(note): (note, score) for note, score in hits}

    async def _head(self, memory: AsyncMemory, note: Note) -> Note | None:
        """The first part of an item, which alone knows how long it lives."""
        return await self._note(memory, place_of(note)) if note.part > 0 and TTL in note.metadata else note

    async def _namespaces(self, memory: AsyncMemory, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        _require_counts(op)
        conditions = op.match_conditions or ()
        found: set[tuple[str, ...]] = set()
        async for note in notes(memory, self._scope, within(())):
            namespace, _ = place_of(note)
            if not self._hides(note) and all(_matches(namespace, condition) for condition in conditions):
                found.add(namespace[: op.max_depth])
        return sorted(found)[op.offset : op.offset + op.limit]

    async def _passes(self, memory: AsyncMemory, note: Note, op: SearchOp) -> bool:
        asked = plain("filter", op.filter or {})
        if self._hides(note) or not asked:
            return not self._hides(note)
        value = await value_of(memory, self._scope, note)
        return value is not None and all(fits(value.get(name), wanted) for name, wanted in asked.items())

    def _hides(self, note: Note) -> bool:
        return bool((self.ttl_config or {}).get("omit_expired")) and expired(note, now_utc())

    # write ----------------------------------------------------------------------------------------------------------

    async def _write(self, memory: AsyncMemory, puts: dict[Place, PutOp]) -> None:
        now = now_utc()
        told = {place: op for place, op in puts.items() if op.value is not None}
        events = {place: event_of(place, op, self._fields, now) for place, op in told.items()}
        for place, op in puts.items():
            if op.value is None:
                async for note in notes(memory, self._scope, place.asked(), everything=True):
                    await destroy(memory, self._scope, note)
        await write(memory, self._scope, events, Place.asked)

    async def _refresh(self, memory: AsyncMemory, place: Place) -> None:
        """Have an item live on. Another process may put a new value meanwhile: what overtook that is taken back."""
        note = await self._note(memory, place)
        metadata = None if note is None else refreshed(note, now_utc())
        if note is None or metadata is None:
            return
        try:
            changed = await memory.update(note.id, metadata=metadata, scope=self._scope)
            if changed.version != note.version + 1:
                await memory.revert(note.id, changed.version - 1, scope=self._scope)
        except NotFound:  # somebody deleted it: there is nothing to keep alive
            return

    async def _sweep(self, memory: AsyncMemory) -> int:
        now = self._swept = now_utc()
        gone = 0
        async for read in notes(memory, self._scope, {EXPIRING: True}, everything=True):
            if not expired(read, now):
                continue
            async with self._writing:
                try:
                    note = await memory.get(read.id, scope=self._scope)
                except NotFound:  # somebody deleted it
                    continue
                if isinstance(note, Note) and expired(note, now):  # no other value was put since it was read
                    gone += await destroy(memory, self._scope, note)
        return gone


def _require_counts(op: SearchOp | ListNamespacesOp) -> None:
    """Raise ``InvalidInput`` for a page that nobody can turn to."""
    if op.offset < 0 or op.limit < 0:
        raise InvalidInput(f"limit={op.limit}, offset={op.offset}: both are 0 or more")


def _matches(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """Whether a namespace begins, or ends, as a path says, in which ``*`` is any one label."""
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    if condition.match_type not in ("prefix", "suffix"):
        raise InvalidInput(f"{condition.match_type!r} is no way to match: use prefix or suffix")
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
