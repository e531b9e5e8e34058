"""JSON lines, one event on each, with the fields of ``zettel.Event``: what ``zettel export`` writes.

A record with neither id nor time gets an id of its own (see
:class:`~zettel.transcripts.records.ContentKeys`). What an export adds about how the event was kept is left
out again. A ``source`` of null is none; of a record that says nothing of it, it is the place in this file.
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

from . import Record, Rejected
from .json_records import JsonRecord, json_lines
from .lines import head_text
from .moments import in_zone, iso_time
from .records import ContentKeys, record, rejected

name = "jsonl"
local_times = True

KEPT = frozenset({"event_id", "seq", "recorded_at", "revises", "notes"})
"""What a store knows about an event beside the event itself; an export has it, an import must not."""

OF_EVENTS = Event.model_fields.keys() | KEPT
"""The keys that the object of an event may have."""
_FIELDS = frozenset({"content", "payload"})
_TELLING = tuple(f'"{field}"' for field in _FIELDS)
_FIRST_KEY = re.compile(r'\{\s*"([^"\\]*)"\s*:')


def sniff(path: Path, head: bytes) -> bool:
    """As ``sniff_found``; and a file called .jsonl is meant so, whatever objects it has."""
    first, newline, _ = head_text(head).lstrip().partition("\n")
    is_meant = path.suffix == ".jsonl" and first.startswith("{") and bool(newline)
    return is_meant or sniff_found(path, head)


def sniff_found(path: Path, head: bytes) -> bool:
    """The first line is an object with content or payload; a line longer than the head goes by its start, and
    by its first key unless the file is called .jsonl.

    In a file called .jsonl the first line may be damaged, if a later one is such an object.
    """
    first, newline, rest = head_text(head).lstrip().partition("\n")
    if not first.startswith("{"):
        return False
    if not newline:
        key = _FIRST_KEY.match(first)
        begins = path.suffix == ".jsonl" or (key is not None and key[1] in OF_EVENTS)
        return begins and any(mark in first for mark in _TELLING)
    fields = _object(first)
    if fields is None and path.suffix == ".jsonl":
        return any(_is_telling(_object(line)) for line in rest.split("\n"))
    return _is_telling(fields)


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """The events in order, line by line; a line that cannot be read is rejected and the next one is tried.

    ``zone`` is that of times that name none.
    """
    keys = ContentKeys()
    with path.open("rb") as file:
        for line in json_lines(file, str(path)):
            yield line if isinstance(line, Rejected) else _event(line, keys, zone)


def _object(line: str) -> dict[str, Any] | None:
    """What stands on a line; None for what is damaged or no object."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_telling(fields: dict[str, Any] | None) -> bool:
    return fields is not None and not _FIELDS.isdisjoint(fields)


def _event(line: JsonRecord, keys: ContentKeys, zone: tzinfo) -> Record:
    if not isinstance(line.value, dict):
        return rejected(line.source, "expected an object with the fields of an event")
    given = {key: value for key, value in line.value.items() if key not in KEPT}
    told = given.get("occurred_at")
    if zone is not timezone.utc and isinstance(told, str):
        with suppress(ValueError):  # which is told with the record
            moment = iso_time(told)
            given["occurred_at"] = told if moment is None else in_zone(told, moment, zone)
    return record(given, line.source, keys)
