"""ChatGPT's export: ``conversations.json`` alone, in its folder or in its zip.

A conversation is a tree, because users edit messages and regenerate answers. The reader follows the branch from
``current_node`` up to the root. A message's id consists of the ids of conversation and message. The session is the
conversation. The metadata contains its title as ``conversation``, and the ``model``. System messages, custom
instructions, memories, hidden messages and reasoning are skipped. Tool calls are payloads, and tool results have the
role ``tool``. Pictures become their names or prompts in brackets. Times are seconds since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zettel.transcripts import Record
from zettel.transcripts.parsing.content_blocks import media_text, parsed
from zettel.transcripts.parsing.json_values import as_dict, as_list, dicts_in, text_at
from zettel.transcripts.parsing.timestamps import unix_time
from zettel.transcripts.records import at_position, record, rejected

from .conversation_files import AssistantConversation, branch_ending_in, looks_like, messages
from .conversation_files import extra_files as extra_files
from .locomo import CONVERSATION

name = "chatgpt"

folders = True
"""Reads folders and zips too."""

_MARKS = {"mapping", "parent", "children"}
_SKIPPED_TYPES = frozenset({"user_editable_context", "model_editable_context", "thoughts", "reasoning_recap"})
_TO_USER = "all"
# The page draws marks between private characters as names, links, footnotes and cards.
_MARK = re.compile("\ue200([^\ue200\ue201]*)\ue201")
_PARTS = "\ue202"
_NO_BLANK_BEFORE = " \t\n.,;:!?)"


def sniff(path: Path, head: bytes) -> bool:
    """Recognise JSON with a tree of messages, and a folder or zip with such a ``conversations.json``."""
    return looks_like(path, head, _MARKS)


def read(path: Path) -> Iterator[Record]:
    """Yield the messages of all conversations; one conversation at a time is in memory. Raises ``BadRecord``."""
    return messages(path, "ChatGPT", "mapping", dict, _messages)


def _messages(conversation: AssistantConversation) -> Iterator[Record]:
    fields = conversation.fields
    session = fields.get("conversation_id") or fields.get("id") or f"{fields.get('create_time')}"
    for node, message in _current_branch(fields["mapping"], fields.get("current_node")):
        author, details = as_dict(message.get("author")), as_dict(message.get("metadata"))
        role = author.get("role")
        if _is_hidden(message, role, details):
            continue
        id = f"{session}/{message.get('id') or node}"
        source = at_position(conversation.source, id)
        tool = author.get("name") if role == "tool" else None
        metadata = {CONVERSATION: text_at(fields, "title"), "model": details.get("model_slug"), "tool": tool}
        try:
            event: dict[str, Any] = {
                "id": id,
                "speaker": role,
                "session": session,
                "occurred_at": unix_time(message.get("create_time")),
                **_content(message, role, details),
                "metadata": {key: value for key, value in metadata.items() if isinstance(value, str) and value},
            }
        except ValueError as error:
            yield rejected(source, str(error))
            continue
        if event["content"].strip() or event.get("payload") is not None:
            yield record(event, source)


def _current_branch(mapping: dict[str, Any], last: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return ids and messages of the branch that ends in ``last``, or in the latest message."""
    if not isinstance(last, str) or last not in mapping:
        last = max(mapping, key=lambda node: _age(mapping[node]), default=None)
    nodes = {id: as_dict(node) for id, node in mapping.items()}
    branch = branch_ending_in(last, {id: node.get("parent") for id, node in nodes.items()})
    return [(id, message) for id in branch if (message := as_dict(nodes[id].get("message")))]


def _age(node: Any) -> float:
    time = as_dict(as_dict(node).get("message")).get("create_time")
    return time if isinstance(time, (int, float)) else 0.0


def _is_hidden(message: dict[str, Any], role: Any, details: dict[str, Any]) -> bool:
    return (
        role == "system"
        or str(as_dict(message.get("content")).get("content_type")) in _SKIPPED_TYPES
        or details.get("is_visually_hidden_from_conversation") is True
        or details.get("is_user_system_message") is True
    )


def _content(message: dict[str, Any], role: Any, details: dict[str, Any]) -> dict[str, Any]:
    """Return content, and payload or title. Raises ``ValueError`` for an unknown kind of content."""
    content = as_dict(message.get("content"))
    files = {str(item.get("id")): item.get("name") for item in dicts_in(details.get("attachments"))}
    texts = [_part(part, files) for part in as_list(content.get("parts"))]
    part_text = " ".join(texts)
    texts += [content[key] for key in ("text", "result", "transcript") if isinstance(content.get(key), str)]
    if not texts and content and "parts" not in content:
        raise ValueError(f"unknown content_type {content.get('content_type')!r}")
    texts += [media_text("file", file) for file in files.values() if isinstance(file, str) and file not in part_text]
    text = _without_marks("\n".join(text for text in texts if text.strip()))
    tool = message.get("recipient")
    if isinstance(tool, str) and tool != _TO_USER and role == "assistant":
        return {"content": "", "payload": {"calls": [{"tool": tool, "input": parsed(text)}]} if text else None}
    return {"content": text, "title": text_at(content, "title")}


def _part(part: Any, files: dict[str, Any]) -> str:
    if isinstance(part, str):
        return part
    fields = as_dict(part)
    kind = str(fields.get("content_type") or "")
    if isinstance(fields.get("text"), str):  # a transcript of speech
        return str(fields["text"])
    if "image" in kind:
        prompt = as_dict(as_dict(fields.get("metadata")).get("dalle")).get("prompt")
        pointer = str(fields.get("asset_pointer") or "").rpartition("/")[2]
        return media_text("image", prompt or files.get(pointer))
    if "audio" in kind or "video" in kind:
        return ""  # another part contains its transcript
    return media_text("file", fields.get("name"))


def _without_marks(text: str) -> str:
    """Return a text with its marks as words; an empty mark takes the blank before it along, except before a word."""
    parts = _MARK.split(text)
    next_char = ""
    for place in range(len(parts) - 2, 0, -2):  # backwards, because empty marks may follow one another
        parts[place] = _mark_text(parts[place])
        next_char = parts[place + 1][:1] or next_char
        if not parts[place] and next_char in _NO_BLANK_BEFORE:
            parts[place - 1] = parts[place - 1].rstrip(" ")
        next_char = parts[place][:1] or next_char
    return "".join(parts)


def _mark_text(mark: str) -> str:
    """Return the name or link of a mark; the export does not contain the text of footnotes and cards."""
    kind, *details = mark.split(_PARTS)
    if kind == "entity" and details:
        name = as_list(parsed(details[0]))[1:2]
        return name[0] if name and isinstance(name[0], str) else ""
    if kind == "url" and details:
        label, address = details[0], "".join(details[1:2])
        is_link = address.startswith(("https://", "http://")) and address != label
        return f"{label} ({address})" if is_link else label
    return ""
