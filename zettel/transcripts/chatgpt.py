"""ChatGPT's export: ``conversations.json`` as it is, in its folder or in the zip that arrives by mail.

A conversation is a tree, because messages can be edited and answers asked for again; what is read is the branch
that was kept, from ``current_node`` up to the root. A message's id is the conversation's and its own, the session
is the conversation, ``conversation`` in the metadata is its title and ``model`` what answered. Left out are system
texts, custom instructions, memories that ChatGPT shows itself, what the page hides, and what a model thought in
silence. A model's call of a tool is a payload; what the tool answered has the role ``tool``. Pictures are told by
their names, or by what they were painted from. Times are seconds since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import Record
from .content_blocks import as_dict, as_list, parsed, told_media
from .conversation_files import Conversation, looks_like, messages
from .conversation_files import beside as beside
from .locomo import CONVERSATION
from .moments import unix_time
from .records import inside, record, rejected

name = "chatgpt"

folders = True
"""Reads folders and zips too."""

_MARKS = {"mapping", "parent", "children"}
_SILENT = frozenset({"user_editable_context", "model_editable_context", "thoughts", "reasoning_recap"})
_TO_PEOPLE = "all"
# Marks that the page draws as names, links, footnotes and cards, between private characters.
_MARK = re.compile("\ue200([^\ue200\ue201]*)\ue201")
_PARTS = "\ue202"
_NO_BLANK_BEFORE = " \t\n.,;:!?)"


def sniff(path: Path, head: bytes) -> bool:
    """JSON with a tree of messages, or a folder or zip with such a ``conversations.json``."""
    return looks_like(path, head, _MARKS)


def read(path: Path) -> Iterator[Record]:
    """The messages of all conversations; one conversation at a time is in memory. Raises ``BadRecord``."""
    return messages(path, "ChatGPT", "mapping", dict, _messages)


def _messages(conversation: Conversation) -> Iterator[Record]:
    fields = conversation.fields
    session = fields.get("conversation_id") or fields.get("id") or f"{fields.get('create_time')}"
    title = fields.get("title")
    called = title if isinstance(title, str) and title.strip() else None
    for node, said in _kept(fields["mapping"], fields.get("current_node")):
        if _is_unsaid(said):
            continue
        author, told = as_dict(said.get("author")), as_dict(said.get("metadata"))
        id = f"{session}/{said.get('id') or node}"
        source = inside(conversation.source, id)
        event: dict[str, Any] = {
            "id": id,
            "role": author.get("role"),
            "session": session,
        }
        tool = author.get("name") if author.get("role") == "tool" else None
        metadata = {CONVERSATION: called, "model": told.get("model_slug"), "tool": tool}
        try:
            event |= {"occurred_at": unix_time(said.get("create_time")), **_content(said, told)}
        except ValueError as error:
            yield rejected(source, str(error))
            continue
        event["metadata"] = {key: value for key, value in metadata.items() if isinstance(value, str) and value}
        if event["content"].strip() or event.get("payload") is not None:
            yield record(event, source)


def _kept(mapping: dict[str, Any], last: Any) -> list[tuple[str, dict[str, Any]]]:
    """Ids and messages of the branch that ends in ``last``, from the root on; a ring is cut."""
    if not isinstance(last, str) or last not in mapping:
        last = max(mapping, key=lambda node: _age(mapping[node]), default=None)
    branch: dict[str, dict[str, Any]] = {}
    while isinstance(last, str) and last in mapping and last not in branch:
        node = as_dict(mapping[last])
        branch[last] = as_dict(node.get("message"))
        last = node.get("parent")
    return [(node, said) for node, said in reversed(branch.items()) if said]


def _age(node: Any) -> float:
    told = as_dict(as_dict(node).get("message")).get("create_time")
    return told if isinstance(told, (int, float)) else 0.0


def _is_unsaid(said: dict[str, Any]) -> bool:
    told = as_dict(said.get("metadata"))
    return (
        as_dict(said.get("author")).get("role") == "system"
        or str(as_dict(said.get("content")).get("content_type")) in _SILENT
        or told.get("is_visually_hidden_from_conversation") is True
        or told.get("is_user_system_message") is True
    )


def _content(said: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """Content and payload of a message; ``ValueError`` for a kind that is not known."""
    content = as_dict(said.get("content"))
    files = {str(one.get("id")): one.get("name") for one in as_list(told.get("attachments")) if isinstance(one, dict)}
    texts = [_part(part, files) for part in as_list(content.get("parts"))]
    shown = " ".join(texts)
    for key in ("text", "result", "transcript"):
        if isinstance(content.get(key), str):
            texts.append(content[key])
    kind = content.get("content_type")
    if not texts and content and "parts" not in content:
        raise ValueError(f"its content is of a kind that is not known: {kind!r}")
    texts += [told_media("file", file) for file in files.values() if isinstance(file, str) and file not in shown]
    text = _marks_told("\n".join(text for text in texts if text.strip()))
    tool = said.get("recipient")
    if isinstance(tool, str) and tool != _TO_PEOPLE and as_dict(said.get("author")).get("role") == "assistant":
        return {"content": "", "payload": {"calls": [{"tool": tool, "input": parsed(text)}]} if text else None}
    title = content.get("title")
    return {"content": text, "title": title if isinstance(title, str) and title.strip() else None}


def _part(part: Any, files: dict[str, Any]) -> str:
    if isinstance(part, str):
        return part
    fields = as_dict(part)
    kind = str(fields.get("content_type") or "")
    if isinstance(fields.get("text"), str):  # what was spoken
        return str(fields["text"])
    if "image" in kind:
        painted = as_dict(as_dict(fields.get("metadata")).get("dalle")).get("prompt")
        pointer = str(fields.get("asset_pointer") or "").rpartition("/")[2]
        return told_media("image", painted or files.get(pointer))
    if "audio" in kind or "video" in kind:
        return ""  # its words stand beside it
    return told_media("file", fields.get("name"))


def _marks_told(text: str) -> str:
    """A text with its marks in words. One that says nothing goes, and the blank before it unless a word follows."""
    parts = _MARK.split(text)
    next_sign = ""
    for mark in range(len(parts) - 2, 0, -2):  # backwards, for what follows a mark may be marks that say nothing
        parts[mark] = _meant(parts[mark])
        next_sign = parts[mark + 1][:1] or next_sign
        if not parts[mark] and next_sign in _NO_BLANK_BEFORE:
            parts[mark - 1] = parts[mark - 1].rstrip(" ")
        next_sign = parts[mark][:1] or next_sign
    return "".join(parts)


def _meant(mark: str) -> str:
    """The name or link that a mark shows; footnotes and cards show what is not in the file."""
    kind, *told = mark.split(_PARTS)
    if kind == "entity" and told:
        name = as_list(parsed(told[0]))[1:2]
        return name[0] if name and isinstance(name[0], str) else ""
    if kind == "url" and told:
        label, address = told[0], "".join(told[1:2])
        is_link = address.startswith(("https://", "http://")) and address != label
        return f"{label} ({address})" if is_link else label
    return ""
