"""Records of JSON dumps of other memory systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from zettel.model import Source
from zettel.transcripts.parsing.json_stream import JsonStream

MAX_VALUE = 300
"""Longest text that becomes metadata, in characters."""
MAX_ITEMS = 50
"""Most items of a list that becomes metadata."""

ORIGIN_KEY = "was"
"""The metadata key of an event's kind in its original memory."""

MEM0_MEMORY = "mem0 memory"
"""Its value for a memory of mem0."""

Flat: TypeAlias = str | int | float | bool | list[str]


def dump_records(
    path: Path, wrappers: frozenset[str], fields: frozenset[str] | None = None, mark: str | None = None
) -> Iterator[tuple[Source, str, Any]]:
    """Yield (source, key, record) of a dump: an array, JSON lines, or an object with records under ``wrappers``.

    With the names of a record's ``fields``, objects under other keys are records too. The key is theirs or that of the
    wrapper, or "". An object with the key ``mark`` is a record. Raises ``BadRecord`` if the rest cannot be read.
    """
    with path.open("rb") as stream:
        items = _items(JsonStream(stream, str(path)), wrappers, fields, mark)
        for place, (key, value) in enumerate(items, start=1):
            yield Source(file=str(path), position=str(place)), key, value


def _items(
    json: JsonStream, wrappers: frozenset[str], fields: frozenset[str] | None, mark: str | None
) -> Iterator[tuple[str, Any]]:
    while sign := json.peek():
        if sign == "[":
            for item in json.items():
                yield from _unwrapped(item, wrappers, mark)
        elif sign == "{":
            own: dict[str, Any] = {}
            is_wrapper = False
            for key in json.members():
                inner = json.peek()
                if key in wrappers and inner == "[" and mark not in own:
                    is_wrapper = True
                    yield from ((key, item) for item in json.items())
                elif key in wrappers and inner == "{":
                    is_wrapper = True
                    yield from ((name, json.value()) for name in json.members())
                elif fields is not None and key not in fields and inner == "{":
                    is_wrapper = True
                    yield key, json.value()
                else:
                    own[key] = json.value()
            if not is_wrapper:
                yield "", own
        else:
            yield "", json.value()


def _unwrapped(item: Any, wrappers: frozenset[str], mark: str | None) -> Iterator[tuple[str, Any]]:
    """Yield the records of an item that is a page of records; else the item itself."""
    is_object = isinstance(item, dict) and mark not in item
    pages = [key for key in item if key in wrappers and isinstance(item[key], list)] if is_object else []
    for key in pages:
        yield from ((key, inner) for inner in item[key])
    if not pages:
        yield "", item


def flat(values: Mapping[str, Any]) -> dict[str, Flat]:
    """Return the values that fit into metadata: short texts, numbers, and short lists of them; no empty values."""
    metadata: dict[str, Flat] = {}
    for key, value in values.items():
        if isinstance(value, list):
            texts = [item for item in value if isinstance(item, (str, int)) and _is_short(item)]
            if texts and len(texts) == len(value) <= MAX_ITEMS:
                metadata[key] = [str(item) for item in texts]
        elif isinstance(value, (str, int, float)) and _is_short(value):
            metadata[key] = value
    return metadata


def _is_short(value: str | int | float) -> bool:
    return not isinstance(value, str) or 0 < len(value) <= MAX_VALUE
