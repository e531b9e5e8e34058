"""JSON lines with one event each, with the fields of ``zettel.Event``, as ``zettel export`` writes them.

A record with neither id nor time gets an id (see :class:`~zettel.transcripts.records.ContentKeys`). The store's fields
of an export are ignored. A record without the key ``source`` has its place in this file as source; null stays None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import timezone, tzinfo
from pathlib import Path
from typing import Any

from zettel.model import Event
from zettel.transcripts import Record, Rejected
from zettel.transcripts.parsing.json_records import JsonRecord, json_lines
from zettel.transcripts.parsing.lines import head_text
from zettel.transcripts.parsing.timestamps import in_zone, iso_time
from zettel.transcripts.records import ContentKeys, record, rejected

name = "jsonl"
local_times = True

STORE_FIELDS = frozenset({"event_id", "seq", "recorded_at", "revises", "principal", "ceiling", "notes"})
"""Fields that a store adds to an event; an export may contain them, an import ignores them."""

EVENT_KEYS = Event.model_fields.keys() | STORE_FIELDS | {"id"}
"""The keys that the object of an event may have."""
_CONTENT_KEYS = frozenset({"content", "payload"})
_CONTENT_MARKS = tuple(f'"{key}"' for key in _CONTENT_KEYS)
_FIRST_KEY = re.compile(r'\{\s*"([^"\\]*)"\s*:')


def sniff(path: Path, head: bytes) -> bool:
    """Recognise every .jsonl file with objects, and files as ``sniff_in_folder``."""
    first, newline, _ = head_text(head).lstrip().partition("\n")
    is_named = path.suffix == ".jsonl" and first.startswith("{") and bool(newline)
    return is_named or sniff_in_folder(path, head)


def sniff_in_folder(path: Path, head: bytes) -> bool:
    """Recognise a file whose first line is an object with content or payload.

    A line longer than the head counts by its start, and by its first key unless the file is called .jsonl. In a .jsonl
    file the first line may be damaged, if a later line is such an object.
    """
    first, newline, rest = head_text(head).lstrip().partition("\n")
    if not first.startswith("{"):
        return False
    if not newline:
        key = _FIRST_KEY.match(first)
        is_event = path.suffix == ".jsonl" or (key is not None and key[1] in EVENT_KEYS)
        return is_event and any(mark in first for mark in _CONTENT_MARKS)
    fields = _object(first)
    if fields is None and path.suffix == ".jsonl":
        return any(_has_content(_object(line)) for line in rest.split("\n"))
    return _has_content(fields)


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """Yield the events in order; a damaged line is rejected. Times without a zone are in ``zone``."""
    keys = ContentKeys()
    with path.open("rb") as file:
        for line in json_lines(file, str(path)):
            yield line if isinstance(line, Rejected) else _event(line, keys, zone)


def _object(line: str) -> dict[str, Any] | None:
    """Return the object on a line; None for a damaged line or another value."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _has_content(fields: dict[str, Any] | None) -> bool:
    return fields is not None and not _CONTENT_KEYS.isdisjoint(fields)


def _event(line: JsonRecord, keys: ContentKeys, zone: tzinfo) -> Record:
    if not isinstance(line.value, dict):
        return rejected(line.source, "expected an object with the fields of an event")
    event_fields = {key: value for key, value in line.value.items() if key not in STORE_FIELDS}
    raw_time = event_fields.get("occurred_at")
    if zone is not timezone.utc and isinstance(raw_time, str):
        with suppress(ValueError):  # the validation of the record reports it
            moment = iso_time(raw_time)
            event_fields["occurred_at"] = raw_time if moment is None else in_zone(raw_time, moment, zone)
    return record(event_fields, line.source, keys)
