"""Slack's way of writing: mentions, links and signs in angle brackets, made readable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_BRACKETED = re.compile(r"<((?:[@#!]|[a-z]+:)[^<>]+)>")
_SIGNS = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))  # the only ones Slack writes so; the last must be last
_MOST_NESTED = 30  # how deep blocks of blocks are looked into

# What Slack writes for those who cannot be shown blocks.
_STOCK = ("This content can't be displayed.", "[no preview available]")

# Blocks whose elements are one run of text, and what is written for elements that are no text of their own.
_RUNS = ("rich_text_section", "rich_text_preformatted", "rich_text_quote")
_WRITTEN = {"user": ("user_id", "<@{}>"), "channel": ("channel_id", "<#{}>"), "usergroup": ("usergroup_id",
            "<!subteam^{}>"), "broadcast": ("range", "<!{}>"), "emoji": ("name", ":{}:"), "date": ("fallback", "{}"),
            "color": ("value", "{}")}  # fmt: skip


def readable(text: str, people: Mapping[str, str], channels: Mapping[str, str]) -> str:
    """``<@U1> see <https://a.example|the list>`` as ``@Ann see the list (https://a.example)``."""
    text = _BRACKETED.sub(lambda found: _told(found[1], people, channels), text)
    for sign, meant in _SIGNS:
        text = text.replace(sign, meant)
    return text


def _told(inner: str, people: Mapping[str, str], channels: Mapping[str, str]) -> str:
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
    """What a message says in Slack's own writing, with the messages it shares; without text, all that it shows."""
    text = _said(message.get("text"))
    attachments = _dicts(message.get("attachments"))
    if text:
        parts, attachments = [text], [one for one in attachments if _is_shared(one)]
    else:
        parts = list(_blocks(message.get("blocks"), 0))
    return "\n".join([*parts, *(part for one in attachments for part in _attachment(one))])


def _said(value: Any) -> str:
    return value if isinstance(value, str) and value.strip() not in ("", *_STOCK) else ""


def _is_shared(attachment: Mapping[str, Any]) -> bool:
    return attachment.get("is_share") is True or attachment.get("is_msg_unfurl") is True


def _attachment(one: Mapping[str, Any]) -> list[str]:
    parts = _texts(one, "pretext", "title", "text")
    parts += [": ".join(field) for each in _dicts(one.get("fields")) if (field := _texts(each, "title", "value"))]
    if not _said(one.get("text")):  # else the blocks say the same once more
        parts += _blocks(one.get("blocks"), 0)
    if not parts:
        return _texts(one, "fallback")
    if _is_shared(one):
        parts[0] = ": ".join([*_texts(one, "author_name"), parts[0]])
    return parts


def _texts(fields: Mapping[str, Any], *keys: str) -> list[str]:
    return [said for key in keys if (said := _said(fields.get(key)))]


def _blocks(value: Any, depth: int) -> Iterator[str]:
    if depth > _MOST_NESTED:
        return
    if isinstance(value, list):
        for one in value:
            yield from _blocks(one, depth + 1)
    elif isinstance(value, dict) and value.get("type") in _RUNS:
        run = "".join(map(_element, _dicts(value.get("elements")))).strip("\n")
        if run.strip():
            yield run
    elif isinstance(value, dict):
        text = value.get("text")
        if isinstance(text, str) and text.strip():
            yield text
        for key in ("text", "elements", "fields"):
            if not isinstance(value.get(key), str):
                yield from _blocks(value.get(key), depth + 1)


def _element(one: Mapping[str, Any]) -> str:
    """An element of a run in Slack's own writing, in which texts, here as they are, have signs that are escaped."""
    kind = str(one.get("type"))
    if kind == "link":
        return f"<{'|'.join(_escaped(part) for part in _texts(one, 'url', 'text'))}>"
    key, written = _WRITTEN.get(kind, ("text", "{}"))
    value = one.get(key)
    return written.format(_escaped(value)) if isinstance(value, str) else ""


def _escaped(text: str) -> str:
    for sign, meant in reversed(_SIGNS):
        text = text.replace(meant, sign)
    return text


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
