"""Discord: channels as DiscordChatExporter saves them (JSON), and Discord's own data package (folder or zip).

A message's id is Discord's. The server and channel are in the metadata, with what a message answers and whether
it was edited. A thread is a session, called by its id; other channels have none. Mentions are made readable, and
files told as ``[file: plan.pdf]``. Left out is what nobody said: who joined, pins, calls, new threads. For the data
package, which has only what its owner wrote, see :mod:`~zettel.transcripts.discord_package`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zettel.model import Source

from . import Record, discord_package
from .content_blocks import as_dict, as_list, told_media
from .discord_text import readable
from .json_keys import keys_in
from .json_stream import JsonStream
from .lines import head_text
from .moments import iso_time
from .records import record, rejected
from .trees import File, files, is_tree, others

name = "discord"
folders = True
gaps = True

SAID = frozenset({"Default", "Reply", "ChatInputCommand", "ContextMenuCommand", "0", "19", "20", "23"})
"""Types of messages that somebody wrote; Discord's numbers stand where the exporter had no name for them."""

_OF_PACKAGE = re.compile(r"README[^/]*|(?:[^/]+/)?(?:c?\d+/.*|(?:index|user)\.json)")
_BEGINNING = re.compile(r'\s*\{\s*"guild"\s*:\s*\{')


def sniff(path: Path, head: bytes) -> bool:
    """JSON that begins with a ``guild`` and goes on with a ``channel``; or a data package."""
    if not is_tree(path):
        return _BEGINNING.match(head_text(head)) is not None and "channel" in keys_in(head)
    return discord_package.is_package(list(files(path)))


def beside(path: Path) -> Iterator[File]:
    """Files in a data package's folder or zip that neither tell whose it is nor belong to a channel or server."""
    return others(path, _OF_PACKAGE)


def read(path: Path) -> Iterator[Record]:
    """The messages, channel by channel as they stand there. Raises ``BadRecord`` where no more can be read."""
    if is_tree(path):
        yield from discord_package.read(list(files(path)))
    else:
        yield from _channel(next(files(path)))


def _channel(file: File) -> Iterator[Record]:
    guild: dict[str, Any] = {}
    channel: dict[str, Any] = {}
    with file.open() as stream:
        json = JsonStream(stream, file.where)
        for key in json.members():
            if key == "guild":
                guild = as_dict(json.value())
            elif key == "channel":
                channel = as_dict(json.value())
            elif key == "messages" and json.peek() == "[":
                for place, message in enumerate(json.items(), start=1):
                    source = Source(file=file.where, position=str(place))
                    if not isinstance(message, dict):
                        yield rejected(source, "expected an object with a message")
                    elif str(message.get("type", "Default")) in SAID:
                        yield from _message(message, source, guild, channel)
        json.end()


def _message(
    message: dict[str, Any], source: Source, guild: dict[str, Any], channel: dict[str, Any]
) -> Iterator[Record]:
    try:
        occurred_at = iso_time(message.get("timestamp"))
    except ValueError as error:
        yield rejected(source, f"timestamp: {error}")
        return
    forwarded = as_dict(message.get("forwardedMessage"))
    attached = [*as_list(message.get("attachments")), *as_list(forwarded.get("attachments"))]
    names = [name for one in attached if (name := _text(as_dict(one), "fileName"))]
    stickers = [name for one in as_list(message.get("stickers")) if (name := _text(as_dict(one), "name"))]
    content = "\n".join(
        [
            *(part for part in (_said(message), _said(forwarded)) if part),
            *(told_media("sticker", name) for name in stickers),
            *(told_media("file", name) for name in names),
        ]
    )
    if not content:
        return
    where = [part for part in (_text(guild, "name"), _text(channel, "name") or _text(channel, "id")) if part]
    metadata: dict[str, Any] = {"channel": "/".join(where)}
    if names:
        metadata["attachments"] = names
    if answered := _text(as_dict(message.get("reference")), "messageId"):
        metadata["forwarded_from" if forwarded else "reply_to"] = answered
    if message.get("timestampEdited"):
        metadata["edited"] = True
    author = as_dict(message.get("author"))
    is_thread = "Thread" in str(channel.get("type"))
    fields = {
        "content": content,
        "id": _text(message, "id"),
        "role": _text(author, "nickname") or _text(author, "name") or _text(author, "id"),
        "occurred_at": occurred_at,
        "session": _text(channel, "id") if is_thread else None,
        "metadata": metadata,
    }
    yield record(fields, source)


def _said(message: dict[str, Any]) -> str:
    """The words; of a message without any, those of its embeds."""
    text = message.get("content")
    if isinstance(text, str) and text.strip():
        people = {str(one.get("id")): _text(one, "nickname") or _text(one, "name")
                  for one in map(as_dict, as_list(message.get("mentions")))}  # fmt: skip
        return readable(text, people).strip()
    embeds = map(as_dict, as_list(message.get("embeds")))
    return "\n".join(part for one in embeds for key in ("title", "description") if (part := _text(one, key)))


def _text(fields: dict[str, Any], key: str) -> str | None:
    value = fields.get(key)
    return value if isinstance(value, str) and value.strip() else None
