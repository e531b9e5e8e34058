"""JSON dumps of other memories: their records, whatever the dump wraps them in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from .json_stream import JsonStream

MAX_VALUE = 300
"""Longest text that becomes metadata, in characters."""
MAX_ITEMS = 50
"""Most items of a list that becomes metadata."""

WAS = "was"
"""The metadata key that says what an event was in the memory that it comes from."""

Flat: TypeAlias = str | int | float | bool | list[str]


def records(
    json: JsonStream, wrappers: frozenset[str], fields: frozenset[str] | None = None, mark: str | None = None
) -> Iterator[tuple[str, str, Any]]:
    """(place, key, record) of a dump: an array, an object with arrays or objects under ``wrappers``, or JSON lines.

    With the ``fields`` that a record itself has, objects under other keys are records too, and the key is given; else
    it is that of the wrapper, or "". Raises ``BadRecord`` where no more can be read.
    """
    number = 0
    while sign := json.peek():
        if sign == "[":
            for item in json.items():
                for key, inner_item in _unwrapped(item, wrappers, mark):
                    number += 1
                    yield str(number), key, inner_item
        elif sign == "{":
            own: dict[str, Any] = {}
            wraps = False
            for key in json.members():
                inner = json.peek()
                if key in wrappers and inner == "[" and mark not in own:
                    wraps = True
                    for item in json.items():
                        number += 1
                        yield str(number), key, item
                elif key in wrappers and inner == "{":
                    wraps = True
                    for name in json.members():
                        number += 1
                        yield str(number), name, json.value()
                elif fields is not None and key not in fields and inner == "{":
                    wraps = True
                    number += 1
                    yield str(number), key, json.value()
                else:
                    own[key] = json.value()
            if not wraps:
                number += 1
                yield str(number), "", own
        else:
            number += 1
            yield str(number), "", json.value()


def _unwrapped(item: Any, wrappers: frozenset[str], mark: str | None) -> Iterator[tuple[str, Any]]:
    """The records of a page, where an array is one of pages; else the item itself."""
    wraps = isinstance(item, dict) and mark not in item
    pages = [key for key in item if key in wrappers and isinstance(item[key], list)] if wraps else []
    for key in pages:
        for inner in item[key]:
            yield key, inner
    if not pages:
        yield "", item


def flat(values: Mapping[str, Any]) -> dict[str, Flat]:
    """Those that metadata can hold: short texts, numbers, and short lists of them; nothing that says nothing."""
    found: dict[str, Flat] = {}
    for key, value in values.items():
        if isinstance(value, list):
            texts = [item for item in value if isinstance(item, (str, int)) and _is_short(item)]
            if texts and len(texts) == len(value) <= MAX_ITEMS:
                found[key] = [str(item) for item in texts]
        elif isinstance(value, (str, int, float)) and _is_short(value):
            found[key] = value
    return found


def _is_short(value: str | int | float) -> bool:
    return not isinstance(value, str) or 0 < len(value) <= MAX_VALUE
