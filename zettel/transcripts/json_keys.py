"""The keys in a JSON file, by which formats know their own files."""

from __future__ import annotations

import io
import re
from contextlib import suppress

from zettel.errors import BadRecord

from .events_jsonl import OF_EVENTS
from .json_stream import JsonStream
from .lines import head_text

_KEY = re.compile(r'"([^"\\]*)"\s*:')


def keys_in(head: bytes) -> set[str]:
    """All keys in the beginning of a file, at any depth; none unless it begins as JSON. A text is no key.

    Of events, as ``zettel export`` writes them, none: what they carry may have come from any other program.
    """
    text = head_text(head)
    if not text.lstrip().startswith(("{", "[")) or _begins_with_event(head):
        return set()
    return set(_KEY.findall(text))


def _begins_with_event(head: bytes) -> bool:
    found = False
    with suppress(BadRecord):  # an array, or longer than the head
        for key in JsonStream(io.BytesIO(head), "").members():
            if key not in OF_EVENTS:
                return False
            found = True
    return found
