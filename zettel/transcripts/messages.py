"""Lists of messages as OpenAI's and Anthropic's programs take them: JSON, or JSON lines.

Each line, or each entry of an array, is a conversation (``{"messages": […]}`` as for fine-tuning and batches, or a
bare list), or is a message, and then the file is one conversation, but for messages that tell theirs. System texts
are left out. A model's calls of tools are the payload, what a tool answered is an event with the role ``tool``. A
conversation's own id is the session, else one made of the file's name (in what is walked with its folder, for the
runs of an agent are often called alike) and how it begins. Where messages have ids and
times (``created_at``, as in exported threads), these are kept; one with neither gets an id
(:class:`~zettel.transcripts.records.ContentKeys`).
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import timezone, tzinfo
from pathlib import Path
from typing import Any

from zettel.errors import BadRecord
from zettel.model import Event, Source

from . import Record, Rejected
from .chat_messages import KNOWN_ROLES, is_message, told_in, unwrapped
from .content_blocks import as_dict
from .json_records import json_records
from .json_stream import JsonStream
from .moments import any_time
from .records import ContentKeys, record, rejected

name = "messages"
local_times = True
"""Its times may have no zone."""

_THREADS = ("conversation_id", "thread_id", "session_id")
_IDS = (*_THREADS, "custom_id", "id")
_TIMES = ("created_at", "timestamp", "created")
_WRAPPINGS = ("body", "params")  # of OpenAI's and of Anthropic's batches
_OF_EVENTS = Event.model_fields.keys() - {"role", "content"}
_OF_MESSAGES = frozenset({"object", "type", "tool_calls", "tool_call_id", "thread_id"})


def sniff(path: Path, head: bytes) -> bool:
    """JSON whose first object has messages with roles, or is one, and no event as ``zettel export`` writes it."""
    try:
        json = JsonStream(io.BytesIO(head), str(path))
        while json.peek() == "[":
            next(json.steps(), None)
        return json.peek() == "{" and _is_telling(json)
    except BadRecord:
        return False


def _is_telling(json: JsonStream, wrapped: bool = False) -> bool:
    """Whether the object that comes next is a conversation or a message, as far as the head of the file tells."""
    keys: set[str] = set()
    is_role = False
    try:
        for key in json.members():
            keys.add(key)
            if key == "messages" and json.peek() == "[":
                return any(json.peek() == "{" and _is_telling(json, wrapped=True) for _ in json.steps())
            if key in _WRAPPINGS and json.peek() == "{" and _is_telling(json):
                return True
            if key == "role" or (key == "type" and wrapped):
                is_role = is_role or str(json.value()) in KNOWN_ROLES
    except BadRecord:  # longer than the head
        return is_role and keys.isdisjoint(_OF_EVENTS)
    return is_role and (wrapped or keys.isdisjoint(_OF_EVENTS) or not keys.isdisjoint(_OF_MESSAGES))


def read(path: Path, zone: tzinfo = timezone.utc, called: str | None = None) -> Iterator[Record]:
    """The messages in order; one conversation at a time is in memory. Raises ``BadRecord``.

    ``zone`` is that of times that name none, ``called`` another name than the file's.
    """
    keys, beginnings = ContentKeys(), ContentKeys()
    called = called or path.stem
    for one in json_records(path):
        if isinstance(one, Rejected):
            yield one
        elif is_message(one.value):
            session = _named(one.value, _THREADS) or _numbered(one.value, called)
            yield from _told(one.value, session, {}, one.source, keys, zone)
        else:
            yield from _conversation(one.value, called, one.source, keys, beginnings, zone)


def _conversation(
    value: Any, file: str, source: Source, keys: ContentKeys, beginnings: ContentKeys, zone: tzinfo
) -> Iterator[Record]:
    fields = as_dict(value)
    inner = next((fields[key] for key in _WRAPPINGS if isinstance(fields.get(key), dict)), fields)
    messages = value if isinstance(value, list) else inner.get("messages")
    if not isinstance(messages, list):
        yield rejected(source, "expected messages, or a message with role and content")
        return
    session = _named(fields, _IDS) or f"{file}/{beginnings.key(file, None, _beginning(messages))[:12]}"
    model = inner.get("model")
    metadata = {"model": model} if isinstance(model, str) else {}
    for place, message in enumerate(messages, start=1):
        where = Source(file=source.file, position=f"{source.position}[{place}]")
        yield from _told(message, session, metadata, where, keys, zone)


def _named(fields: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    """The first of the ``keys`` that is told."""
    return next((fields[key] for key in keys if isinstance(fields.get(key), str)), None)


def _numbered(fields: dict[str, Any], file: str) -> str:
    """The conversation whose number a message tells, in its file; else the file."""
    number = next((fields[key] for key in _THREADS if isinstance(fields.get(key), int)), None)
    return file if number is None else f"{file}/{number}"


def _beginning(messages: list[Any]) -> str:
    """What was said first: it stays when the conversation goes on."""
    said = (told for one in messages if is_message(one) for told in told_in(unwrapped(one)))
    first = next(said, {})
    return f"{first.get('role')}: {first.get('content') or first.get('payload')}"


def _told(
    message: Any, session: str, metadata: dict[str, Any], source: Source, keys: ContentKeys, zone: tzinfo
) -> Iterator[Record]:
    if not is_message(message):
        yield rejected(source, "expected a message with role and content")
        return
    message = unwrapped(message)
    own, model = message.get("id"), message.get("model")
    try:
        occurred_at = any_time(next((message[key] for key in _TIMES if key in message), None), zone)
    except ValueError as error:
        yield rejected(source, str(error))
        return
    for nth, fields in enumerate(told_in(message), start=1):
        told = {**metadata, **({"model": model} if isinstance(model, str) else {}), **fields["metadata"]}
        id = {"id": f"{session}/{own}" + (f"/{nth}" if nth > 1 else "")} if isinstance(own, str) else {}
        event = {**fields, **id, "session": session, "occurred_at": occurred_at, "metadata": told}
        yield record(event, source, keys)
