"""Telegram Desktop's export as JSON: ``result.json`` of one chat or of all, alone, in its folder or in a zip.

A message's id consists of the ids of chat and message. The metadata contains the chat (``channel``), the answered
message, the origin of a forwarded message, and ``edited``. Only the topics of a forum are sessions, because a chat has
no threads. Files become ``[file: form.pdf]``, stickers their emoji, places and polls their text. Service messages
(joins, calls, pins) and empty messages are skipped. Times are seconds since 1970; old exports have local times
without a zone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone, tzinfo
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from zettel.model import Source
from zettel.transcripts import Record
from zettel.transcripts.archive_tree import File, files, files_inside, is_tree, unmatched_files
from zettel.transcripts.parsing.content_blocks import media_text
from zettel.transcripts.parsing.json_keys import keys_in
from zettel.transcripts.parsing.json_records import open_json
from zettel.transcripts.parsing.json_stream import JsonStream
from zettel.transcripts.parsing.json_values import as_dict, as_list, text_at
from zettel.transcripts.parsing.lines import head_text
from zettel.transcripts.parsing.timestamps import unix_time
from zettel.transcripts.records import record, rejected

name = "telegram"
folders = True
gaps = True
local_times = True

SAVED = "Saved messages"
"""The name of the chat with oneself, which has none in the file."""

_FILE = "result.json"
_TYPE = re.compile(
    r'"type"\s*:\s*"(?:personal_chat|bot_chat|saved_messages|private_group'
    r'|private_supergroup|public_supergroup|private_channel|public_channel)"'
)
_OWN = re.compile(
    r"result\.json|(?:chats|contacts|css|files|images|js|lists|photos|profile_pictures|round_video_messages|stickers|"
    r"stories|video_files|voice_messages)/.*"
)
_MISSING_FILE = "(File "  # "(File not included. Change data exporting settings to download.)"
_KINDS = {"voice_message": "voice message", "video_message": "video", "video_file": "video", "audio_file": "audio",
          "animation": "animation"}  # fmt: skip
_OTHER_CHAT = "reply_to_peer_id"  # of an answer to a message in another chat, as "channel101"
_NUMBER = re.compile(r"\d+")
_MAX_NAME = 200  # characters: Telegram allows 128
_MAX_REMEMBERED = 100_000  # messages of a forum whose topic is remembered


class _Chat(NamedTuple):
    name: str
    id: str


def sniff(path: Path, head: bytes) -> bool:
    """Recognise JSON with Telegram's chat types and messages, and a folder or zip with such a ``result.json``."""
    if is_tree(path):
        results = _results(path)
        if not results:
            return False
        head = results[0].head()
    text, keys = head_text(head), keys_in(head)
    if not text.lstrip().startswith("{"):
        return False
    is_chat = "messages" in keys and _TYPE.search(text) is not None
    is_account = "about" in keys and "Telegram" in text and not keys.isdisjoint({"chats", "personal_information"})
    return is_chat or is_account


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """Yield the messages of all chats; times of old exports are in ``zone``. Raises ``BadRecord``."""
    for file in _results(path) if is_tree(path) else files(path):
        with open_json(file) as json:
            yield from _export(json, file, zone)


def extra_files(path: Path) -> Iterator[File]:
    """Yield the files of a folder or zip that do not belong to the export."""
    return unmatched_files(path, _OWN)


def _results(path: Path) -> list[File]:
    return [file for name, file in files_inside(path) if name == _FILE]


def _export(json: JsonStream, file: File, zone: tzinfo, *, is_chat: bool = False) -> Iterator[Record]:
    """Read the next object: a chat, or an account with lists of chats."""
    fields: dict[str, Any] = {}
    for key in json.members():
        first = json.peek()
        if key == "messages" and first == "[":
            yield from _messages(json, file, _chat(fields), zone)
        elif key in ("chats", "left_chats") and first == "{" and not is_chat:
            for inner in json.members():
                if inner == "list" and json.peek() == "[":
                    for _ in json.steps():
                        if json.peek() == "{":
                            yield from _export(json, file, zone, is_chat=True)
        elif key in ("name", "type", "id") and first not in "{[":
            fields[key] = json.value()


def _chat(fields: dict[str, Any]) -> _Chat:
    name = text_at(fields, "name")
    if name is None:
        name = SAVED if fields.get("type") == "saved_messages" else f"Deleted account {fields.get('id', '')}".strip()
    # The name is part of positions, so it must be printable and storable.
    name = "".join(char if char.isprintable() else "\ufffd" for char in name[:_MAX_NAME])
    return _Chat(name, str(fields.get("id", name)))


def _messages(json: JsonStream, file: File, chat: _Chat, zone: tzinfo) -> Iterator[Record]:
    topics: dict[int, str] = {}
    topic_ids: dict[int, int] = {}
    for place, message in enumerate(json.items(), start=1):
        source = Source(file=file.where, position=f"{chat.name}[{place}]")
        if not isinstance(message, dict):
            yield rejected(source, "expected an object with a message")
        elif message.get("type") == "service" and message.get("action") == "topic_created":
            if isinstance(number := message.get("id"), int):
                title = str(message.get("title", number))
                topics[number] = f"{title} ({number})" if title in topics.values() else title
        elif message.get("type") in ("message", None):
            yield from _message(message, source, chat, zone, _topic(message, topics, topic_ids))


def _topic(message: dict[str, Any], topics: dict[int, str], topic_ids: dict[int, int]) -> str | None:
    """Return a message's topic in a forum, where messages answer one another and the first answers the topic."""
    number, answered = message.get("id"), message.get("reply_to_message_id")
    if not topics or not isinstance(answered, int) or not isinstance(number, int) or _OTHER_CHAT in message:
        return None
    topic = answered if answered in topics else topic_ids.get(answered)
    if topic is None:
        return None
    topic_ids[number] = topic
    if len(topic_ids) > _MAX_REMEMBERED:
        del topic_ids[next(iter(topic_ids))]
    return topics[topic]


def _message(message: dict[str, Any], source: Source, chat: _Chat, zone: tzinfo, topic: str | None) -> Iterator[Record]:
    try:
        occurred_at = _moment(message, zone)
    except ValueError as error:
        yield rejected(source, f"date: {error}")
        return
    media = list(_media(message))
    content = "\n".join(part for part in (_text(message.get("text")).strip(), *(text for text, _ in media)) if part)
    if not content:
        return
    metadata: dict[str, Any] = {"channel": chat.name}
    if topic is not None:
        metadata["topic"] = topic
    if attachments := [name for _, name in media if name]:
        metadata["attachments"] = attachments
    if isinstance(answered := message.get("reply_to_message_id"), int):
        other_chat = _NUMBER.search(str(message.get(_OTHER_CHAT, "")))
        metadata["reply_to"] = f"{other_chat[0] if other_chat else chat.id}/{answered}"
    if isinstance(origin := message.get("forwarded_from") or message.get("saved_from"), str):
        metadata["forwarded_from"] = origin
    # Old exports give messages without an edit the first day of 1970.
    if isinstance(edited := message.get("edited"), str) and not edited.startswith("1970-"):
        metadata["edited"] = True
    number = message.get("id")
    fields = {
        "content": content,
        "id": f"{chat.id}/{number}" if isinstance(number, int) else None,
        "speaker": text_at(message, "from", "author", "from_id", blank=True),
        "occurred_at": occurred_at,
        "session": f"{chat.id}/{topic}" if topic is not None else None,
        "metadata": metadata,
    }
    yield record(fields, source)


def _text(value: Any) -> str:
    """Return a text without its markup; the address of a link follows its words."""
    return "".join(_part(part) for part in ([value] if isinstance(value, str) else as_list(value)))


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    entity = as_dict(part)
    text, link = entity.get("text"), entity.get("href")
    if not isinstance(text, str):
        return ""
    return f"{text} ({link})" if isinstance(link, str) and link != text else text


def _media(message: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield text and file name of everything that a message contains beside its text."""
    if isinstance(photo := message.get("photo"), str):
        yield media_text("photo"), _name(photo)
    kind = message.get("media_type")
    if kind == "sticker":
        yield media_text("sticker", message.get("sticker_emoji")), None
    elif isinstance(file := message.get("file"), str):
        file_name = message.get("file_name")
        # The name that the export gives to a recording is a number, which another export changes.
        shown = " – ".join(_texts(message, "performer", "title")) or file_name or (None if kind else _name(file))
        name = file_name if isinstance(file_name, str) else _name(file)
        yield media_text(_KINDS.get(str(kind), "file"), shown), name
    if place := as_dict(message.get("location_information")):
        coordinates = f"{place.get('latitude')}, {place.get('longitude')}"
        yield media_text("place", ", ".join([*_texts(message, "place_name", "address"), coordinates])), None
    if contact := as_dict(message.get("contact_information")):
        details = _texts(contact, "first_name", "last_name", "phone_number")
        yield media_text("contact", " ".join(filter(None, details))), None
    if poll := as_dict(message.get("poll")):
        answers = [_text(as_dict(answer).get("text")) for answer in as_list(poll.get("answers"))]
        yield media_text("poll", f"{_text(poll.get('question'))} {' / '.join(answers)}"), None


def _texts(fields: dict[str, Any], *keys: str) -> list[str]:
    return [text for key in keys if isinstance(text := fields.get(key), str)]


def _name(path: str) -> str | None:
    return None if path.startswith(_MISSING_FILE) else PurePosixPath(path).name


def _moment(message: dict[str, Any], zone: tzinfo) -> datetime:
    seconds = message.get("date_unixtime")
    if seconds is not None:
        moment = unix_time(int(seconds) if isinstance(seconds, str) and seconds.isdecimal() else seconds)
        if moment is not None:
            return moment
    raw = message.get("date")
    try:
        moment = datetime.fromisoformat(raw if isinstance(raw, str) else "")
    except ValueError:
        raise ValueError(f"{str(raw)[:40]!r} is not a date such as 2024-05-01T09:00:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)
