"""Export format ``jsonl``: one event per line with the fields of ``zettel.Event``, in order of arrival.

An import into an empty scope and another export give the same bytes. So an event without id and time is written with
its ``event_id`` as the id. With ``notes`` each line also contains the store's fields of the event and its notes; an
import ignores them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from pydantic_core import to_jsonable_python

from zettel.model import Event, EventRecord, Note

from .task import PAGE, ExportTask

NOTES = "notes"


async def pages(task: ExportTask) -> AsyncGenerator[bytes, None]:
    """Yield the lines of all events."""
    await task.count_total(events=1)
    lines: list[bytes] = []
    async for event, notes in task.store.dump(task.scope):
        value = _fields(event, notes, with_store_fields=NOTES in task.include)
        if NOTES in task.include:
            value["notes"] = to_jsonable_python(notes)
            task.report.notes += len(notes)
        lines.append(_line(value))
        if len(lines) == PAGE:
            yield _page(task, lines)
            lines = []
    yield _page(task, lines)


def _page(task: ExportTask, lines: list[bytes]) -> bytes:
    task.report.events += len(lines)
    task.advance(len(lines))
    return b"".join(lines)


def _fields(event: EventRecord, notes: Sequence[Note], *, with_store_fields: bool) -> dict[str, Any]:
    fields: dict[str, Any] = to_jsonable_python(event)
    # The expiry of its notes may have changed; an event without one has no such field, as in earlier versions.
    end = next((note.expires_at for note in notes if note.event_ids == (event.event_id,)), event.expires_at)
    fields["expires_at"] = to_jsonable_python(end)
    if event.external_id is None and event.occurred_at is None:
        fields["external_id"] = event.event_id
    chosen = fields if with_store_fields else {name: fields[name] for name in Event.model_fields}
    return chosen if end is not None else {name: value for name, value in chosen.items() if name != "expires_at"}


def _line(value: dict[str, Any]) -> bytes:
    try:
        return (json.dumps(value, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:  # a payload's lone surrogates: JSON can escape them, UTF-8 cannot hold them
        return (json.dumps(value) + "\n").encode()
