"""What a framework keeps under a key of its own: one event each, and each time it is written a version of its note.

A note that was put away or has faded is an item like the others; one that was merged into another or is in quarantine
is none, until it comes back. All of them are destroyed when the item is.

What an item is stands in the metadata of its note. A long one has many parts, each of which has all the metadata: there
it is kept once, as the payload of the event.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from zettel.annotate.parts import PART_CHARS
from zettel.async_memory import AsyncMemory
from zettel.errors import NotFound
from zettel.model import Event, Note, Scope

K = TypeVar("K")
Asked: TypeAlias = Mapping[str, Any]
PAGE = 500
"""Notes read at once."""
SIEVED = 50
"""Hits asked for at first where not all of them may fit."""
MORE = 4
"""By how much more is asked for when too few of them fit."""


async def write(
    memory: AsyncMemory, scope: Scope, events: Mapping[K, Event], asked: Callable[[K], Asked]
) -> None:
    """Write under each key its event, as a version of the note that passes what is ``asked`` of the key, if there is
    one. The ids of the events tell the keys: where one was deleted before, and so is never revived, the event gets the
    id of the note that is there since, or one of its own. Those keys are a transaction of their own, all others are
    one. Callers see to it that nobody else writes meanwhile. Raises what ``remember`` raises."""
    left = dict(events)
    while left:
        done = await memory.remember(list(left.values()), on_conflict="revise", scope=scope)
        deleted = [key for key, one in zip(left, done, strict=True) if one.status == "deleted"]
        left = {key: await _anew(memory, scope, events[key], asked(key)) for key in deleted}


async def _anew(memory: AsyncMemory, scope: Scope, event: Event, asked: Asked) -> Event:
    async for note in notes(memory, scope, asked, everything=True):
        try:
            known = await memory.get(note.event_ids[0], scope=scope)
        except NotFound:  # somebody deleted it just now
            continue
        assert not isinstance(known, Note)
        return event.model_copy(update={"id": known.id})
    return event.model_copy(update={"id": f"{event.id} {secrets.token_hex(8)}"})


def is_long(text: str) -> bool:
    """Whether an item that says this has several parts."""
    return len(text) > PART_CHARS


async def payload_of(memory: AsyncMemory, scope: Scope, note: Note) -> Any:
    """What is kept with the event of an item; None if somebody deleted it just now."""
    try:
        event = await memory.get(note.event_ids[0], scope=scope)
    except NotFound:
        return None
    assert not isinstance(event, Note)
    return event.payload


async def destroy(memory: AsyncMemory, scope: Scope, note: Note) -> bool:
    """Destroy a note with all its versions; whether it was still there."""
    try:
        await memory.delete(note.event_ids[0], scope=scope)
    except NotFound:  # somebody else did that meanwhile
        return False
    return True


async def notes(
    memory: AsyncMemory, scope: Scope, asked: Asked, *, everything: bool = False
) -> AsyncIterator[Note]:
    """The items that pass a filter, of long ones the first parts: in the order in which they were first written, then
    those that were put away, the newest first. ``everything``: also what was merged or is in quarantine."""
    for archived in (False, True):
        async for note in _heads(memory, scope, asked, archived):
            if everything or _is_item(note):
                yield note


async def first(memory: AsyncMemory, scope: Scope, asked: Asked) -> Note | None:
    """The item that passes a filter."""
    async for note in notes(memory, scope, asked):
        return note
    return None


async def ranked(
    memory: AsyncMemory,
    scope: Scope,
    question: str,
    asked: Asked,
    wanted: int,
    look: Callable[[Note], Awaitable[Note | None]],
    *,
    sieves: bool,
) -> list[tuple[Note, float]]:
    """The ``wanted`` items that answer a question, best first, with their scores. ``look`` tells of a note, also of a
    later part of a long one, what is to be found in its place; ``sieves``: for many of them that is None."""
    k = max(wanted, SIEVED) if sieves else wanted
    while True:
        hits = await memory.search(question, k, filter=asked, archived=True, log=False, scope=scope)
        found: dict[str, tuple[Note, float]] = {}
        for hit in hits:
            if hit.note.archived and hit.note.part > 0:  # of a former wording, which was longer
                continue
            note = await look(hit.note)
            if note is not None:
                found.setdefault(note.event_ids[0], (note, hit.score))
        if len(found) >= wanted or len(hits) < k:
            return list(found.values())[:wanted]
        k *= MORE


async def _heads(memory: AsyncMemory, scope: Scope, asked: Asked, archived: bool) -> AsyncIterator[Note]:
    cursor: str | None = None
    while True:
        page = await memory.list(filter=asked, archived=archived, limit=PAGE, cursor=cursor, scope=scope)
        for note in page.notes:
            if note.part == 0:
                yield note
        cursor = page.cursor
        if cursor is None:
            return


def _is_item(note: Note) -> bool:
    return note.quarantined is None and note.merged_into is None
