"""A long event as the one thing that it is to whoever reads or corrects it: all its parts, each of which is a note."""

from __future__ import annotations

from datetime import timedelta
from itertools import zip_longest
from typing import Any

from zettel.annotate.parts import split_parts
from zettel.arguments import require_size, require_storable
from zettel.async_memory import AsyncMemory
from zettel.model import Kind, Note, Scope
from zettel.revise import BY_HAND

PAGE = 200
"""Notes read at once where the parts are looked for everywhere."""


async def parts_of(note: Note, scope: Scope, memory: AsyncMemory) -> list[Note]:
    """The parts of the event that a note is one of, the head first; of what was corrected without those that its new
    wording left over."""
    if note.parts == 1:
        return [note]
    found = await _found(note, scope, memory)
    head, *others = (found[part] for part in sorted(found) if part < found[min(found)].parts)
    if any(other.archived for other in others) and await _is_corrected(head, scope, memory):
        others = [other for other in others if not other.archived]
    return [head, *others]


async def whole_of(note: Note, scope: Scope, memory: AsyncMemory) -> Note:
    """The head of the event that a note is a part of, with the content of all parts."""
    parts = await parts_of(note, scope, memory)
    return parts[0].model_copy(update={"content": "".join(part.content for part in parts)})


async def correct(id: str, fields: dict[str, Any], scope: Scope, memory: AsyncMemory) -> Note:
    """Set fields of the event that a note is a part of; its head as it is then. A new content is that of all parts:
    those that it does not need are put away. Each part is changed in a transaction of its own, the head first. Raises
    what ``update`` raises."""
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


async def _found(note: Note, scope: Scope, memory: AsyncMemory) -> dict[int, Note]:
    """The notes of an event by their parts. They mostly arrived one after another, and are alike in what is asked."""
    when = note.occurred_at
    asked: dict[str, Any] = {"kinds": [Kind.EPISODIC], "session": note.session, "role": note.role, "scope": scope}
    if when is not None:
        asked |= {"since": when, "until": when + timedelta(microseconds=1)}
    page = await memory.list(**asked, limit=note.parts, cursor=str(max(note.seq - note.part - 1, 0)))
    found = {note.part: note} | _parts(note, page.notes)
    for archived in (True, False):
        cursor: str | None = None
        while not _are_all(found):
            page = await memory.list(**asked, archived=archived, limit=PAGE, cursor=cursor)
            found |= _parts(note, page.notes)
            cursor = page.cursor
            if cursor is None:
                break
    return found


def _parts(note: Note, others: tuple[Note, ...]) -> dict[int, Note]:
    return {other.part: other for other in others if other.event_ids[0] == note.event_ids[0]}


def _are_all(found: dict[int, Note]) -> bool:
    return 0 in found and all(part in found for part in range(found[0].parts))


async def _is_corrected(head: Note, scope: Scope, memory: AsyncMemory) -> bool:
    """Whether it was a person or an agent who last said what the head says, and not the event."""
    worded = [one for one in await memory.history(head.id, scope=scope) if one.live and "content" in one.change]
    return bool(worded) and worded[-1].cause == BY_HAND
