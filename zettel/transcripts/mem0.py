"""Memories of mem0 as JSON: what its API returns for all of them, and what ``get_all`` does.

::

    json.dump(memory.get_all(user_id="ann"), file)

A memory is a fact that mem0's model wrote. Each becomes an event with the memory's id and the time when it was first
written (``created_at``); a memory that was written anew since has the same id, and is a revision. Whom it is about is
the role (``actor_id``, else the user or the agent), a run is the session, and the rest is metadata, in which ``was``
says "mem0 memory". Relations are events as well ("mem0 relation"); of them no time is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timezone, tzinfo
from pathlib import Path
from typing import Any

from zettel.model import Source

from . import Record
from .dumps import WAS, flat, records
from .json_keys import keys_in
from .json_stream import JsonStream
from .records import ContentKeys, record, rejected
from .written_times import moment

name = "mem0"
local_times = True
"""Its times have a zone, but for those of programs that leave it out."""

_WRAPPERS = frozenset({"results", "relations", "memories"})
_OWNERS = ("user_id", "agent_id", "run_id", "app_id", "actor_id")
_TOLD = (*_OWNERS, "role", "categories", "updated_at", "expiration_date")


def sniff(path: Path, head: bytes) -> bool:
    """JSON whose first record has a memory, an id, when it was made and whose it is."""
    keys = keys_in(head)
    return keys >= {"memory", "id", "created_at"} and not keys.isdisjoint({"hash", *_OWNERS})


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """The memories and relations in their order; one that cannot be read is rejected.

    Raises ``BadRecord`` where no more can be read.
    """
    keys = ContentKeys()
    with path.open("rb") as stream:
        for place, key, item in records(JsonStream(stream, str(path)), _WRAPPERS):
            source = Source(file=str(path), position=place)
            if not isinstance(item, dict):
                yield rejected(source, "expected an object with a memory")
            elif key == "relations":
                yield _relation(item, source, keys)
            elif "memory" in item:
                yield _memory(item, source, zone, keys)
            elif set(item) - {"count", "next", "previous"}:  # a page without memories has only these
                yield rejected(source, "no memory: the object has no field of that name")


def _memory(item: dict[str, Any], source: Source, zone: tzinfo, keys: ContentKeys) -> Record:
    created_at = item.get("created_at") or item.get("updated_at")
    when = moment(created_at, zone)
    if when is None and created_at:
        return rejected(source, f"no time: {str(created_at)[:40]!r}")
    given = item.get("metadata")
    own = given if isinstance(given, dict) else {}
    metadata = {**flat(own), **flat({field: item.get(field) for field in _TOLD}), WAS: "mem0 memory"}
    deep = {key: value for key, value in own.items() if key not in metadata and value not in (None, "", [], {})}
    fields = {
        "content": item["memory"],
        "id": str(item["id"]) if item.get("id") else None,
        "role": _role(item),
        "occurred_at": when,
        "session": str(item["run_id"]) if item.get("run_id") else None,
        "metadata": metadata,
        "payload": {"metadata": deep} if deep else None,
    }
    return record(fields, source, keys)


def _role(item: dict[str, Any]) -> str | None:
    """Whom it is about: a user by name says more than "user"."""
    whose = ("agent_id", "user_id") if item.get("role") == "assistant" else ("user_id", "agent_id")
    told = (item.get(field) for field in ("actor_id", *whose, "role"))
    return next((str(value) for value in told if value), None)


def _relation(item: dict[str, Any], source: Source, keys: ContentKeys) -> Record:
    parts = [item.get(part) for part in ("source", "relationship", "target")]
    if parts[2] is None:
        parts[2] = item.get("destination")
    if not all(isinstance(part, str) and part for part in parts):
        return rejected(source, "expected a relation with source, relationship and target")
    said = " ".join(str(part).replace("_", " ") for part in parts)
    return record({"content": said, "metadata": {WAS: "mem0 relation"}}, source, keys)
