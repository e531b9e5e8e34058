"""Claude.ai's export: ``conversations.json`` as it is, in its folder or in the zip that arrives by mail.

A message's id is the conversation's and its own, the session is the conversation, and ``conversation`` in the
metadata is its name. Who is called ``human`` there has the role ``user``. Calls of tools, with what came back, are
the payload. An attachment whose text was extracted is an event of its own with the file's name as title; other files
are named in brackets. Where the file tells which messages follow which, the branch is read that was kept. What
Claude thought in silence is left out. Times are ISO 8601 with their zone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import Record
from .content_blocks import ROLES, as_list, content_of, told_media
from .conversation_files import Conversation, looks_like, messages
from .conversation_files import beside as beside
from .locomo import CONVERSATION
from .moments import iso_time
from .records import inside, record, rejected

name = "claude"

folders = True
"""Reads folders and zips too."""

PASTED = "pasted text"
"""What a text is called that was pasted into the page and became an attachment without a name."""

_MARKS = {"chat_messages", "uuid"}


def sniff(path: Path, head: bytes) -> bool:
    """JSON with ``chat_messages``, or a folder or zip with such a ``conversations.json``."""
    return looks_like(path, head, _MARKS)


def read(path: Path) -> Iterator[Record]:
    """The messages of all conversations; one conversation at a time is in memory. Raises ``BadRecord``."""
    return messages(path, "Claude", "chat_messages", list, _messages)


def _messages(conversation: Conversation) -> Iterator[Record]:
    fields = conversation.fields
    session = fields.get("uuid") or f"{fields.get('created_at')}"
    told = {CONVERSATION: fields.get("name"), "model": fields.get("model")}
    metadata = {key: value for key, value in told.items() if isinstance(value, str) and value.strip()}
    for place, said in _kept(fields):
        if not isinstance(said, dict):
            where = inside(conversation.source, f"{session}/{place}")
            yield rejected(where, "expected a message with sender and content")
            continue
        id = f"{session}/{said.get('uuid') or place}"
        source = inside(conversation.source, id)
        sender = said.get("sender")
        event: dict[str, Any] = {
            "role": ROLES.get(sender, sender) if isinstance(sender, str) else sender,
            "session": session,
            "metadata": metadata,
        }
        try:
            event["occurred_at"] = iso_time(said.get("created_at"))
        except ValueError as error:
            yield rejected(source, str(error))
            continue
        attached = [one for one in as_list(said.get("attachments")) if isinstance(one, dict)]
        content, payload = _content(said, attached)
        if content or payload:
            yield record({"id": id, "content": content, "payload": payload, **event}, source)
        for nth, file in enumerate(attached, start=1):
            if isinstance(file.get("extracted_content"), str) and file["extracted_content"].strip():
                written = {"id": f"{id}/{nth}", "title": _named(file), "content": file["extracted_content"]}
                yield record({**event, **written}, source)


def _kept(fields: dict[str, Any]) -> list[tuple[int, Any]]:
    """Places and messages, from the first on, of the branch that ends in the current or the latest message."""
    messages = list(enumerate(fields["chat_messages"], start=1))
    known = {one["uuid"]: (place, one) for place, one in messages if isinstance(one, dict) and _is_linked(one)}
    begun = {one["parent_message_uuid"] for _, one in known.values()} - known.keys()
    if len(known) < len(messages) or len(begun) > 1:  # not all say what they follow, or one that they follow is missing
        return messages
    last = fields.get("current_leaf_message_uuid")
    if not isinstance(last, str) or last not in known:
        last = max(known, key=lambda uuid: (str(known[uuid][1].get("created_at")), known[uuid][0]), default=None)
    branch: dict[str, tuple[int, Any]] = {}
    while isinstance(last, str) and last in known and last not in branch:
        branch[last] = known[last]
        last = known[last][1]["parent_message_uuid"]
    return list(reversed(branch.values()))


def _is_linked(message: dict[str, Any]) -> bool:
    return isinstance(message.get("uuid"), str) and isinstance(message.get("parent_message_uuid"), str)


def _content(said: dict[str, Any], attached: list[dict[str, Any]]) -> tuple[str, dict[str, Any] | None]:
    """What was said with the files it came with, and the calls of tools."""
    content = content_of(said.get("content"))
    text, calls = content.text, content.calls
    if not text and not calls:
        text = said["text"] if isinstance(said.get("text"), str) else ""
    files = [one for key in ("files", "files_v2") for one in as_list(said.get(key)) if isinstance(one, dict)]
    names = dict.fromkeys(told_media("file", _named(file) or PASTED) for file in [*attached, *files])
    answers = [
        {"tool": answer.tool, "output": answer.said} | ({"id": answer.call} if answer.call else {})
        for answer in content.answers
    ]
    payload = ({"calls": calls} if calls else {}) | ({"answers": answers} if answers else {})
    return "\n".join([*([text] if text.strip() else []), *names]), payload or None


def _named(file: dict[str, Any]) -> str | None:
    told = file.get("file_name")
    return told if isinstance(told, str) and told.strip() else None
