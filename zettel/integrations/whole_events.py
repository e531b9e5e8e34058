"""Reads and corrects all parts of a long event as one text."""

from __future__ import annotations

from datetime import timedelta
from itertools import zip_longest
from typing import Any

from zettel.async_memory import AsyncMemory
from zettel.core.arguments import require_size, require_storable
from zettel.core.decisions import BY_PEOPLE
from zettel.model import Kind, Note, Scope
from zettel.text.parts import split_parts

PAGE = 200
"""Notes per page when all notes are searched for parts."""


async def parts_of(note: Note, scope: Scope, memory: AsyncMemory) -> list[Note]:
    """Return all parts of the note's event, the first part first.

    If a shorter correction archived some parts, they are left out.
    """
    if note.parts == 1:
        return [note]
    parts = await _load_parts(note, scope, memory)
    head, *others = (parts[part] for part in sorted(parts) if part < parts[min(parts)].parts)
    if any(other.archived for other in others) and await _is_corrected(head, scope, memory):
        others = [other for other in others if not other.archived]
    return [head, *others]


async def whole_of(note: Note, scope: Scope, memory: AsyncMemory) -> Note:
    """Return the first part of the note's event, with the content of all parts."""
    parts = await parts_of(note, scope, memory)
    return parts[0].model_copy(update={"content": "".join(part.content for part in parts)})


async def correct(id: str, fields: dict[str, Any], scope: Scope, memory: AsyncMemory) -> Note:
    """Set fields on the note's event and return its first part.

    New content is split over the parts, and surplus parts are archived. Each part is one transaction, the first part
    first. Raises what ``update`` raises.
    """
    note = await memory.get(id, scope=scope)
    assert isinstance(note, Note)
    head, *others = await parts_of(note, scope, memory)
    content = fields.get("content")
    if content is None or not others:
        return await memory.update(head.id, scope=scope, **fields)
    require_storable("content", content)
    require_size(content)
    others = [other for other in others if not other.archived]
    pieces = split_parts(content)
    last = len(others)
    first, *rest = [*pieces[:last], "".join(pieces[last:])] if len(pieces) > last else pieces
    changed = await memory.update(head.id, scope=scope, **(fields | {"content": first}))
    for other, piece in zip_longest(others, rest):
        if piece is None:
            await memory.archive(other.id, scope=scope)
        else:
            await memory.update(other.id, content=piece, scope=scope)
    return changed


async def _load_parts(note: Note, scope: Scope, memory: AsyncMemory) -> dict[int, Note]:
    """Return the notes of an event by part number.

    Parts usually arrived one after another, so the page after the first part is read before all notes are searched.
    """
    when = note.occurred_at
    filters: dict[str, Any] = {
        "kinds": [Kind.EPISODIC],
        "session": note.session,
        "speaker": note.speaker,
        "scope": scope,
    }
    if when is not None:
        filters |= {"since": when, "until": when + timedelta(microseconds=1)}
    page = await memory.list(**filters, limit=note.parts, cursor=str(max(note.seq - note.part - 1, 0)))
    parts = {note.part: note} | _parts(note, page.notes)
    for archived in (True, False):
        cursor: str | None = None
        while not _is_complete(parts):
            page = await memory.list(**filters, archived=archived, limit=PAGE, cursor=cursor)
            parts |= _parts(note, page.notes)
            cursor = page.cursor
            if cursor is None:
                break
    return parts


def _parts(note: Note, others: tuple[Note, ...]) -> dict[int, Note]:
    return {other.part: other for other in others if other.event_ids[0] == note.event_ids[0]}


def _is_complete(parts: dict[int, Note]) -> bool:
    return 0 in parts and all(part in parts for part in range(parts[0].parts))


async def _is_corrected(head: Note, scope: Scope, memory: AsyncMemory) -> bool:
    """Return whether the content was last set by a caller and not by the event."""
    changes = [rev for rev in await memory.history(head.id, scope=scope) if rev.live and "content" in rev.change]
    return bool(changes) and changes[-1].cause.by in BY_PEOPLE
