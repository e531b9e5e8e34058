"""Reads the entities of a scope, and caches those of the scopes in use until something is written."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import anyio.to_thread

from zettel.core.entity_decisions import EntityDecision, decisions_of
from zettel.core.pacing import paced
from zettel.core.paging import pages
from zettel.core.present import has_expired, present
from zettel.evolve.entities import EntityIndex
from zettel.model import EntityDetails, Scope
from zettel.ports import GraphStore

PAGE = 500
"""Notes per page."""
CACHED = 8
"""Scopes whose entities are cached."""


class _Cached(NamedTuple):
    """The entities of a scope as of a ``seq``; ``until`` is when the first of its notes expires."""

    seq: int
    until: datetime | None
    entities: EntityIndex


class EntityReader:
    """Finds the entities of the scopes of a store. The first read after a write reads the whole scope."""

    def __init__(self, store: GraphStore) -> None:
        self._store = store
        self._cached: OrderedDict[Scope, _Cached] = OrderedDict()

    async def index(self, scope: Scope) -> EntityIndex:
        """Return the entities of a scope."""
        seq = (await self._store.state(scope)).seq
        cached = self._cached.get(scope)
        if cached is None or cached.seq != seq or (cached.until is not None and cached.until <= present()):
            index, until = await read_index(self._store, scope, await decisions_of(self._store, scope))
            cached = self._cached[scope] = _Cached(seq, until, index)
            if len(self._cached) > CACHED:
                self._cached.popitem(last=False)
        self._cached.move_to_end(scope)
        return cached.entities

    async def details(self, scope: Scope, name: str, limit: int) -> EntityDetails:
        """Return one entity. Raises ``NotFound``, and ``InvalidInput`` for an ambiguous name."""
        index = await self.index(scope)
        group = index.group_of(name, scope)
        ids = index.notes_of(group)
        notes = await self._store.notes(scope, ids)
        own = [notes[id] for id in ids if id in notes]
        return await anyio.to_thread.run_sync(index.details, group, own, limit)


async def read_index(
    store: GraphStore, scope: Scope, decisions: Sequence[EntityDecision]
) -> tuple[EntityIndex, datetime | None]:
    """Read the entities of a scope, which these decisions merge and split, and when the first of its notes expires."""
    index, until = EntityIndex(), None
    async for page in pages(store, scope, PAGE):
        active = [note for note in page if not has_expired(note)]
        uses = await store.uses(scope, [note.id for note in active])
        async for note in paced(active):
            index.add(note, uses.get(note.id, ()))
            until = min(filter(None, (until, note.expires_at)), default=None)
    index.finish(decisions)
    return index, until
