"""Slack's way of writing: mentions, links and signs in angle brackets, made readable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_BRACKETED = re.compile(r"<((?:[@#!]|[a-z]+:)[^<>]+)>")
_SIGNS = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))  # the only ones Slack writes so; the last must be last
_MOST_NESTED = 30  # how deep blocks of blocks are looked into


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
    """What a message says in Slack's own writing; of one without text, what its attachments or blocks say."""
    text = message.get("text")
    if isinstance(text, str) and text.strip():
        return text
    parts = [part for one in _dicts(message.get("attachments")) for part in _attachment(one)]
    return "\n".join(parts or _blocks(message.get("blocks"), 0))


def _attachment(one: Mapping[str, Any]) -> Iterator[str]:
    told = [part for key in ("pretext", "title", "text") if isinstance(part := one.get(key), str) and part.strip()]
    fallback = one.get("fallback")
    yield from told or ([fallback] if isinstance(fallback, str) and fallback.strip() else [])


def _blocks(value: Any, depth: int) -> Iterator[str]:
    if depth > _MOST_NESTED:
        return
    if isinstance(value, list):
        for one in value:
            yield from _blocks(one, depth + 1)
    elif isinstance(value, dict):
        text = value.get("text")
        if isinstance(text, str) and text.strip():
            yield text
        for key in ("text", "elements", "fields"):
            if not isinstance(value.get(key), str):
                yield from _blocks(value.get(key), depth + 1)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
