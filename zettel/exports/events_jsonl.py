"""``jsonl``: the events of a scope, an object on each line with the fields of ``zettel.Event``, in order of arrival.

An import into an empty scope and another export give the same bytes. For that an event with neither id nor time, which
nothing else tells from another one, is written with its ``event_id`` as the id. With ``notes`` each line also has what
the store knows about the event, and the notes that rest on it: to be read, for an import leaves it out again.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

from pydantic_core import to_jsonable_python

from zettel.model import Event, EventRecord

from .work import PAGE, Work

NOTES = "notes"


async def pages(work: Work) -> AsyncGenerator[bytes, None]:
    """The lines of all events."""
    await work.expect(events=1)
    told: list[bytes] = []
    async for event, notes in work.store.dump(work.scope):
        value = _fields(event, whole=NOTES in work.include)
        if NOTES in work.include:
            value["notes"] = to_jsonable_python(notes)
            work.report.notes += len(notes)
        told.append(_line(value))
        if len(told) == PAGE:
            yield _page(work, told)
            told = []
    yield _page(work, told)


def _page(work: Work, told: list[bytes]) -> bytes:
    work.report.events += len(told)
    work.told(len(told))
    return b"".join(told)


def _fields(event: EventRecord, *, whole: bool) -> dict[str, Any]:
    fields: dict[str, Any] = to_jsonable_python(event)
    if event.id is None and event.occurred_at is None:
        fields["id"] = event.event_id
    return fields if whole else {name: fields[name] for name in Event.model_fields}


def _line(value: dict[str, Any]) -> bytes:
    try:
        return (json.dumps(value, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:  # a payload's lone surrogates: JSON can escape them, UTF-8 cannot hold them
        return (json.dumps(value) + "\n").encode()
