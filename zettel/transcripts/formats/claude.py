"""Claude.ai's export: ``conversations.json`` alone, in its folder or in its zip.

A message's id consists of the ids of conversation and message. The session is the conversation, and the metadata
contains its name as ``conversation``. The sender ``human`` becomes the speaker ``user``. Tool calls and their results
are the payload. An attachment with extracted text is an event of its own with the file's name as title; other files
become their names in brackets. If the messages state their parents, the reader follows the current branch. Reasoning
is skipped. Times are ISO 8601 with their zone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zettel.transcripts import Record
from zettel.transcripts.parsing.content_blocks import ROLES, content_of, media_text
from zettel.transcripts.parsing.json_values import dicts_in, present, text_at
from zettel.transcripts.parsing.timestamps import iso_time
from zettel.transcripts.records import at_position, record, rejected

from .conversation_files import AssistantConversation, branch_ending_in, looks_like, messages
from .conversation_files import extra_files as extra_files
from .locomo import CONVERSATION

name = "claude"

folders = True
"""Reads folders and zips too."""

PASTED = "pasted text"
"""The name of a pasted text that became an attachment without a name."""

_MARKS = {"chat_messages", "uuid"}


def sniff(path: Path, head: bytes) -> bool:
    """Recognise JSON with ``chat_messages``, and a folder or zip with such a ``conversations.json``."""
    return looks_like(path, head, _MARKS)


def read(path: Path) -> Iterator[Record]:
    """Yield the messages of all conversations; one conversation at a time is in memory. Raises ``BadRecord``."""
    return messages(path, "Claude", "chat_messages", list, _messages)


def _messages(conversation: AssistantConversation) -> Iterator[Record]:
    fields = conversation.fields
    session = fields.get("uuid") or f"{fields.get('created_at')}"
    metadata = present({CONVERSATION: text_at(fields, "name"), "model": text_at(fields, "model")})
    for place, turn in _current_branch(fields["chat_messages"], fields.get("current_leaf_message_uuid")):
        if not isinstance(turn, dict):
            where = at_position(conversation.source, f"{session}/{place}")
            yield rejected(where, "expected a message with sender and content")
            continue
        id = f"{session}/{turn.get('uuid') or place}"
        source = at_position(conversation.source, id)
        sender = turn.get("sender")
        try:
            event: dict[str, Any] = {
                "speaker": ROLES.get(sender, sender) if isinstance(sender, str) else sender,
                "session": session,
                "metadata": metadata,
                "occurred_at": iso_time(turn.get("created_at")),
            }
        except ValueError as error:
            yield rejected(source, str(error))
            continue
        attached = dicts_in(turn.get("attachments"))
        content, payload = _content(turn, attached)
        if content or payload:
            yield record({"id": id, "content": content, "payload": payload, **event}, source)
        for nth, file in enumerate(attached, start=1):
            if text := text_at(file, "extracted_content"):
                yield record({**event, "id": f"{id}/{nth}", "title": _file_name(file), "content": text}, source)


def _current_branch(turns: list[Any], last: Any) -> list[tuple[int, Any]]:
    """Return places and messages of the branch that ends in ``last``, or in the latest message.

    If a message does not state its parent, or a parent is missing, all messages belong to the branch.
    """
    messages = list(enumerate(turns, start=1))
    linked = {item["uuid"]: (place, item) for place, item in messages if isinstance(item, dict) and _is_linked(item)}
    parents = {uuid: item["parent_message_uuid"] for uuid, (_, item) in linked.items()}
    if len(linked) < len(messages) or len({*parents.values()} - parents.keys()) > 1:
        return messages
    if not isinstance(last, str) or last not in linked:
        last = max(linked, key=lambda uuid: (str(linked[uuid][1].get("created_at")), linked[uuid][0]), default=None)
    return [linked[uuid] for uuid in branch_ending_in(last, parents)]


def _is_linked(message: dict[str, Any]) -> bool:
    return isinstance(message.get("uuid"), str) and isinstance(message.get("parent_message_uuid"), str)


def _content(turn: dict[str, Any], attached: list[dict[str, Any]]) -> tuple[str, dict[str, Any] | None]:
    """Return the text with the names of files, and the tool calls with their results."""
    content = content_of(turn.get("content"))
    text = content.text if content.text or content.calls else text_at(turn, "text") or ""
    files = [*attached, *dicts_in(turn.get("files")), *dicts_in(turn.get("files_v2"))]
    names = dict.fromkeys(media_text("file", _file_name(file) or PASTED) for file in files)
    results = [
        {"tool": result.tool, "output": result.value} | ({"id": result.call} if result.call else {})
        for result in content.results
    ]
    payload = present({"calls": content.calls, "answers": results})
    return "\n".join([*([text] if text.strip() else []), *names]), payload or None


def _file_name(file: dict[str, Any]) -> str | None:
    return text_at(file, "file_name")
