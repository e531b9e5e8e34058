"""Stores items that a framework addresses by its own keys: one event per item, one revision per write.

Archived and decayed notes are items like the others. Merged and quarantined notes are hidden until they are restored,
but deleting an item destroys them too.

The metadata of a note contains the item. A long item has many parts, and each part repeats all metadata, so its value
is stored once, as the payload of the event.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from zettel.async_memory import AsyncMemory
from zettel.integrations.note_access import all_notes, delete_existing, event_of
from zettel.model import Event, Note, Scope
from zettel.text.parts import PART_CHARS

K = TypeVar("K")
MetadataFilter: TypeAlias = Mapping[str, Any]
SELECTIVE_HITS = 50
"""Hits of the first search when ``accept`` may reject many of them."""
GROWTH = 4
"""Factor by which ``k`` grows when too few hits were accepted."""


def is_long(text: str) -> bool:
    """Return whether an item with this text has several parts."""
    return len(text) > PART_CHARS


@dataclass(frozen=True)
class KeyedItems:
    """The items in one scope of a memory."""

    memory: AsyncMemory
    scope: Scope

    async def write(self, events: Mapping[K, Event], filter_of: Callable[[K], MetadataFilter]) -> None:
        """Write each event as a revision of the note of its key, or as a new note.

        ``filter_of`` returns the metadata filter that finds the note of a key. Event ids are derived from keys, and a
        deleted id is never revived: such an event takes the id of the note written since, or a new one. These keys form
        a second transaction; all others share the first. The caller must exclude concurrent writers. Raises what
        ``add_many_report`` raises.
        """
        left = dict(events)
        while left:
            outcomes = await self.memory.add_many_report(list(left.values()), on_conflict="revise", scope=self.scope)
            deleted = [key for key, outcome in zip(left, outcomes, strict=True) if outcome.status == "deleted"]
            left = {key: await self._with_free_id(events[key], filter_of(key)) for key in deleted}

    async def _with_free_id(self, event: Event, where: MetadataFilter) -> Event:
        async for note in self.notes(where, include_hidden=True):
            if (stored := await event_of(self.memory, self.scope, note)) is not None:
                return event.model_copy(update={"external_id": stored.external_id})
        return event.model_copy(update={"external_id": f"{event.external_id} {secrets.token_hex(8)}"})

    async def payload(self, note: Note) -> Any:
        """Return the payload of the item's event; None if it was deleted concurrently."""
        event = await event_of(self.memory, self.scope, note)
        return None if event is None else event.payload

    async def delete(self, note: Note) -> bool:
        """Destroy a note with all its versions; return whether it still existed."""
        return await delete_existing(self.memory, self.scope, note.event_ids[0])

    async def notes(self, where: MetadataFilter, *, include_hidden: bool = False) -> AsyncIterator[Note]:
        """Yield the first part of each item that passes a metadata filter.

        Items come in the order of their first write, then archived items, newest first. ``include_hidden`` adds merged
        and quarantined notes.
        """
        for archived in (False, True):
            async for note in all_notes(self.memory, filter=where, archived=archived, scope=self.scope):
                is_hidden = note.quarantined is not None or note.merged_into is not None
                if note.part == 0 and (include_hidden or not is_hidden):
                    yield note

    async def first(self, where: MetadataFilter) -> Note | None:
        """Return the first item that passes a metadata filter."""
        async for note in self.notes(where):
            return note
        return None

    async def ranked(
        self,
        question: str,
        where: MetadataFilter,
        count: int,
        accept: Callable[[Note], Awaitable[Note | None]],
        *,
        selective: bool,
    ) -> list[tuple[Note, float]]:
        """Return the best ``count`` items for a question, with their scores.

        ``accept`` maps a hit, possibly a later part of a long item, to the note to return, or to None. ``selective``
        means that it rejects many hits.
        """
        k = first = max(count, SELECTIVE_HITS) if selective else count
        while True:
            hits = await self.memory.search(
                question, k, filter=where, archived=True, log=k == first, scope=self.scope
            )
            accepted: dict[str, tuple[Note, float]] = {}
            for hit in hits:
                if hit.note.archived and hit.note.part > 0:  # belongs to a former, longer version
                    continue
                note = await accept(hit.note)
                if note is not None:
                    accepted.setdefault(note.event_ids[0], (note, hit.score))
            if len(accepted) >= count or len(hits) < k:
                return list(accepted.values())[:count]
            k *= GROWTH
