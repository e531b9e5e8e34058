"""LangGraph: a ``BaseStore`` on a memory, tools and a middleware for agents, and models with a memory.

``zettel.integrations.langgraph_items`` maps items to events and notes. ``zettel.integrations.langgraph_agents`` defines
``memory_tools``, ``MemoryMiddleware`` and ``with_memory``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from zettel.core.present import present
from zettel.errors import InvalidInput, MissingExtra, NotFound

try:
    import langchain.agents.middleware  # noqa: F401
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
from zettel.integrations.json_values import json_value
from zettel.integrations.keyed_items import KeyedItems
from zettel.integrations.langgraph_agents import MemoryMiddleware as MemoryMiddleware
from zettel.integrations.langgraph_agents import memory_tools as memory_tools
from zettel.integrations.langgraph_agents import with_memory as with_memory
from zettel.integrations.langgraph_items import (
    UNINDEXED,
    WHOLE,
    Place,
    event_of,
    fits,
    is_expired,
    item_of,
    place_of,
    refreshed,
    require_namespace,
    search_item_of,
    text_fields,
    value_of,
    within,
)
from zettel.integrations.sync_or_async import Adapter, AnyMemory, require_memory
from zettel.model import Note, Scope

_ADAPTER = Adapter("langgraph")


class ZettelStore(BaseStore):  # type: ignore[misc]
    """One scope of a ``Memory`` or ``AsyncMemory`` as LangGraph's store.

    Each ``put`` is a new version of one note, so that ``history`` and ``revert`` work on items; ``delete`` destroys all
    versions. Queries are ranked like ``Memory.search``. Namespaces separate users, so put the user into them; tools and
    middleware, which work on the scopes of users, do not see these items. ``index`` may list the ``fields`` to search,
    as paths; the memory's embedder makes the vectors. ``ttl`` is LangGraph's config: ``sweep_ttl`` destroys expired
    items, and the next call after ``sweep_interval_minutes`` does the same. With an ``AsyncMemory`` only the async
    methods work. Raises ``InvalidInput``.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: AnyMemory,
        *,
        scope: Scope | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        require_memory(memory)
        if index and ("embed" in index or "dims" in index):
            raise InvalidInput("index: choose the embedder with Memory(embedder=...), and pass only fields here")
        self._memory = memory
        self._scope = scope or memory.scope
        self._fields = list((index or {}).get("fields") or [WHOLE])
        self.ttl_config = ttl
        self._writing = asyncio.Lock()
        self._swept: datetime | None = None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run all operations: reads on the state before, then deletes, then puts.

        Puts share one transaction; keys that were once deleted follow in a second one. Of several puts of a key the
        last one counts. Raises what ``add_many`` and ``search`` raise, and ``InvalidNamespaceError``.
        """
        return _ADAPTER.run_sync(self._memory, partial(self._do, list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Async version; a ``Memory`` works in any event loop."""
        return await _ADAPTER.run_async(self._memory, partial(self._do, list(ops)))

    def sweep_ttl(self) -> int:
        """Destroy expired items; return their number."""
        return _ADAPTER.run_sync(self._memory, self._sweep)

    async def asweep_ttl(self) -> int:
        """Async version."""
        return await _ADAPTER.run_async(self._memory, self._sweep)

    # The methods below run in the memory's event loop.

    async def _do(self, ops: Sequence[Op], memory: AsyncMemory) -> list[Result]:
        every = (self.ttl_config or {}).get("sweep_interval_minutes")
        if every is not None and (self._swept is None or present() - self._swept >= timedelta(minutes=every)):
            await self._sweep(memory)
        items = KeyedItems(memory, self._scope)
        results: list[Result] = []
        puts: dict[Place, PutOp] = {}
        read: dict[Place, Note] = {}
        for op in ops:
            result: Result = None
            if isinstance(op, GetOp):
                result = await self._get(items, op, read)
            elif isinstance(op, SearchOp):
                result = await self._search(items, op, read)
            elif isinstance(op, ListNamespacesOp):
                result = await self._namespaces(items, op)
            elif isinstance(op, PutOp):
                puts[Place(require_namespace(op.namespace), op.key)] = op
            else:
                raise InvalidInput(f"{type(op).__name__} is not an operation of a store: use Get, Put, Search or List")
            results.append(result)
        due = [place for place, note in read.items() if refreshed(note, present())]
        if puts or due:
            async with self._writing:
                for place in due:
                    await self._refresh(items, place)
                await self._write(items, puts)
        return results

    async def _get(self, items: KeyedItems, op: GetOp, read: dict[Place, Note]) -> Item | None:
        place = Place(tuple(op.namespace), op.key)
        note = await items.first(place.filter())
        if note is None or self._hides(note):
            return None
        value = await value_of(items, note)
        if value is None:
            return None
        if op.refresh_ttl:
            read[place] = note
        return item_of(note, value)

    async def _search(self, items: KeyedItems, op: SearchOp, read: dict[Place, Note]) -> list[SearchItem]:
        _require_counts(op)
        count = op.offset + op.limit
        where = within(op.namespace_prefix) | text_fields(op.filter or {})
        matches: dict[Place, tuple[Note, float | None]] = {}
        if op.query and op.query.strip() and count:
            matches |= await self._ranked(items, op, where, count)
        if len(matches) < count:
            async for note in items.notes(where):
                if place_of(note) not in matches and await self._passes(items, note, op):
                    matches[place_of(note)] = (note, None)
                    if len(matches) == count:
                        break
        chosen = list(matches.values())[op.offset : count]
        if op.refresh_ttl:
            read |= {place_of(note): note for note, _ in chosen}
        values = [await value_of(items, note) for note, _ in chosen]
        return [
            search_item_of(note, value, score)
            for (note, score), value in zip(chosen, values, strict=True)
            if value is not None
        ]

    async def _ranked(
        self, items: KeyedItems, op: SearchOp, where: dict[str, Any], count: int
    ) -> dict[Place, tuple[Note, float | None]]:
        assert op.query is not None

        async def accept(note: Note) -> Note | None:
            if UNINDEXED in note.metadata:
                return None
            return note if await self._passes(items, note, op) else None

        hits = await items.ranked(op.query, where, count, accept, selective=bool(op.filter))
        return {place_of(note): (note, score) for note, score in hits}

    async def _namespaces(self, items: KeyedItems, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        _require_counts(op)
        conditions = op.match_conditions or ()
        namespaces: set[tuple[str, ...]] = set()
        async for note in items.notes(within(())):
            namespace, _ = place_of(note)
            if not self._hides(note) and all(_matches(namespace, condition) for condition in conditions):
                namespaces.add(namespace[: op.max_depth])
        return sorted(namespaces)[op.offset : op.offset + op.limit]

    async def _passes(self, items: KeyedItems, note: Note, op: SearchOp) -> bool:
        fields = json_value("filter", op.filter or {})
        if self._hides(note) or not fields:
            return not self._hides(note)
        value = await value_of(items, note)
        return value is not None and all(fits(value.get(name), wanted) for name, wanted in fields.items())

    def _hides(self, note: Note) -> bool:
        return is_expired(note, present())  # archived ones: the memory leaves the others out

    async def _write(self, items: KeyedItems, puts: dict[Place, PutOp]) -> None:
        now = present()
        values = {place: op for place, op in puts.items() if op.value is not None}
        events = {place: event_of(place, op, self._fields, now) for place, op in values.items()}
        for place, op in puts.items():
            if op.value is None:
                async for note in items.notes(place.filter(), include_hidden=True):
                    await items.delete(note)
        await items.write(events, Place.filter)

    async def _refresh(self, items: KeyedItems, place: Place) -> None:
        """Extend the expiry of an item, unless another process puts a new value concurrently."""
        note = await items.first(place.filter())
        end = None if note is None else refreshed(note, present())
        if note is None or end is None:
            return
        try:
            changed = await items.memory.update(note.id, expires_at=end, scope=self._scope)
            if changed.version != note.version + 1:
                await items.memory.revert(note.id, changed.version - 1, scope=self._scope)
        except NotFound:  # deleted concurrently
            return

    async def _sweep(self, memory: AsyncMemory) -> int:
        self._swept = present()
        return sum(await memory.sweep(scope=self._scope))


def _require_counts(op: SearchOp | ListNamespacesOp) -> None:
    """Raise ``InvalidInput`` for a negative limit or offset."""
    if op.offset < 0 or op.limit < 0:
        raise InvalidInput(f"limit={op.limit}, offset={op.offset}: both must be 0 or more")


def _matches(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """Return whether a namespace begins, or ends, with a path; ``*`` matches any label."""
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    if condition.match_type not in ("prefix", "suffix"):
        raise InvalidInput(f"match_type must be prefix or suffix, got {condition.match_type!r}")
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
