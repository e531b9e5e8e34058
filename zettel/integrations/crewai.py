"""Storage backend for CrewAI's ``Memory``.

CrewAI queries its storage by vector. ``ZettelStorage.embedder`` caches the text of each vector that it creates, so that
a query searches for the text. Other vectors are compared with the vectors of the records.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
from cachetools import LRUCache

from zettel.errors import InvalidInput, MissingExtra

try:
    from crewai.memory.types import MemoryRecord, ScopeInfo
except ModuleNotFoundError as error:
    raise MissingExtra("the storage for CrewAI", "crewai") from error

from zettel.async_memory import AsyncMemory
from zettel.core.arguments import checked
from zettel.core.vectors import embed_texts
from zettel.integrations.json_values import json_value, storable_text
from zettel.integrations.keyed_items import KeyedItems, is_long
from zettel.integrations.sync_or_async import Adapter, AnyMemory, require_memory
from zettel.local.backend import LocalBackend
from zettel.model import Event, Note, Scope, in_utc

_ADAPTER = Adapter("crewai")
CACHED_TEXTS = 10_000
"""Vectors whose texts are cached, the most recent ones."""
RECORD, ID = "record", "record_id"
"""Metadata keys for CrewAI's record as JSON and for its id."""
CONTENT = "content"
"""Field of a record that is stored as the payload of the event if it is long."""

RankedRecords = list[tuple[MemoryRecord, float]]


class ZettelStorage:
    """One scope of a ``Memory`` or ``AsyncMemory`` as CrewAI's ``StorageBackend``:
    ``crewai.Memory(storage=storage, embedder=storage.embedder)``.

    Each record is a note, and each update a new version; ``delete`` destroys all versions. Queries are ranked like
    ``Memory.search``. With an ``AsyncMemory`` only the async methods work. Raises ``InvalidInput``.
    """

    def __init__(self, memory: AnyMemory, *, scope: Scope | None = None) -> None:
        require_memory(memory)
        self._memory = memory
        self._scope = scope or memory.scope
        self._texts: LRUCache[bytes, str] = LRUCache(CACHED_TEXTS)
        self._writing = asyncio.Lock()

    def embedder(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts; pass this method to CrewAI's ``Memory``. Raises ``EmbedderUnavailable``."""
        return _ADAPTER.run_sync(self._memory, partial(self._embed, list(texts)))

    def save(self, records: list[MemoryRecord]) -> None:
        """Store records in one transaction; records with ids that were once deleted follow in a second one.

        Raises ``InvalidInput`` for metadata that is not JSON.
        """
        _ADAPTER.run_sync(self._memory, partial(self._save, records))

    async def asave(self, records: list[MemoryRecord]) -> None:
        """Async version."""
        await _ADAPTER.run_async(self._memory, partial(self._save, records))

    def update(self, record: MemoryRecord) -> None:
        """Store a new version of a record."""
        self.save([record])

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> RankedRecords:
        """Return the records that match a vector of ``embedder``, best first, with scores from 0 to 1.

        Raises ``InvalidInput`` for a vector of another size.
        """
        records = _RecordFilter(scope_prefix, categories, metadata_filter)
        return _ADAPTER.run_sync(self._memory, partial(self._search, query_embedding, records, limit, min_score))

    async def asearch(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> RankedRecords:
        """Async version."""
        records = _RecordFilter(scope_prefix, categories, metadata_filter)
        return await _ADAPTER.run_async(self._memory, partial(self._search, query_embedding, records, limit, min_score))

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Destroy the records that match every given criterion, by default all; return their number."""
        records = _RecordFilter(scope_prefix, categories, metadata_filter, older_than, record_ids)
        return _ADAPTER.run_sync(self._memory, partial(self._delete, records))

    async def adelete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Async version."""
        records = _RecordFilter(scope_prefix, categories, metadata_filter, older_than, record_ids)
        return await _ADAPTER.run_async(self._memory, partial(self._delete, records))

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return the record with this id."""
        return _ADAPTER.run_sync(self._memory, partial(self._get, record_id))

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """Return the records of a scope and its subscopes, newest first."""
        if limit < 0 or offset < 0:
            raise InvalidInput(f"limit={limit}, offset={offset}: both must be 0 or more")
        newest = sorted(self._records(scope_prefix), key=lambda record: in_utc(record.created_at), reverse=True)
        return newest[offset : offset + limit]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return the number, categories and dates of the records in a scope and its subscopes."""
        records = self._records(scope)
        times = sorted((record.created_at for record in records), key=in_utc)
        return ScopeInfo(
            path=_path(_labels(scope)),
            record_count=len(records),
            categories=sorted({name for record in records for name in record.categories}),
            oldest_record=times[0] if times else None,
            newest_record=times[-1] if times else None,
            child_scopes=_children(scope, records),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the direct subscopes of a scope, sorted."""
        return _children(parent, self._records(parent))

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return the number of records per category in a scope and its subscopes."""
        records = self._records(scope_prefix)
        return dict(Counter(name for record in records for name in dict.fromkeys(record.categories)))

    def count(self, scope_prefix: str | None = None) -> int:
        """Return the number of records in a scope and its subscopes."""
        return len(self._records(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Destroy the records of a scope and its subscopes, by default all. Other notes of the memory stay."""
        self.delete(scope_prefix)

    # The methods below run in the memory's event loop.

    def _records(self, scope_prefix: str | None) -> list[MemoryRecord]:
        return _ADAPTER.run_sync(self._memory, partial(self._all, _RecordFilter(scope_prefix)))

    async def _all(self, records: _RecordFilter, memory: AsyncMemory) -> list[MemoryRecord]:
        items = KeyedItems(memory, self._scope)
        matches = [
            await _record(items, note) async for note in items.notes(records.metadata_filter) if records.accepts(note)
        ]
        return [record for record in matches if record is not None]

    async def _get(self, id: str, memory: AsyncMemory) -> MemoryRecord | None:
        items = KeyedItems(memory, self._scope)
        note = await items.first({ID: id})
        return None if note is None else await _record(items, note)

    async def _save(self, records: Sequence[MemoryRecord], memory: AsyncMemory) -> None:
        events = {record.id: _event(_json(record), record.created_at) for record in records}
        async with self._writing:
            await KeyedItems(memory, self._scope).write(events, lambda id: {ID: id})

    async def _delete(self, records: _RecordFilter, memory: AsyncMemory) -> int:
        items = KeyedItems(memory, self._scope)
        notes = items.notes(records.metadata_filter, include_hidden=True)
        return sum([await items.delete(note) for note in [note async for note in notes if records.accepts(note)]])

    async def _embed(self, texts: list[str], memory: AsyncMemory) -> list[list[float]]:
        rows = await _vectors(texts, memory)
        for text, row in zip(texts, rows, strict=True):
            self._texts[row.tobytes()] = text
        vectors: list[list[float]] = rows.tolist()
        return vectors

    async def _search(
        self, vector: Sequence[float], records: _RecordFilter, limit: int, min_score: float, memory: AsyncMemory
    ) -> RankedRecords:
        if limit < 1:
            return []
        query = np.asarray(vector, np.float32)
        text = self._texts.get(query.tobytes())
        if text is None:
            ranked = await self._nearest(query, records, memory)
        else:
            items = KeyedItems(memory, self._scope)
            hits = await items.ranked(
                text, records.metadata_filter, limit, records.accept, selective=records.is_selective
            )
            scored = [(await _record(items, note), score) for note, score in hits]
            ranked = [(record, score) for record, score in scored if record is not None]
        return [(record, score) for record, score in ranked if score >= min_score][:limit]

    async def _nearest(self, query: Any, filter: _RecordFilter, memory: AsyncMemory) -> RankedRecords:
        """Rank all matching records by the cosine of their vectors with a vector of unknown text."""
        records = await self._all(filter, memory)
        if not records:
            return []
        rows = await _vectors([record.content for record in records], memory)
        length = float(np.linalg.norm(query))
        if query.shape != rows.shape[1:] or not length > 0:
            raise InvalidInput(
                f"the vector has {query.size} dimensions, the memory's embedder {rows.shape[1]}: pass the storage's "
                "embedder to CrewAI, Memory(storage=storage, embedder=storage.embedder)"
            )
        scores = np.clip(rows @ query / length, 0.0, 1.0)
        best = np.argsort(-scores, kind="stable")
        return [(records[place], float(scores[place])) for place in best]


class _RecordFilter:
    """Selects records by ``metadata_filter`` in the store, and by criteria that are checked afterwards."""

    def __init__(
        self,
        scope_prefix: str | None = None,
        categories: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        older_than: datetime | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        self.metadata_filter = _below(_labels(scope_prefix or "/"))
        self._categories = set(categories or ())
        self._metadata = json_value("metadata_filter", metadata or {})
        self._older_than = None if older_than is None else in_utc(older_than)
        self._ids = None if ids is None else set(ids)
        if len(self._categories) == 1:
            self.metadata_filter |= _of_category(*self._categories)
        if self._ids is not None and len(self._ids) == 1:
            self.metadata_filter |= {ID: next(iter(self._ids))}
        self.is_selective = len(self._categories) > 1 or bool(self._metadata)

    def accepts(self, note: Note) -> bool:
        record: Any = note.metadata[RECORD]
        return (
            (not self._categories or not self._categories.isdisjoint(record["categories"]))
            and all(record["metadata"].get(name) == wanted for name, wanted in self._metadata.items())
            and (self._ids is None or record["id"] in self._ids)
            and (self._older_than is None or in_utc(datetime.fromisoformat(record["created_at"])) < self._older_than)
        )

    async def accept(self, note: Note) -> Note | None:
        return note if self.accepts(note) else None


async def _record(items: KeyedItems, note: Note) -> MemoryRecord | None:
    """Return the record of a note; None if it was deleted concurrently."""
    record: Any = note.metadata[RECORD]
    if CONTENT in record:
        return MemoryRecord.model_validate(record)
    content = await items.payload(note)
    return None if content is None else MemoryRecord.model_validate({**record, CONTENT: content})


async def _vectors(texts: list[str], memory: AsyncMemory) -> Any:
    """Return (n, d) float32 unit rows of the memory's embedder."""
    backend = await memory._ready(None)
    if not isinstance(backend, LocalBackend):
        raise InvalidInput("CrewAI needs vectors, which a zettel server does not return: open the store directly")
    engine, _ = backend.memory.use(None)
    return await embed_texts(engine.vectors.embedder, texts)


def _json(record: MemoryRecord) -> dict[str, Any]:
    """Return a record as JSON, without its vector. Raises ``InvalidInput``."""
    fields = record.model_dump(exclude={"embedding"})
    times = {name: fields[name].isoformat() for name in ("created_at", "last_accessed")}
    return {name: json_value(name, value) for name, value in (fields | times).items()}


def _event(record: dict[str, Any], created_at: datetime) -> Event:
    labels = _labels(record["scope"])
    content = record[CONTENT]
    text = storable_text(content)  # the searchable text; the record itself stays exact
    if is_long(text):
        record = {name: value for name, value in record.items() if name != CONTENT}
    metadata: dict[str, Any] = {ID: record["id"], RECORD: record}
    for depth in range(len(labels) + 1):
        metadata |= _below(labels[:depth])
    for name in record["categories"]:
        metadata |= _of_category(name)
    return checked({
        "id": json.dumps(["crewai", record["id"], 0]),
        "content": text,
        "payload": content if is_long(text) or not text.strip() else None,  # an event must not be empty
        "occurred_at": created_at,
        "metadata": metadata,
    })  # fmt: skip


def _labels(scope: str) -> list[str]:
    return [label for label in scope.split("/") if label]


def _path(labels: Sequence[str]) -> str:
    return "/" + "/".join(labels)


def _below(labels: Sequence[str]) -> dict[str, Any]:
    """Return the filter for records of a scope and its subscopes; ``[]`` selects all records."""
    return {f"scope {len(labels)}": list(labels)}


def _of_category(name: str) -> dict[str, Any]:
    return {f"category {name}": True}


def _children(parent: str, records: Sequence[MemoryRecord]) -> list[str]:
    above = _labels(parent)
    below = (_labels(record.scope) for record in records)
    return sorted({_path(labels[: len(above) + 1]) for labels in below if len(labels) > len(above)})
