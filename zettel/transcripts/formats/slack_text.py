"""Conversion of Slack's markup and blocks to plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from zettel.transcripts.parsing.json_values import dicts_in

_BRACKETED = re.compile(r"<((?:[@#!]|[a-z]+:)[^<>]+)>")
_ESCAPES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))  # the ampersand must come last
_MAX_DEPTH = 30  # of blocks in blocks

# Texts for clients that cannot show blocks.
_PLACEHOLDERS = ("This content can't be displayed.", "[no preview available]")

# Blocks whose elements form one text, and the key and markup of elements without a text.
_RUNS = ("rich_text_section", "rich_text_preformatted", "rich_text_quote")
_ELEMENTS = {"user": ("user_id", "<@{}>"), "channel": ("channel_id", "<#{}>"), "usergroup": ("usergroup_id",
            "<!subteam^{}>"), "broadcast": ("range", "<!{}>"), "emoji": ("name", ":{}:"), "date": ("fallback", "{}"),
            "color": ("value", "{}")}  # fmt: skip


def readable(text: str, people: Mapping[str, str], channels: Mapping[str, str]) -> str:
    """``<@U1> see <https://a.example|the list>`` as ``@Ann see the list (https://a.example)``."""
    text = _BRACKETED.sub(lambda match: _link_text(match[1], people, channels), text)
    for escape, char in _ESCAPES:
        text = text.replace(escape, char)
    return text


def _link_text(inner: str, people: Mapping[str, str], channels: Mapping[str, str]) -> str:
    target, _, label = inner.partition("|")
    if target.startswith("@"):
        return f"@{people.get(target[1:]) or label or target[1:]}"
    if target.startswith("#"):
        return f"#{label or channels.get(target[1:]) or target[1:]}"
    if target.startswith("!"):  # <!here>, <!subteam^S1|@crew>, <!date^1700000000^{date}|14 November>
        return label or f"@{target[1:].partition('^')[0]}"
    address = target.removeprefix("mailto:").removeprefix("tel:")
    if not label or label in (address, target.partition("://")[2].rstrip("/")):
        return address
    return f"{label} ({address})"


def text_of(message: Mapping[str, Any]) -> str:
    """Return a message in Slack's markup with the messages that it shares; without text, its blocks and attachments."""
    text = _text(message.get("text"))
    attachments = dicts_in(message.get("attachments"))
    if text:
        parts, attachments = [text], [item for item in attachments if _is_shared(item)]
    else:
        parts = list(_blocks(message.get("blocks"), 0))
    return "\n".join([*parts, *(part for item in attachments for part in _attachment(item))])


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value.strip() not in ("", *_PLACEHOLDERS) else ""


def _is_shared(attachment: Mapping[str, Any]) -> bool:
    return attachment.get("is_share") is True or attachment.get("is_msg_unfurl") is True


def _attachment(item: Mapping[str, Any]) -> list[str]:
    parts = _texts(item, "pretext", "title", "text")
    parts += [": ".join(field) for pair in dicts_in(item.get("fields")) if (field := _texts(pair, "title", "value"))]
    if not _text(item.get("text")):  # else the blocks repeat it
        parts += _blocks(item.get("blocks"), 0)
    if not parts:
        return _texts(item, "fallback")
    if _is_shared(item):
        parts[0] = ": ".join([*_texts(item, "author_name"), parts[0]])
    return parts


def _texts(fields: Mapping[str, Any], *keys: str) -> list[str]:
    return [text for key in keys if (text := _text(fields.get(key)))]


def _blocks(value: Any, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _blocks(item, depth + 1)
    elif isinstance(value, dict) and value.get("type") in _RUNS:
        run = "".join(map(_element, dicts_in(value.get("elements")))).strip("\n")
        if run.strip():
            yield run
    elif isinstance(value, dict):
        text = value.get("text")
        if isinstance(text, str) and text.strip():
            yield text
        for key in ("text", "elements", "fields"):
            if not isinstance(value.get(key), str):
                yield from _blocks(value.get(key), depth + 1)


def _element(item: Mapping[str, Any]) -> str:
    """Return an element of a run in Slack's markup, with its text escaped."""
    kind = str(item.get("type"))
    if kind == "link":
        return f"<{'|'.join(_escaped(part) for part in _texts(item, 'url', 'text'))}>"
    key, markup = _ELEMENTS.get(kind, ("text", "{}"))
    value = item.get(key)
    return markup.format(_escaped(value)) if isinstance(value, str) else ""


def _escaped(text: str) -> str:
    for escape, char in reversed(_ESCAPES):
        text = text.replace(char, escape)
    return text
