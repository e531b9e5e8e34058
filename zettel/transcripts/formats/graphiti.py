"""Graphs of Graphiti as JSON: episodes, entities and facts, exported from its Neo4j by a query.

The reader accepts rows of the query in docs/how-to/import.md, Neo4j Browser's export of nodes and relationships, the
lines of ``apoc.export.json``, and JSON dumps of Graphiti's own models.

Each episode is an event at its ``valid_at``; a message has a speaker. Each fact (a RELATES_TO edge) is an event at its
``valid_at``, followed by "(until …)" if it has an ``invalid_at``. Each entity with a summary is an event with its name
as the title, so that texts with this name are linked to it. Ids are Graphiti's. ``was`` in the metadata is "Graphiti
episode", "Graphiti fact" or "Graphiti entity". The time of recording (``created_at``) is metadata, never the time of
an event. Communities and other edges are skipped, because zettel derives its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone, tzinfo
from pathlib import Path
from typing import Any

from zettel.model import Source
from zettel.transcripts import Record
from zettel.transcripts.parsing.json_keys import keys_in
from zettel.transcripts.parsing.json_values import as_dict, as_list, present
from zettel.transcripts.parsing.written_times import moment
from zettel.transcripts.records import ContentKeys, record, rejected

from .memory_dumps import ORIGIN_KEY, dump_records, flat

name = "graphiti"
local_times = True
"""Some programs write times without a zone."""

_WRAPPERS = frozenset(
    "data edges entities entity_edges entity_nodes episodes facts nodes records relationships results rels".split()
)
_MARK = "uuid"  # a key of each record: a fact's list of episodes contains no records
_MARKS = {"fact", "source_description", "entity_edges", "summary"}
_METADATA_FIELDS = ("group_id", "created_at", "expired_at", "invalid_at", "source_description")
_SPOKEN = re.compile(r"([^\n:]{1,80}?)(?:\s*\((?:user|assistant|human|ai|system)\))?:[ \t]+(\S.*)", re.DOTALL)
_NEXT_SPEAKER = re.compile(r"^[^\n:]{1,80}:[ \t]", re.MULTILINE)


def sniff(path: Path, head: bytes) -> bool:
    """Recognise JSON with Graphiti's keys ``group_id`` and ``uuid``, and a key of its own."""
    keys = keys_in(head)
    return keys >= {"group_id", "uuid"} and not keys.isdisjoint(_MARKS)


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """Yield episodes, facts and entities in order. Raises ``BadRecord`` if the rest cannot be read."""
    keys = ContentKeys()
    for source, _, item in dump_records(path, _WRAPPERS, mark=_MARK):
        if not isinstance(item, dict):
            yield rejected(source, "expected an object with a node, an edge or a row")
        elif (event := _event(_properties(item), source, zone, keys)) is not None:
            yield event


def _properties(item: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of a node or an edge, for an edge with the names of its ends."""
    while len(item) == 1 and isinstance(inner := next(iter(item.values())), dict):  # a row of one column
        item = inner
    inner = item.get("properties")
    if not isinstance(inner, dict):
        return item
    ends = {f"{end}_name": _name(item.get(side)) for end, side in (("source", "start"), ("target", "end"))}
    labels = item.get("labels")
    return {**inner, **present({**ends, "labels": labels})}


def _name(end: Any) -> Any:
    return as_dict(as_dict(end).get("properties")).get("name")


def _event(item: Mapping[str, Any], source: Source, zone: tzinfo, keys: ContentKeys) -> Record | None:
    """Return the event of an episode, a fact or an entity with a summary; None for other items."""
    if item.get("fact"):
        fields = _fact(item, zone)
    elif item.get("content"):
        fields = _episode(item)
    elif item.get("summary") and "Community" not in as_list(item.get("labels")):
        fields = _entity(item)
    else:
        return None
    valid_at = item.get("valid_at")
    when = _moment(valid_at, zone)
    if when is None and valid_at:
        return rejected(source, f"valid_at: {str(valid_at)[:40]!r} is not a time")
    uuid = item.get("uuid")
    metadata = {**flat({field: item.get(field) for field in _METADATA_FIELDS}), **fields.pop("metadata")}
    fields |= {"id": str(uuid) if uuid else None, "occurred_at": when, "metadata": metadata}
    return record(fields, source, keys)


def _episode(item: Mapping[str, Any]) -> dict[str, Any]:
    content, name = item["content"], item.get("name")
    kind = item.get("source")
    metadata = {ORIGIN_KEY: "Graphiti episode", **flat({"source": kind, "name": name})}
    if kind == "text":
        return {"content": content, "title": name or None, "metadata": metadata}
    spoken = _SPOKEN.fullmatch(content) if kind == "message" and isinstance(content, str) else None
    if spoken is None or _NEXT_SPEAKER.search(spoken[2]):  # no speaker, or several
        return {"content": content, "metadata": metadata}
    return {"content": spoken[2], "speaker": spoken[1].strip(), "metadata": metadata}


def _fact(item: Mapping[str, Any], zone: tzinfo) -> dict[str, Any]:
    content = item["fact"]
    ended = _moment(item.get("invalid_at"), zone)
    if ended is not None and isinstance(content, str):
        content = f"{content} (until {ended:%Y-%m-%d})"
    names = {"relation": item.get("name"), "from": item.get("source_name"), "to": item.get("target_name")}
    episodes = as_list(item.get("episodes"))
    payload = {"episodes": episodes} if episodes else None
    return {"content": content, "payload": payload, "metadata": {ORIGIN_KEY: "Graphiti fact", **flat(names)}}


def _entity(item: Mapping[str, Any]) -> dict[str, Any]:
    kinds = [label for label in as_list(item.get("labels")) if label != "Entity"]
    metadata = {ORIGIN_KEY: "Graphiti entity", **flat({"labels": kinds})}
    return {"content": item["summary"], "title": item.get("name") or None, "metadata": metadata}


def _moment(value: Any, zone: tzinfo) -> datetime | None:
    # Neo4j writes the zone's name behind the offset: 2024-05-01T09:00:00+02:00[Europe/Oslo].
    return moment(value.partition("[")[0] if isinstance(value, str) else value, zone)
