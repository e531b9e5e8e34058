"""Graphs of Graphiti as JSON: episodes, entities and facts, exported from its Neo4j by a query.

Taken are rows as the query in docs/how-to/import.md makes them, Neo4j Browser's export of nodes and relationships,
the lines of ``apoc.export.json``, and Graphiti's own models as they dump themselves.

Each episode is an event at its ``valid_at``; of one that is a message the speaker is the role. Each fact (a RELATES_TO
edge) is an event at its ``valid_at``, with "(until …)" behind it where it has an ``invalid_at``; each entity of which
something is told is one as well, with its name as the title, so that what names it is linked to it. Ids are Graphiti's.
``was`` in the metadata says "Graphiti episode", "fact" or "entity". When Graphiti wrote something down
(``created_at``) is metadata, never the time of an event. Communities and the edges that only connect are left out:
they are made anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone, tzinfo
from pathlib import Path
from typing import Any

from zettel.model import Source

from . import Record
from .dumps import WAS, flat, records
from .json_keys import keys_in
from .json_stream import JsonStream
from .records import ContentKeys, record, rejected
from .written_times import moment

name = "graphiti"
local_times = True
"""Its times have a zone, but for those of programs that leave it out."""

_WRAPPERS = frozenset(
    "data edges entities entity_edges entity_nodes episodes facts nodes records relationships results rels".split()
)
_MARK = "uuid"  # what each of Graphiti's own has, whose facts list their episodes
_MARKS = {"fact", "source_description", "entity_edges", "summary"}
_TOLD = ("group_id", "created_at", "expired_at", "invalid_at", "source_description")
_SPOKEN = re.compile(r"([^\n:]{1,80}?)(?:\s*\((?:user|assistant|human|ai|system)\))?:[ \t]+(\S.*)", re.DOTALL)
_NEXT_SPEAKER = re.compile(r"^[^\n:]{1,80}:[ \t]", re.MULTILINE)


def sniff(path: Path, head: bytes) -> bool:
    """JSON with the group and the unique id that all of Graphiti's have, and what only they tell."""
    keys = keys_in(head)
    return keys >= {"group_id", "uuid"} and not keys.isdisjoint(_MARKS)


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """Episodes, facts and entities in their order; one that cannot be read is rejected.

    Raises ``BadRecord`` where no more can be read.
    """
    keys = ContentKeys()
    with path.open("rb") as stream:
        for place, _, item in records(JsonStream(stream, str(path)), _WRAPPERS, mark=_MARK):
            source = Source(file=str(path), position=place)
            if isinstance(item, dict):
                told = _event(_properties(item), source, zone, keys)
                if told is not None:
                    yield told
            else:
                yield rejected(source, "expected an object with a node, an edge or a row")


def _properties(item: dict[str, Any]) -> dict[str, Any]:
    """What is told of a node or an edge, whatever is around it; of an edge also the names of its ends."""
    while len(item) == 1 and isinstance(inner := next(iter(item.values())), dict):  # a row of one column
        item = inner
    inner = item.get("properties")
    if not isinstance(inner, dict):
        return item
    ends = {f"{end}_name": _name(item.get(side)) for end, side in (("source", "start"), ("target", "end"))}
    labels = item.get("labels")
    return {**inner, **{key: value for key, value in ends.items() if value}, **({"labels": labels} if labels else {})}


def _name(end: Any) -> Any:
    told = end.get("properties") if isinstance(end, dict) else None
    return told.get("name") if isinstance(told, dict) else None


def _event(told: Mapping[str, Any], source: Source, zone: tzinfo, keys: ContentKeys) -> Record | None:
    """None for what is neither an episode nor a fact nor an entity of which something is told."""
    fields: dict[str, Any]
    labels = told.get("labels")
    if told.get("fact"):
        fields = _fact(told, zone)
    elif told.get("content"):
        fields = _episode(told)
    elif told.get("summary") and not (isinstance(labels, list) and "Community" in labels):
        fields = _entity(told)
    else:
        return None
    valid_at = told.get("valid_at")
    when = _moment(valid_at, zone)
    if when is None and valid_at:
        return rejected(source, f"valid_at: no time: {str(valid_at)[:40]!r}")
    uuid = told.get("uuid")
    metadata = {**flat({field: told.get(field) for field in _TOLD}), **fields.pop("metadata")}
    fields |= {"id": str(uuid) if uuid else None, "occurred_at": when, "metadata": metadata}
    return record(fields, source, keys)


def _episode(told: Mapping[str, Any]) -> dict[str, Any]:
    content, name = told["content"], told.get("name")
    kind = told.get("source")
    metadata = {WAS: "Graphiti episode", **flat({"source": kind, "name": name})}
    if kind == "text":
        return {"content": content, "title": name or None, "metadata": metadata}
    spoken = _SPOKEN.fullmatch(content) if kind == "message" and isinstance(content, str) else None
    if spoken is None or _NEXT_SPEAKER.search(spoken[2]):  # nobody, or several
        return {"content": content, "metadata": metadata}
    return {"content": spoken[2], "role": spoken[1].strip(), "metadata": metadata}


def _fact(told: Mapping[str, Any], zone: tzinfo) -> dict[str, Any]:
    content = told["fact"]
    ended = _moment(told.get("invalid_at"), zone)
    if ended is not None and isinstance(content, str):
        content = f"{content} (until {ended:%Y-%m-%d})"
    names = {"relation": told.get("name"), "from": told.get("source_name"), "to": told.get("target_name")}
    episodes = told.get("episodes")
    payload = {"episodes": episodes} if isinstance(episodes, list) and episodes else None
    return {"content": content, "payload": payload, "metadata": {WAS: "Graphiti fact", **flat(names)}}


def _entity(told: Mapping[str, Any]) -> dict[str, Any]:
    labels = told.get("labels")
    kinds = [label for label in labels if label != "Entity"] if isinstance(labels, list) else None
    metadata = {WAS: "Graphiti entity", **flat({"labels": kinds})}
    return {"content": told["summary"], "title": told.get("name") or None, "metadata": metadata}


def _moment(value: Any, zone: tzinfo) -> datetime | None:
    # Neo4j writes the zone's name behind the offset: 2024-05-01T09:00:00+02:00[Europe/Oslo].
    return moment(value.partition("[")[0] if isinstance(value, str) else value, zone)
