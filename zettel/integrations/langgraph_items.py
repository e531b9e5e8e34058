"""Maps items of LangGraph's store to events and notes, and evaluates its filters.

An item is one event, and each ``put`` of its key is a new version of its note. The metadata contains the value as JSON;
the payload of the event contains it if the item is long. The metadata also contains the namespace and each of its
prefixes, because filters compare whole values: the prefix ``("a",)`` never matches ``("ab",)``. The note's content is
the text of the value, which queries search.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from langgraph.store.base import InvalidNamespaceError, Item, PutOp, SearchItem, get_text_at_path

from zettel.core.arguments import checked
from zettel.errors import InvalidInput
from zettel.integrations.json_values import json_value, storable_text
from zettel.integrations.keyed_items import KeyedItems, is_long
from zettel.model import MAX_NAME, Event, Note, storable

NAMESPACE, KEY, VALUE, UPDATED = "namespace", "key", "value", "updated_at"
TTL, UNINDEXED = "ttl_minutes", "unindexed"
"""Metadata keys: of items that expire, which reads extend by it, and of items that no query finds."""
WHOLE = "$"
"""Index path of the whole value."""
FILTER_CHARS = 200
"""Longest text that the store filters by before ranking; longer texts are compared afterwards."""
LATE = 0.1
"""Share of its time to live by which a read may extend an item further, so that not every read has to write."""


class Place(NamedTuple):
    """Namespace and key of an item."""

    namespace: tuple[str, ...]
    key: str

    def filter(self) -> dict[str, Any]:
        """Return the metadata filter that selects only this item."""
        return {NAMESPACE: list(self.namespace), KEY: self.key}


def within(prefix: Sequence[str]) -> dict[str, Any]:
    """Return the filter for items with this namespace prefix; ``()`` selects all items."""
    return {f"within {len(prefix)}": list(prefix)}


def text_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata for the short text fields of a value, or the filter for those of a filter."""
    return {f"value.{name}": text for name, text in fields.items() if _short(name) and _short(text)}


def event_of(place: Place, op: PutOp, fields: Sequence[str], now: datetime) -> Event:
    """Return the event of a ``put``. ``fields`` are the default index paths. Raises ``InvalidInput``."""
    if not isinstance(op.value, Mapping):
        raise InvalidInput(f"the value of an item must be a dict, got {type(op.value).__name__}")
    value = json_value("value", op.value)
    metadata: dict[str, Any] = {**place.filter(), UPDATED: now.isoformat()}
    for depth in range(len(place.namespace) + 1):
        metadata |= within(place.namespace[:depth])
    metadata |= text_fields(value)
    if op.ttl is not None:
        metadata[TTL] = op.ttl
    text = "" if op.index is False else text_of(value, fields if op.index is None else op.index)
    if not text:
        metadata[UNINDEXED] = True
    if not is_long(text):
        metadata[VALUE] = value
    session = ".".join(place.namespace)
    return checked({
        "id": json.dumps(["langgraph", list(place.namespace), place.key, 0]),
        "content": text or place.key,
        "payload": value if is_long(text) or not (text or place.key.strip()) else None,  # an event must not be empty
        "session": session if len(session) <= MAX_NAME else None,
        "metadata": metadata,
        "expires_at": None if op.ttl is None else _after(now, op.ttl),
    })  # fmt: skip


def text_of(value: dict[str, Any], fields: Sequence[str]) -> str:
    """Return the searchable text: one line per text at the paths, with field names for the whole value."""
    lines: list[str] = []
    for path in fields:
        leaves = list(_leaves(value)) if path == WHOLE else [("", text) for text in get_text_at_path(value, path)]
        if len(leaves) == 1:
            leaves = [("", leaves[0][1])]  # a single field needs no name
        lines += [f"{name}: {text}" if name else text for name, text in leaves]
    return storable_text("\n".join(line for line in lines if line.strip())).strip()


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, name)
    elif value is not None:
        yield name, value if isinstance(value, str) else json.dumps(value)


def require_namespace(namespace: Sequence[str]) -> tuple[str, ...]:
    """Return the namespace as a tuple. Raises ``InvalidNamespaceError``."""
    if not namespace or not all(isinstance(label, str) and label for label in namespace):
        raise InvalidNamespaceError(f"namespace must be a tuple of non-empty strings, got {namespace!r}")
    return tuple(namespace)


def place_of(note: Note) -> Place:
    metadata: Any = note.metadata
    return Place(tuple(metadata[NAMESPACE]), metadata[KEY])


async def value_of(items: KeyedItems, note: Note) -> dict[str, Any] | None:
    """Return the value of an item; None if it was deleted concurrently."""
    short: Any = note.metadata.get(VALUE)
    value: dict[str, Any] | None = await items.payload(note) if short is None else short
    return value


def item_of(note: Note, value: dict[str, Any]) -> Item:
    return Item(**_fields(note, value))


def search_item_of(note: Note, value: dict[str, Any], score: float | None = None) -> SearchItem:
    return SearchItem(**_fields(note, value), score=score)


def _fields(note: Note, value: dict[str, Any]) -> dict[str, Any]:
    metadata: Any = note.metadata
    namespace, key = place_of(note)
    created = note.recorded_at
    updated = max(created, datetime.fromisoformat(metadata[UPDATED]))  # the first put is recorded after it began
    return {"namespace": namespace, "key": key, "value": value, "created_at": created, "updated_at": updated}


def is_expired(note: Note, now: datetime) -> bool:
    return note.expires_at is not None and note.expires_at <= now


def refreshed(note: Note, now: datetime) -> datetime | None:
    """Return the new expiry of an item after a read; None if it never expires, or late enough.

    Frequent reads write about ten times per time to live, and an item expires at most a tenth of it late.
    """
    metadata: Any = note.metadata
    if TTL not in metadata:
        return None
    due = _after(now, metadata[TTL])
    if note.expires_at is not None and note.expires_at >= due:
        return None
    return _after(due, metadata[TTL] * LATE)


def _after(moment: datetime, minutes: float) -> datetime:
    if isinstance(minutes, bool) or not isinstance(minutes, (int, float)) or not minutes >= 0:
        raise InvalidInput(f"ttl must be a number of minutes, 0 or more, got {minutes!r}")
    try:
        return moment + timedelta(minutes=minutes)
    except OverflowError:
        raise InvalidInput(f"ttl={minutes!r} is too long: use None for items that never expire") from None


def _short(text: Any) -> bool:
    if not isinstance(text, str) or len(text) > FILTER_CHARS:
        return False
    try:
        storable(text)
    except ValueError:
        return False
    return True


def fits(value: Any, wanted: Any) -> bool:
    """Return whether a value matches a filter: by equality, by the named fields of a dict, or by operators."""
    if isinstance(wanted, Mapping):
        if any(isinstance(name, str) and name.startswith("$") for name in wanted):
            return all(_compares(value, operator, other) for operator, other in wanted.items())
        return isinstance(value, dict) and all(fits(value.get(name), inner) for name, inner in wanted.items())
    if isinstance(wanted, (list, tuple)):
        same = isinstance(value, list) and len(value) == len(wanted)
        return same and all(fits(inner, other) for inner, other in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _compares(value: Any, operator: str, other: Any) -> bool:
    other = json_value("filter", other)
    if operator == "$eq":
        return bool(value == other)
    if operator == "$ne":
        return bool(value != other)
    if operator not in ("$gt", "$gte", "$lt", "$lte"):
        raise InvalidInput(f"filter: unknown operator {operator}: use $eq, $ne, $gt, $gte, $lt or $lte")
    numbers = isinstance(value, (int, float)) and isinstance(other, (int, float))
    if not numbers and not (isinstance(value, str) and isinstance(other, str)):
        return False  # values of different types never match
    if operator.startswith("$gt"):
        return bool(value > other or (operator == "$gte" and value == other))
    return bool(value < other or (operator == "$lte" and value == other))
