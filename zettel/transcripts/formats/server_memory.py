"""The ``memory.json`` of MCP's reference server ``server-memory``: JSON lines with entities and relations.

::

    {"type": "entity", "name": "John_Smith", "entityType": "person", "observations": ["Speaks fluent Spanish"]}
    {"type": "relation", "from": "John_Smith", "to": "Anthropic", "relationType": "works_at"}

An entity, each of its observations, and a relation are one event each, of the assistant and without a time. The texts
name the entities, so that links connect them. The metadata contains the original fields, and ``tool`` is
"server-memory". ``zettel mcp --knowledge-graph`` writes the same events.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zettel.model import Source
from zettel.transcripts import Record, Rejected
from zettel.transcripts.parsing.json_keys import keys_in
from zettel.transcripts.parsing.json_records import json_lines
from zettel.transcripts.records import ContentKeys, record, rejected

name = "server-memory"

ENTITY_FIELDS = ("name", "entityType")
OBSERVATION_FIELDS = ("entityName",)
RELATION_FIELDS = ("from", "to", "relationType")
_MARKS = ({"type", "entityType", "observations"}, {"type", "relationType", "from", "to"})


def sniff(path: Path, head: bytes) -> bool:
    """Recognise JSON with the keys of an entity or of a relation."""
    keys = keys_in(head)
    return any(marks <= keys for marks in _MARKS)


def read(path: Path) -> Iterator[Record]:
    """Yield entities, observations and relations in order; a damaged line is rejected."""
    keys = ContentKeys()
    with path.open("rb") as file:
        for line in json_lines(file, str(path)):
            if isinstance(line, Rejected):
                yield line
            else:
                yield from _records(line.value, line.source, keys)


def _records(item: Any, source: Source, keys: ContentKeys) -> Iterator[Record]:
    kind = item.get("type") if isinstance(item, dict) else None
    if kind == "relation" and _has_texts(item, RELATION_FIELDS):
        yield record(relation_event(*(item[field] for field in RELATION_FIELDS)), source, keys)
    elif kind == "entity" and _has_texts(item, ENTITY_FIELDS) and _are_texts(item.get("observations", [])):
        yield record(entity_event(item["name"], item["entityType"]), source, keys)
        for observation in dict.fromkeys(item.get("observations", [])):
            yield record(observation_event(item["name"], observation), source, keys)
    else:
        reason = "expected an entity with name, entityType and observations, or a relation with from, to, relationType"
        yield rejected(source, reason)


def _has_texts(item: dict[str, Any], fields: tuple[str, ...]) -> bool:
    return all(isinstance(item.get(field), str) for field in fields)


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def entity_event(entity: str, kind: str) -> dict[str, Any]:
    """Return the fields of an entity's event; texts that name the entity are linked to its title."""
    title = readable(entity)
    return _event(f"{title} ({readable(kind)})", "entity", name=entity, entityType=kind) | {"title": title or None}


def observation_event(entity: str, observation: str) -> dict[str, Any]:
    """Return the fields of an observation's event, which ``observation_of`` reverses."""
    return _event(f"{_head(entity)}{observation}", "observation", entityName=entity)


def relation_event(start: str, end: str, relation: str) -> dict[str, Any]:
    """Return the fields of a relation's event."""
    text = " ".join(map(readable, (start, relation, end)))
    return _event(text, "relation", **{"from": start, "to": end, "relationType": relation})


def observation_of(entity: str, content: str) -> str:
    """Return the observation in the content of a note; a person may have changed it."""
    return content.removeprefix(_head(entity))


def _head(entity: str) -> str:
    """Return the beginning of an observation's content: the entity."""
    return f"{readable(entity)}: "


def readable(name: str) -> str:
    """Return a name such as ``John_Smith`` or ``works_at`` as words."""
    return name.replace("_", " ")


def _event(content: str, kind: str, **fields: str) -> dict[str, Any]:
    return {"content": content, "role": "assistant", "metadata": {"tool": name, "type": kind, **fields}}
