"""Reads of notes and deletes that tolerate concurrent changes, shared by the integrations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from zettel.async_memory import AsyncMemory
from zettel.errors import NotFound
from zettel.model import Event, Note, Scope

PAGE = 500
"""Notes per page."""


async def all_notes(memory: AsyncMemory, **filters: Any) -> AsyncIterator[Note]:
    """Yield all notes that pass the filters of ``Memory.list``, page by page."""
    cursor: str | None = None
    while True:
        page = await memory.list(limit=PAGE, cursor=cursor, **filters)
        for note in page.notes:
            yield note
        cursor = page.cursor
        if cursor is None:
            return


async def event_of(memory: AsyncMemory, scope: Scope, note: Note) -> Event | None:
    """Return the event of a note; None if it was deleted concurrently."""
    try:
        event = await memory.get(note.event_ids[0], scope=scope)
    except NotFound:
        return None
    assert isinstance(event, Event)
    return event


async def delete_existing(memory: AsyncMemory, scope: Scope, id: str) -> bool:
    """Delete an event and return True; return False if it was deleted concurrently."""
    try:
        await memory.delete(id, scope=scope)
    except NotFound:
        return False
    return True


def event_fields(note: Note) -> dict[str, str]:
    """Return speaker, role, title, session and time of a note, without empty fields."""
    fields = {
        "speaker": note.speaker, "role": note.role, "title": note.title, "session": note.session,
        "occurred_at": note.occurred_at.isoformat() if note.occurred_at else None,
    }  # fmt: skip
    return {name: value for name, value in fields.items() if value is not None}
