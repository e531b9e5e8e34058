"""Keys at the start of a JSON file, for ``sniff``."""

from __future__ import annotations

import io
import re
from contextlib import suppress

from zettel.errors import BadRecord
from zettel.transcripts.formats.events_jsonl import EVENT_KEYS

from .json_stream import JsonStream
from .lines import head_text

_KEY = re.compile(r'"([^"\\]*)"\s*:')


def keys_in(head: bytes) -> set[str]:
    """Return all keys in the head of a JSON file, at any depth; an empty set for other files.

    For events of ``zettel export`` the set is empty: their payloads may come from any program.
    """
    text = head_text(head)
    if not text.lstrip().startswith(("{", "[")) or _begins_with_event(head):
        return set()
    return set(_KEY.findall(text))


def _begins_with_event(head: bytes) -> bool:
    has_keys = False
    with suppress(BadRecord):  # an array, or longer than the head
        for key in JsonStream(io.BytesIO(head), "").members():
            if key not in EVENT_KEYS:
                return False
            has_keys = True
    return has_keys
