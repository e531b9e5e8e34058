"""Lists of messages in the shape of OpenAI's and Anthropic's APIs: JSON, or JSON lines.

Each line, or each entry of an array, is a conversation (``{"messages": […]}`` as for fine-tuning and batches, or a
bare list) or a message. Messages form one conversation per file, unless they state their conversation. System messages
are skipped. Tool calls are the payload, and tool results are events with the role ``tool``. The session is the
conversation's id, else the file's name and a hash of the first message. In a walked folder the name includes the
folder, because the runs of an agent often have equal names. Messages keep their ids and times (``created_at``, as in
exported threads); a message with neither gets an id (:class:`~zettel.transcripts.records.ContentKeys`).
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import timezone, tzinfo
from pathlib import Path
from typing import Any

from zettel.errors import BadRecord
from zettel.model import Event, Source
from zettel.transcripts import Record, Rejected
from zettel.transcripts.parsing.chat_messages import KNOWN_ROLES, is_message, message_events, unwrapped
from zettel.transcripts.parsing.json_records import json_records
from zettel.transcripts.parsing.json_stream import JsonStream
from zettel.transcripts.parsing.json_values import as_dict, text_at, value_at
from zettel.transcripts.parsing.timestamps import any_time
from zettel.transcripts.records import ContentKeys, record, rejected

name = "messages"
local_times = True
"""Times may have no zone."""

_THREADS = ("conversation_id", "thread_id", "session_id")
_IDS = (*_THREADS, "custom_id", "id")
_TIMES = ("created_at", "timestamp", "created")
_WRAPPERS = ("body", "params")  # of OpenAI's and of Anthropic's batches
_EVENT_KEYS = Event.model_fields.keys() - {"role", "content"} | {"id"}
_MESSAGE_KEYS = frozenset({"object", "type", "tool_calls", "tool_call_id", "thread_id"})


def sniff(path: Path, head: bytes) -> bool:
    """Recognise JSON whose first object is a message or contains messages, and not an event of ``zettel export``."""
    try:
        json = JsonStream(io.BytesIO(head), str(path))
        while json.peek() == "[":
            next(json.steps(), None)
        return json.peek() == "{" and _begins_conversation(json)
    except BadRecord:
        return False


def _begins_conversation(json: JsonStream, wrapped: bool = False) -> bool:
    """Return whether the next object is a conversation or a message, judged by the head of the file."""
    keys: set[str] = set()
    is_role = False
    try:
        for key in json.members():
            keys.add(key)
            if key == "projectHash":  # a session of Gemini CLI
                return False
            if key == "messages" and json.peek() == "[":
                return any(json.peek() == "{" and _begins_conversation(json, wrapped=True) for _ in json.steps())
            if key in _WRAPPERS and json.peek() == "{" and _begins_conversation(json):
                return True
            if key == "role" or (key == "type" and wrapped):
                is_role = is_role or str(json.value()) in KNOWN_ROLES
    except BadRecord:  # longer than the head
        return is_role and keys.isdisjoint(_EVENT_KEYS)
    return is_role and (wrapped or keys.isdisjoint(_EVENT_KEYS) or not keys.isdisjoint(_MESSAGE_KEYS))


def read(path: Path, zone: tzinfo = timezone.utc, called: str | None = None) -> Iterator[Record]:
    """Yield the messages in order; one conversation at a time is in memory. Raises ``BadRecord``.

    Times without a zone are in ``zone``. ``called`` replaces the file's name.
    """
    keys, beginnings = ContentKeys(), ContentKeys()
    called = called or path.stem
    for entry in json_records(path):
        if isinstance(entry, Rejected):
            yield entry
        elif is_message(entry.value):
            session = text_at(entry.value, *_THREADS, blank=True) or _numbered(entry.value, called)
            yield from _message(entry.value, session, {}, entry.source, keys, zone)
        else:
            yield from _conversation(entry.value, called, entry.source, keys, beginnings, zone)


def _conversation(
    value: Any, file: str, source: Source, keys: ContentKeys, beginnings: ContentKeys, zone: tzinfo
) -> Iterator[Record]:
    fields = as_dict(value)
    inner = next((fields[key] for key in _WRAPPERS if isinstance(fields.get(key), dict)), fields)
    messages = value if isinstance(value, list) else inner.get("messages")
    if not isinstance(messages, list):
        yield rejected(source, "expected messages, or a message with role and content")
        return
    session = text_at(fields, *_IDS, blank=True) or f"{file}/{beginnings.key(file, None, _beginning(messages))[:12]}"
    model = inner.get("model")
    metadata = {"model": model} if isinstance(model, str) else {}
    for place, message in enumerate(messages, start=1):
        where = Source(file=source.file, position=f"{source.position}[{place}]")
        yield from _message(message, session, metadata, where, keys, zone)


def _numbered(fields: dict[str, Any], file: str) -> str:
    """Return the file with the number of a message's conversation, if the message states it."""
    number = next((fields[key] for key in _THREADS if isinstance(fields.get(key), int)), None)
    return file if number is None else f"{file}/{number}"


def _beginning(messages: list[Any]) -> str:
    """Return the first message, which stays the same when the conversation continues."""
    events = (event for entry in messages if is_message(entry) for event in message_events(unwrapped(entry)))
    first = next(events, {})
    return f"{first.get('speaker')}: {first.get('content') or first.get('payload')}"


def _message(
    message: Any, session: str, metadata: dict[str, Any], source: Source, keys: ContentKeys, zone: tzinfo
) -> Iterator[Record]:
    if not is_message(message):
        yield rejected(source, "expected a message with role and content")
        return
    message = unwrapped(message)
    own_id, model = message.get("id"), message.get("model")
    metadata = {**metadata, **({"model": model} if isinstance(model, str) else {})}
    try:
        occurred_at = any_time(value_at(message, *_TIMES), zone)
    except ValueError as error:
        yield rejected(source, str(error))
        return
    for nth, fields in enumerate(message_events(message), start=1):
        event = {**fields, "session": session, "occurred_at": occurred_at, "metadata": metadata | fields["metadata"]}
        if isinstance(own_id, str):
            event["id"] = f"{session}/{own_id}" + (f"/{nth}" if nth > 1 else "")
        yield record(event, source, keys)
