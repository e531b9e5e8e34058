"""CrewAI: the storage of its ``Memory`` in a memory of zettel.

CrewAI asks its storage by vectors, which say less than words. ``embedder`` is what its ``Memory`` makes them with here:
the embedder of the memory, which keeps in mind what words a vector stands for, so that these are searched for. A vector
that it did not make lately is compared with those of the records.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np

from zettel.errors import InvalidInput, MissingExtra

try:
    from crewai.memory.types import MemoryRecord, ScopeInfo
except ModuleNotFoundError as error:
    raise MissingExtra("the storage for CrewAI", "crewai") from error

from zettel.arguments import checked
from zettel.async_memory import AsyncMemory
from zettel.integrations.either import Either, reach, require_memory, wait
from zettel.integrations.keyed import destroy, first, is_long, notes, payload_of, ranked, write
from zettel.integrations.plain import plain, storable_text
from zettel.model import Event, Note, Scope, in_utc

ASKED = 10_000
"""Vectors whose words are kept in mind, those that were made last."""
RECORD, ID = "record", "record_id"
"""Keys of the metadata: what CrewAI keeps, as JSON, and what it is known by."""
CONTENT = "content"
"""Key of a record that is the payload of the event where it is long."""

Found = list[tuple[MemoryRecord, float]]


class ZettelStorage:
    """One scope of a ``Memory`` or ``AsyncMemory`` as CrewAI's ``StorageBackend``:
    ``crewai.Memory(storage=storage, embedder=storage.embedder)``.

    Each record is a note, each update of it a version; ``delete`` destroys it with all its versions. What words are
    searched for is ranked as ``Memory.search`` ranks. Of an ``AsyncMemory`` there are only the methods that begin with
    an a. Raises ``InvalidInput``.
    """

    def __init__(self, memory: Either, *, scope: Scope | None = None) -> None:
        require_memory(memory)
        self._memory = memory
        self._scope = scope or memory.scope
        self._words: OrderedDict[bytes, str] = OrderedDict()
        self._writing = asyncio.Lock()

    def embedder(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of texts, as CrewAI's ``Memory`` takes its embedder. Raises ``EmbedderUnavailable``."""
        return wait(self._memory, partial(self._embed, list(texts)))

    # ------------------------------------------------------------------------------------------- what CrewAI asks for

    def save(self, records: list[MemoryRecord]) -> None:
        """Keep records, in one transaction, and in a second one those whose ids were ever deleted.

        Raises ``InvalidInput`` for metadata that is no JSON.
        """
        wait(self._memory, partial(self._save, records))

    async def asave(self, records: list[MemoryRecord]) -> None:
        """The same, awaited."""
        await reach(self._memory, partial(self._save, records))

    def update(self, record: MemoryRecord) -> None:
        """Replace the record of that id, as a new version of it."""
        self.save([record])

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> Found:
        """The records that answer what a vector of ``embedder`` stands for, best first, with scores from 0 to 1.

        Raises ``InvalidInput`` for a vector of another embedder.
        """
        fits = _Fits(scope_prefix, categories, metadata_filter)
        return wait(self._memory, partial(self._search, query_embedding, fits, limit, min_score))

    async def asearch(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> Found:
        """The same, awaited."""
        fits = _Fits(scope_prefix, categories, metadata_filter)
        return await reach(self._memory, partial(self._search, query_embedding, fits, limit, min_score))

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Destroy the records that are all of this, or all records; how many."""
        fits = _Fits(scope_prefix, categories, metadata_filter, older_than, record_ids)
        return wait(self._memory, partial(self._delete, fits))

    async def adelete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """The same, awaited."""
        fits = _Fits(scope_prefix, categories, metadata_filter, older_than, record_ids)
        return await reach(self._memory, partial(self._delete, fits))

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """The record of an id."""
        return wait(self._memory, partial(self._get, record_id))

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """The records of a scope and those below it, the newest first."""
        if limit < 0 or offset < 0:
            raise InvalidInput(f"limit={limit}, offset={offset}: both are 0 or more")
        newest = sorted(self._records(scope_prefix), key=lambda record: in_utc(record.created_at), reverse=True)
        return newest[offset : offset + limit]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """How much there is in a scope and below it, of what categories, and since when."""
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
        """The scopes right below one, sorted."""
        return _children(parent, self._records(parent))

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """How many records of a scope and below it are of each category."""
        counts: dict[str, int] = {}
        for record in self._records(scope_prefix):
            for name in dict.fromkeys(record.categories):
                counts[name] = counts.get(name, 0) + 1
        return counts

    def count(self, scope_prefix: str | None = None) -> int:
        """How many records a scope has, with those below it."""
        return len(self._records(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Destroy the records of a scope and those below it, or all; nothing else of the memory."""
        self.delete(scope_prefix)

    # -------------------------------------------------------------------------------------------- in the memory's loop

    def _records(self, scope_prefix: str | None) -> list[MemoryRecord]:
        return wait(self._memory, partial(self._all, _Fits(scope_prefix)))

    async def _all(self, fits: _Fits, memory: AsyncMemory) -> list[MemoryRecord]:
        found = [await self._record(memory, note) for note in await self._fitting(fits, memory)]
        return [record for record in found if record is not None]

    async def _get(self, id: str, memory: AsyncMemory) -> MemoryRecord | None:
        note = await first(memory, self._scope, {ID: id})
        return None if note is None else await self._record(memory, note)

    async def _record(self, memory: AsyncMemory, note: Note) -> MemoryRecord | None:
        """The record of a note; None if somebody deleted it just now."""
        record: Any = note.metadata[RECORD]
        if CONTENT in record:
            return MemoryRecord.model_validate(record)
        content = await payload_of(memory, self._scope, note)
        return None if content is None else MemoryRecord.model_validate({**record, CONTENT: content})

    async def _fitting(self, fits: _Fits, memory: AsyncMemory, everything: bool = False) -> list[Note]:
        found = notes(memory, self._scope, fits.asked, everything=everything)
        return [note async for note in found if fits.note(note)]

    async def _save(self, records: Sequence[MemoryRecord], memory: AsyncMemory) -> None:
        events = {record.id: _event(_json(record), record.created_at) for record in records}
        async with self._writing:
            await write(memory, self._scope, events, lambda id: {ID: id})

    async def _delete(self, fits: _Fits, memory: AsyncMemory) -> int:
        going = await self._fitting(fits, memory, everything=True)
        return sum([await destroy(memory, self._scope, note) for note in going])

    async def _embed(self, texts: list[str], memory: AsyncMemory) -> list[list[float]]:
        rows = await _vectors(texts, memory)
        for text, row in zip(texts, rows, strict=True):
            self._words[row.tobytes()] = text
            self._words.move_to_end(row.tobytes())
        while len(self._words) > ASKED:
            self._words.popitem(last=False)
        told: list[list[float]] = rows.tolist()
        return told

    async def _search(
        self, vector: Sequence[float], fits: _Fits, limit: int, min_score: float, memory: AsyncMemory
    ) -> Found:
        if limit < 1:
            return []
        asked = np.asarray(vector, np.float32)
        words = self._words.get(asked.tobytes())
        if words is None:
            found = await self._nearest(asked, fits, memory)
        else:
            hits = await ranked(memory, self._scope, words, fits.asked, limit, fits.look, sieves=fits.sieves)
            told = [(await self._record(memory, note), score) for note, score in hits]
            found = [(record, score) for record, score in told if record is not None]
        return [(record, score) for record, score in found if score >= min_score][:limit]

    async def _nearest(self, asked: Any, fits: _Fits, memory: AsyncMemory) -> Found:
        """All records that fit by the cosine of their vectors with one whose words nobody knows."""
        records = await self._all(fits, memory)
        if not records:
            return []
        rows = await _vectors([record.content for record in records], memory)
        length = float(np.linalg.norm(asked))
        if asked.shape != rows.shape[1:] or not length > 0:
            raise InvalidInput(
                f"a vector of {asked.size} numbers is not of the memory's embedder, which makes {rows.shape[1]}: "
                "hand CrewAI's Memory the storage's own, Memory(storage=storage, embedder=storage.embedder)"
            )
        scores = np.clip(rows @ asked / length, 0.0, 1.0)
        best = np.argsort(-scores, kind="stable")
        return [(records[place], float(scores[place])) for place in best]


class _Fits:
    """What records are wanted: the filter that the memory is ``asked`` for, and what has to be looked at afterwards."""

    def __init__(
        self,
        scope_prefix: str | None = None,
        categories: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        older_than: datetime | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        self.asked = _below(_labels(scope_prefix or "/"))
        self._categories = set(categories or ())
        self._metadata = plain("metadata_filter", metadata or {})
        self._older_than = None if older_than is None else in_utc(older_than)
        self._ids = None if ids is None else set(ids)
        if len(self._categories) == 1:
            self.asked |= _of_category(*self._categories)
        if self._ids is not None and len(self._ids) == 1:
            self.asked |= {ID: next(iter(self._ids))}
        self.sieves = len(self._categories) > 1 or bool(self._metadata)

    def note(self, note: Note) -> bool:
        record: Any = note.metadata[RECORD]
        return (
            (not self._categories or not self._categories.isdisjoint(record["categories"]))
            and all(record["metadata"].get(name) == wanted for name, wanted in self._metadata.items())
            and (self._ids is None or record["id"] in self._ids)
            and (self._older_than is None or in_utc(datetime.fromisoformat(record["created_at"])) < self._older_than)
        )

    async def look(self, note: Note) -> Note | None:
        return note if self.note(note) else None


async def _vectors(texts: list[str], memory: AsyncMemory) -> Any:
    """(n, d) float32 unit rows of the memory's embedder."""
    if not isinstance(memory, AsyncMemory):
        raise InvalidInput("a memory on a server makes no vectors: keep CrewAI's in one that is opened here")
    engine, _ = await memory._use(None)
    return np.ascontiguousarray(await engine.vectors.embedder.embed(texts), np.float32)


def _json(record: MemoryRecord) -> dict[str, Any]:
    """A record as JSON, its times as they are, without its vector. Raises ``InvalidInput``."""
    told = record.model_dump(exclude={"embedding"})
    times = {name: told[name].isoformat() for name in ("created_at", "last_accessed")}
    return {name: plain(name, value) for name, value in (told | times).items()}


def _event(record: dict[str, Any], created_at: datetime) -> Event:
    labels = _labels(record["scope"])
    content = record[CONTENT]
    text = storable_text(content)  # what is searched; the record itself stays exact
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
        "payload": content if is_long(text) or not text.strip() else None,  # an event has to say something
        "occurred_at": created_at,
        "metadata": metadata,
    })  # fmt: skip


def _labels(scope: str) -> list[str]:
    return [label for label in scope.split("/") if label]


def _path(labels: Sequence[str]) -> str:
    return "/" + "/".join(labels)


def _below(labels: Sequence[str]) -> dict[str, Any]:
    """The filter for records of a scope and those below it; of ``[]``: for all records, and nothing else."""
    return {f"scope {len(labels)}": list(labels)}


def _of_category(name: str) -> dict[str, Any]:
    return {f"category {name}": True}


def _children(parent: str, records: Sequence[MemoryRecord]) -> list[str]:
    above = _labels(parent)
    below = (_labels(record.scope) for record in records)
    return sorted({_path(labels[: len(above) + 1]) for labels in below if len(labels) > len(above)})
