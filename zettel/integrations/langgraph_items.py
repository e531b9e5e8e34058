"""Items of LangGraph's store as events and notes: what is kept of them, what they are found by, which fit a filter.

An item is one event, and each ``put`` of its key a new version of its note. The value stands in the metadata, as JSON,
or is the payload of the event if the item is long. In the metadata stand the namespace and each of its beginnings too,
since a filter asks for what metadata says as a whole: a prefix of ``("a",)`` never meets ``("ab",)``. The note says the
texts of the value, which is what a query searches.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from langgraph.store.base import InvalidNamespaceError, Item, PutOp, SearchItem, get_text_at_path

from zettel.arguments import checked
from zettel.async_memory import AsyncMemory
from zettel.errors import InvalidInput
from zettel.integrations.keyed import is_long, payload_of
from zettel.integrations.plain import plain, storable_text
from zettel.model import MAX_NAME, Event, Note, Scope, storable

NAMESPACE, KEY, VALUE, UPDATED = "namespace", "key", "value", "updated_at"
EXPIRING, TTL, EXPIRES, UNINDEXED = "expires", "ttl_minutes", "expires_at", "unindexed"
"""Keys of the metadata. The first three are there for what expires, ``UNINDEXED`` for what no query finds."""
WHOLE = "$"
"""The path of an index that stands for the whole value."""
ASKED_CHARS = 200
"""The longest text of a value that a filter is asked for before anything is ranked; longer ones are looked at after."""
LATE = 0.1
"""By how much of its time to live an item may outlive it once it was read: so that not every read has to write."""


class Place(NamedTuple):
    """What an item is known by."""

    namespace: tuple[str, ...]
    key: str

    def asked(self) -> dict[str, Any]:
        """The filter that its note passes, and no other."""
        return {NAMESPACE: list(self.namespace), KEY: self.key}


def within(prefix: Sequence[str]) -> dict[str, Any]:
    """The filter for items whose namespace begins so; of ``()``: for all items, and nothing else in the memory."""
    return {f"within {len(prefix)}": list(prefix)}


def texts_asked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Of the fields of a value what is kept for filters, and of a filter what the memory can ask for by itself: that a
    field is a certain short text."""
    return {f"value.{name}": text for name, text in fields.items() if _short(name) and _short(text)}


def event_of(place: Place, op: PutOp, fields: Sequence[str], now: datetime) -> Event:
    """What a ``put`` remembers. ``fields`` are the paths that are indexed unless the op names others. Raises
    ``InvalidInput`` for what is no JSON, and for what no store keeps."""
    if not isinstance(op.value, Mapping):
        raise InvalidInput(f"the value of an item is a dict, and not of type {type(op.value).__name__}")
    value = plain("value", op.value)
    metadata: dict[str, Any] = {**place.asked(), UPDATED: now.isoformat()}
    for depth in range(len(place.namespace) + 1):
        metadata |= within(place.namespace[:depth])
    metadata |= texts_asked(value)
    if op.ttl is not None:
        metadata |= {EXPIRING: True, TTL: op.ttl, EXPIRES: _after(now, op.ttl).isoformat()}
    text = "" if op.index is False else text_of(value, fields if op.index is None else op.index)
    if not text:
        metadata[UNINDEXED] = True
    if not is_long(text):
        metadata[VALUE] = value
    session = ".".join(place.namespace)
    return checked({
        "id": json.dumps(["langgraph", list(place.namespace), place.key, 0]),
        "content": text or place.key,
        "payload": value if is_long(text) or not (text or place.key.strip()) else None,  # an event has to say something
        "session": session if len(session) <= MAX_NAME else None,
        "metadata": metadata,
    })  # fmt: skip


def text_of(value: dict[str, Any], fields: Sequence[str]) -> str:
    """What a query searches: the texts at the paths, a line each; of the whole value, its fields by their names."""
    lines: list[str] = []
    for path in fields:
        leaves = list(_leaves(value)) if path == WHOLE else [("", text) for text in get_text_at_path(value, path)]
        if len(leaves) == 1:
            leaves = [("", leaves[0][1])]  # a value of one field is what that says
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
    """The namespace of an item. Raises ``InvalidNamespaceError``."""
    if not namespace or not all(isinstance(label, str) and label for label in namespace):
        raise InvalidNamespaceError(f"{namespace!r} is no namespace: use a tuple of texts, none of them empty")
    return tuple(namespace)


# ------------------------------------------------------------------------------------------------------------ and back


def place_of(note: Note) -> Place:
    told: Any = note.metadata
    return Place(tuple(told[NAMESPACE]), told[KEY])


async def value_of(memory: AsyncMemory, scope: Scope, note: Note) -> dict[str, Any] | None:
    """The value of an item; None if somebody deleted it just now."""
    told: Any = note.metadata.get(VALUE)
    value: dict[str, Any] | None = await payload_of(memory, scope, note) if told is None else told
    return value


def item_of(note: Note, value: dict[str, Any]) -> Item:
    return Item(**_told(note, value))


def search_item_of(note: Note, value: dict[str, Any], score: float | None = None) -> SearchItem:
    return SearchItem(**_told(note, value), score=score)


def _told(note: Note, value: dict[str, Any]) -> dict[str, Any]:
    told: Any = note.metadata
    namespace, key = place_of(note)
    created = note.recorded_at
    updated = max(created, datetime.fromisoformat(told[UPDATED]))  # the first put is recorded a moment after it began
    return {"namespace": namespace, "key": key, "value": value, "created_at": created, "updated_at": updated}


def expired(note: Note, now: datetime) -> bool:
    deadline: Any = note.metadata.get(EXPIRES)
    return deadline is not None and datetime.fromisoformat(deadline) <= now


def refreshed(note: Note, now: datetime) -> dict[str, Any] | None:
    """The metadata of an item that was read now; None if it lives long enough anyway.

    Read again and again, it is written about ten times in its time to live, and outlives it by a tenth at most.
    """
    told: Any = note.metadata
    if TTL not in told:
        return None
    due = _after(now, told[TTL])
    if datetime.fromisoformat(told[EXPIRES]) >= due:
        return None
    return {**told, EXPIRES: _after(due, told[TTL] * LATE).isoformat()}


def now_utc() -> datetime:
    return datetime.now(timezone.utc)


def _after(moment: datetime, minutes: float) -> datetime:
    if isinstance(minutes, bool) or not isinstance(minutes, (int, float)) or not minutes >= 0:
        raise InvalidInput(f"ttl={minutes!r} is no time to live: use minutes, 0 or more")
    try:
        return moment + timedelta(minutes=minutes)
    except OverflowError:
        raise InvalidInput(f"ttl={minutes!r} is longer than any calendar: use None for what never expires") from None


def _short(text: Any) -> bool:
    if not isinstance(text, str) or len(text) > ASKED_CHARS:
        return False
    try:
        storable(text)
    except ValueError:
        return False
    return True


# ------------------------------------------------------------------------------------------------------------- filters


def fits(value: Any, wanted: Any) -> bool:
    """Whether a value is as a filter wants it: equal; for a dict, in each field that it names; or by operators."""
    if isinstance(wanted, Mapping):
        if any(isinstance(name, str) and name.startswith("$") for name in wanted):
            return all(_compares(value, operator, other) for operator, other in wanted.items())
        return isinstance(value, dict) and all(fits(value.get(name), inner) for name, inner in wanted.items())
    if isinstance(wanted, (list, tuple)):
        same = isinstance(value, list) and len(value) == len(wanted)
        return same and all(fits(one, other) for one, other in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _compares(value: Any, operator: str, other: Any) -> bool:
    other = plain("filter", other)
    if operator == "$eq":
        return bool(value == other)
    if operator == "$ne":
        return bool(value != other)
    if operator not in ("$gt", "$gte", "$lt", "$lte"):
        raise InvalidInput(f"filter: {operator} is no operator: use $eq, $ne, $gt, $gte, $lt or $lte")
    numbers = isinstance(value, (int, float)) and isinstance(other, (int, float))
    if not numbers and not (isinstance(value, str) and isinstance(other, str)):
        return False  # what cannot be compared is neither more nor less
    if operator.startswith("$gt"):
        return bool(value > other or (operator == "$gte" and value == other))
    return bool(value < other or (operator == "$lte" and value == other))
