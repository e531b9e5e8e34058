"""Memories of mem0 as JSON, as its API and ``get_all`` return them.

::

    json.dump(memory.get_all(filters={"user_id": "ann"}, top_k=100_000), file)

A memory is a fact that mem0's model wrote. It becomes an event with the memory's id and the time of its creation
(``created_at``). An updated memory has the same id, so it is a revision. The speaker is ``actor_id``, else the user or
the agent, and the session is the run. A memory with an ``expiration_date`` expires after this day. The rest is
metadata, in which ``was`` is "mem0 memory". Relations are events without a time ("mem0 relation").
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

from zettel.model import Source
from zettel.transcripts import Record
from zettel.transcripts.parsing.json_keys import keys_in
from zettel.transcripts.parsing.json_values import as_dict
from zettel.transcripts.parsing.written_times import moment
from zettel.transcripts.records import ContentKeys, record, rejected

from .memory_dumps import MEM0_MEMORY, ORIGIN_KEY, dump_records, flat

name = "mem0"
local_times = True
"""Some programs write times without a zone."""

_WRAPPERS = frozenset({"results", "relations", "memories"})
_OWNERS = ("user_id", "agent_id", "run_id", "app_id", "actor_id")
_METADATA_FIELDS = (*_OWNERS, "role", "categories", "updated_at", "expiration_date")


def sniff(path: Path, head: bytes) -> bool:
    """Recognise JSON with a memory, its id, its time of creation and its owner."""
    keys = keys_in(head)
    return keys >= {"memory", "id", "created_at"} and not keys.isdisjoint({"hash", *_OWNERS})


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """Yield the memories and relations in order. Raises ``BadRecord`` if the rest cannot be read."""
    keys = ContentKeys()
    for source, key, item in dump_records(path, _WRAPPERS):
        if not isinstance(item, dict):
            yield rejected(source, "expected an object with a memory")
        elif key == "relations":
            yield _relation(item, source, keys)
        elif "memory" in item:
            yield _memory(item, source, zone, keys)
        elif item.keys() - {"count", "next", "previous"}:  # a page without memories has only these
            yield rejected(source, "no memory: the object has no field of that name")


def _memory(item: dict[str, Any], source: Source, zone: tzinfo, keys: ContentKeys) -> Record:
    created_at = item.get("created_at") or item.get("updated_at")
    when = moment(created_at, zone)
    if when is None and created_at:
        return rejected(source, f"created_at: {str(created_at)[:40]!r} is not a time")
    own = as_dict(item.get("metadata"))
    metadata = {**flat(own), **flat({field: item.get(field) for field in _METADATA_FIELDS}), ORIGIN_KEY: MEM0_MEMORY}
    nested = {key: value for key, value in own.items() if key not in metadata and value not in (None, "", [], {})}
    fields = {
        "content": item["memory"],
        "id": str(item["id"]) if item.get("id") else None,
        "speaker": _speaker(item),
        "occurred_at": when,
        "expires_at": _expiry(item.get("expiration_date"), zone),
        "session": str(item["run_id"]) if item.get("run_id") else None,
        "metadata": metadata,
        "payload": {"metadata": nested} if nested else None,
    }
    return record(fields, source, keys)


def _expiry(written: Any, zone: tzinfo) -> datetime | None:
    """Return when a memory expires; mem0 writes a day, at whose end it does."""
    when = moment(written, zone)
    is_day = isinstance(written, str) and len(written.strip()) == len("2024-05-01")
    return when + timedelta(days=1) if when is not None and is_day else when


def _speaker(item: dict[str, Any]) -> str | None:
    owner_ids = ("agent_id", "user_id") if item.get("role") == "assistant" else ("user_id", "agent_id")
    candidates = (item.get(field) for field in ("actor_id", *owner_ids, "role"))
    return next((str(value) for value in candidates if value), None)


def _relation(item: dict[str, Any], source: Source, keys: ContentKeys) -> Record:
    parts = [item.get(part) for part in ("source", "relationship", "target")]
    if parts[2] is None:
        parts[2] = item.get("destination")
    if not all(isinstance(part, str) and part for part in parts):
        return rejected(source, "expected a relation with source, relationship and target")
    sentence = " ".join(str(part).replace("_", " ") for part in parts)
    return record({"content": sentence, "metadata": {ORIGIN_KEY: "mem0 relation"}}, source, keys)
