"""JSON lines, one event on each, with the fields of ``zettel.Event``: what ``zettel export`` writes.

A record with neither id nor time gets an id of its own (see
:class:`~zettel.transcripts.records.ContentKeys`). What an export adds about how the event was kept is left
out again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from zettel.model import Source

from . import Record
from .records import ContentKeys, record, rejected

name = "jsonl"

KEPT = frozenset({"event_id", "seq", "recorded_at", "revises", "notes"})
"""What a store knows about an event beside the event itself; an export has it, an import must not."""

_BOM = b"\xef\xbb\xbf"
_TELLING = (b'"content"', b'"payload"')


def sniff(path: Path, head: bytes) -> bool:
    """The first line is an object with content or payload; a line longer than the head goes by its start."""
    lines = head.removeprefix(_BOM).lstrip()
    first, newline, _ = lines.partition(b"\n")
    if not first.startswith(b"{"):
        return False
    if not newline:
        return any(mark in first for mark in _TELLING)
    try:
        fields = json.loads(first)
    except ValueError:
        # The first line may be the damaged one; a file called so is meant so.
        return path.suffix == ".jsonl"
    if not isinstance(fields, dict):
        return False
    return path.suffix == ".jsonl" or "content" in fields or "payload" in fields


def read(path: Path) -> Iterator[Record]:
    """The events in order, line by line; a line that cannot be read is rejected and the next one is tried."""
    keys = ContentKeys()
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            line = line.removeprefix(_BOM) if number == 1 else line
            if line.strip():
                yield _read_line(line, Source(file=str(path), position=str(number)), keys)


def _read_line(line: bytes, source: Source, keys: ContentKeys) -> Record:
    try:
        fields = json.loads(line)
    except json.JSONDecodeError as error:
        cut = "" if line.endswith(b"\n") else "; the file ends in the middle of it"
        return rejected(source, f"no JSON: {error.msg.removesuffix(' at')} at character {error.pos}{cut}")
    except UnicodeDecodeError as error:
        return rejected(source, f"byte {error.start} of the line is not UTF-8")
    except RecursionError:
        return rejected(source, "its JSON is nested too deeply")
    except ValueError as error:  # a number of thousands of digits
        return rejected(source, f"no JSON that can be read: {error}")
    if not isinstance(fields, dict):
        return rejected(source, "expected an object with the fields of an event")
    given = {key: value for key, value in fields.items() if key not in KEPT}
    if given.get("source") is None:
        given.pop("source", None)
    return record(given, source, keys)
