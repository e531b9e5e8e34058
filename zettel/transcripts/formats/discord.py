"""Discord channels as DiscordChatExporter saves them (JSON), and Discord's data package (folder or zip).

The id of a message is Discord's. A thread is a session, named by its id; other channels have none. The metadata
contains server and channel, the id of an answered message, and ``edited``. Mentions become readable, and files become
``[file: plan.pdf]``. Service messages (joins, pins, calls, new threads) are skipped. The data package contains only its
owner's messages: see :mod:`~zettel.transcripts.formats.discord_package`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zettel.model import Source
from zettel.transcripts import Record
from zettel.transcripts.archive_tree import File, files, is_tree, unmatched_files
from zettel.transcripts.parsing.content_blocks import media_text, with_files
from zettel.transcripts.parsing.json_keys import keys_in
from zettel.transcripts.parsing.json_records import open_json
from zettel.transcripts.parsing.json_values import as_dict, as_list, present, text_at
from zettel.transcripts.parsing.lines import head_text
from zettel.transcripts.parsing.timestamps import iso_time
from zettel.transcripts.records import record, rejected

from . import discord_package
from .discord_text import readable

name = "discord"
folders = True
gaps = True

TYPES = frozenset({"Default", "Reply", "ChatInputCommand", "ContextMenuCommand", "0", "19", "20", "23"})
"""Types of messages that people wrote; Discord's numbers appear if the exporter has no name for a type."""

_OF_PACKAGE = re.compile(r"README[^/]*|(?:[^/]+/)?(?:c?\d+/.*|(?:index|user)\.json)")
_BEGINNING = re.compile(r'\s*\{\s*"guild"\s*:\s*\{')


def sniff(path: Path, head: bytes) -> bool:
    """Recognise JSON that begins with ``guild`` and has ``channel``, and a data package."""
    if not is_tree(path):
        return _BEGINNING.match(head_text(head)) is not None and "channel" in keys_in(head)
    return discord_package.is_package(path)


def extra_files(path: Path) -> Iterator[File]:
    """Yield the files that do not belong to a data package."""
    return unmatched_files(path, _OF_PACKAGE)


def read(path: Path) -> Iterator[Record]:
    """Yield the messages of each channel. Raises ``BadRecord`` if the rest cannot be read."""
    return discord_package.read(path) if is_tree(path) else _channel(next(files(path)))


def _channel(file: File) -> Iterator[Record]:
    places: dict[str, dict[str, Any]] = {"guild": {}, "channel": {}}
    with open_json(file) as json:
        for key in json.members():
            if key in places:
                places[key] = as_dict(json.value())
            elif key == "messages" and json.peek() == "[":
                for place, message in enumerate(json.items(), start=1):
                    source = Source(file=file.where, position=str(place))
                    if not isinstance(message, dict):
                        yield rejected(source, "expected an object with a message")
                    elif str(message.get("type", "Default")) in TYPES:
                        yield from _message(message, source, **places)


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
    names = _texts(attached, "fileName")
    stickers = [media_text("sticker", name) for name in _texts(message.get("stickers"), "name")]
    texts = (_text(message), _text(forwarded), *stickers)
    content = with_files("\n".join(part for part in texts if part), names)
    if not content:
        return
    place = (text_at(guild, "name"), text_at(channel, "name", "id"))
    metadata = {
        "attachments": names,
        "forwarded_from" if forwarded else "reply_to": text_at(as_dict(message.get("reference")), "messageId"),
        "edited": bool(message.get("timestampEdited")),
    }
    fields = {
        "content": content,
        "id": text_at(message, "id"),
        "speaker": text_at(as_dict(message.get("author")), "nickname", "name", "id"),
        "occurred_at": occurred_at,
        "session": text_at(channel, "id") if "Thread" in str(channel.get("type")) else None,
        "metadata": {"channel": "/".join(part for part in place if part), **present(metadata)},
    }
    yield record(fields, source)


def _text(message: dict[str, Any]) -> str:
    """Return the text of a message, or of its embeds if it has none."""
    if text := text_at(message, "content"):
        people = {str(item.get("id")): text_at(item, "nickname", "name")
                  for item in map(as_dict, as_list(message.get("mentions")))}  # fmt: skip
        return readable(text, people).strip()
    return "\n".join(_texts(message.get("embeds"), "title", "description"))


def _texts(items: Any, *keys: str) -> list[str]:
    return [text for item in map(as_dict, as_list(items)) for key in keys if (text := text_at(item, key))]
