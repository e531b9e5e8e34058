"""Telegram Desktop's export as JSON: ``result.json`` of one chat or of all, alone, in its folder or a zip of it.

A message's id is its chat's and Telegram's own for it. The chat is in the metadata (``channel``); ``session`` is None
except in a forum's topics, as a chat has no threads. What a message answers, where it was forwarded from and that it
was edited is in the metadata, too. Files are told as ``[file: form.pdf]``, stickers by their sign, places and polls
by what they show. Service messages (who joined, calls, pins) are left out, and empty ones. Times are Telegram's own
seconds since 1970, or, in old exports, those of the clock of the machine that made it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone, tzinfo
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from zettel.model import Source

from . import HEAD_BYTES, Record
from .content_blocks import as_dict, as_list, told_media
from .json_keys import keys_in
from .json_stream import JsonStream
from .lines import head_text
from .moments import unix_time
from .records import record, rejected
from .trees import File, files, is_tree, others, wrapping

name = "telegram"
folders = True
gaps = True
local_times = True

SAVED = "Saved messages"
"""What the chat with oneself is called; it has no name in the file."""

_FILE = "result.json"
_TYPE = re.compile(
    r'"type"\s*:\s*"(?:personal_chat|bot_chat|saved_messages|private_group'
    r'|private_supergroup|public_supergroup|private_channel|public_channel)"'
)
_OWN = re.compile(
    r"result\.json|(?:chats|contacts|css|files|images|js|lists|photos|profile_pictures|round_video_messages|stickers|"
    r"stories|video_files|voice_messages)/.*"
)
_NOT_THERE = "(File "  # "(File not included. Change data exporting settings to download.)"
_KINDS = {"voice_message": "voice message", "video_message": "video", "video_file": "video", "audio_file": "audio",
          "animation": "animation"}  # fmt: skip


_ELSEWHERE = "reply_to_peer_id"  # of a message that answers one in another chat, as "channel101"
_NUMBER = re.compile(r"\d+")
_LONGEST_NAME = 200  # characters: Telegram allows 128
_REMEMBERED = 100_000  # messages of a forum whose topic is known for those that answer them


class _Chat(NamedTuple):
    name: str
    id: str


def sniff(path: Path, head: bytes) -> bool:
    """JSON that names a chat's type and messages as Telegram does, or a folder or zip with such a ``result.json``."""
    if is_tree(path):
        found = _results(path)
        if not found:
            return False
        with found[0].open() as stream:
            head = stream.read(HEAD_BYTES)
    text, keys = head_text(head), keys_in(head)
    if not text.lstrip().startswith("{"):
        return False
    one = "messages" in keys and _TYPE.search(text) is not None
    return one or ("about" in keys and "Telegram" in text and not keys.isdisjoint({"chats", "personal_information"}))


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """The messages of all chats in order. ``zone`` is that of old exports' times. Raises ``BadRecord``."""
    for file in _results(path) if is_tree(path) else files(path):
        with file.open() as stream:
            json = JsonStream(stream, file.where)
            yield from _export(json, file, zone)
            json.end()


def beside(path: Path) -> Iterator[File]:
    """Files in an export's folder or zip that are neither its messages nor were sent with them."""
    return others(path, _OWN)


def _results(path: Path) -> list[File]:
    """The file of an export's folder or zip; none if it is none."""
    found = list(files(path))
    base = wrapping(found)
    return [file for file in found if file.name == f"{base}{_FILE}"]


def _export(json: JsonStream, file: File, zone: tzinfo, *, is_chat: bool = False) -> Iterator[Record]:
    """The object that comes next: a chat, or an account with lists of them."""
    told: dict[str, Any] = {}
    for key in json.members():
        first = json.peek()
        if key == "messages" and first == "[":
            yield from _messages(json, file, _chat(told), zone)
        elif key in ("chats", "left_chats") and first == "{" and not is_chat:
            for inner in json.members():
                if inner == "list" and json.peek() == "[":
                    for _ in json.steps():
                        if json.peek() == "{":
                            yield from _export(json, file, zone, is_chat=True)
        elif key in ("name", "type", "id") and first not in "{[":
            told[key] = json.value()


def _chat(told: dict[str, Any]) -> _Chat:
    name = told.get("name")
    if not isinstance(name, str) or not name.strip():
        name = SAVED if told.get("type") == "saved_messages" else f"Deleted account {told.get('id', '')}".strip()
    # It is a place in the file as well, and must be one that can be told and stored.
    name = "".join(sign if sign.isprintable() else "\ufffd" for sign in name[:_LONGEST_NAME])
    return _Chat(name, str(told.get("id", name)))


def _messages(json: JsonStream, file: File, chat: _Chat, zone: tzinfo) -> Iterator[Record]:
    topics: dict[int, str] = {}
    of: dict[int, int] = {}
    for place, message in enumerate(json.items(), start=1):
        source = Source(file=file.where, position=f"{chat.name}[{place}]")
        if not isinstance(message, dict):
            yield rejected(source, "expected an object with a message")
        elif message.get("type") == "service" and message.get("action") == "topic_created":
            if isinstance(number := message.get("id"), int):
                title = str(message.get("title", number))
                topics[number] = f"{title} ({number})" if title in topics.values() else title
        elif message.get("type") in ("message", None):
            yield from _message(message, source, chat, zone, _topic(message, topics, of))


def _topic(message: dict[str, Any], topics: dict[int, str], of: dict[int, int]) -> str | None:
    """The forum's topic that a message is in: messages there answer one another, the first the topic itself."""
    number, answered = message.get("id"), message.get("reply_to_message_id")
    if not topics or not isinstance(answered, int) or not isinstance(number, int) or _ELSEWHERE in message:
        return None
    topic = answered if answered in topics else of.get(answered)
    if topic is None:
        return None
    of[number] = topic
    if len(of) > _REMEMBERED:
        del of[next(iter(of))]
    return topics[topic]


def _message(message: dict[str, Any], source: Source, chat: _Chat, zone: tzinfo, topic: str | None) -> Iterator[Record]:
    try:
        occurred_at = _moment(message, "date", zone)
    except ValueError as error:
        yield rejected(source, f"date: {error}")
        return
    text, names = _text(message), _media(message)
    content = "\n".join(part for part in (text.strip(), *(told for told, _ in names)) if part)
    if not content:
        return
    metadata: dict[str, Any] = {"channel": chat.name}
    if topic is not None:
        metadata["topic"] = topic
    if attachments := [name for _, name in names if name]:
        metadata["attachments"] = attachments
    if isinstance(answered := message.get("reply_to_message_id"), int):
        elsewhere = _NUMBER.search(str(message.get(_ELSEWHERE, "")))
        metadata["reply_to"] = f"{elsewhere[0] if elsewhere else chat.id}/{answered}"
    if isinstance(origin := message.get("forwarded_from") or message.get("saved_from"), str):
        metadata["forwarded_from"] = origin
    if _was_edited(message):
        metadata["edited"] = True
    number = message.get("id")
    fields = {
        "content": content,
        "id": f"{chat.id}/{number}" if isinstance(number, int) else None,
        "role": next((one for key in ("from", "author", "from_id") if isinstance(one := message.get(key), str)), None),
        "occurred_at": occurred_at,
        "session": f"{chat.id}/{topic}" if topic is not None else None,
        "metadata": metadata,
    }
    yield record(fields, source)


def _text(message: dict[str, Any]) -> str:
    """The text without its marks; a link that is hidden behind words is told after them."""
    text = message.get("text")
    parts = [text] if isinstance(text, str) else as_list(text)
    return "".join(_part(part) for part in parts)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    entity = as_dict(part)
    text, link = entity.get("text"), entity.get("href")
    if not isinstance(text, str):
        return ""
    return f"{text} ({link})" if isinstance(link, str) and link != text else text


def _media(message: dict[str, Any]) -> list[tuple[str, str | None]]:
    """What comes with a message, as it is told, and the file's name if it has one."""
    found: list[tuple[str, str | None]] = []
    if isinstance(photo := message.get("photo"), str):
        found.append((told_media("photo"), _name(photo)))
    kind = message.get("media_type")
    if kind == "sticker":
        found.append((told_media("sticker", message.get("sticker_emoji")), None))
    elif isinstance(file := message.get("file"), str):
        named = message.get("file_name")
        title = " – ".join(one for key in ("performer", "title") if isinstance(one := message.get(key), str))
        # Without a name of its own, a recording is called by its number in the export, which another one changes.
        told = title or named or (None if kind else _name(file))
        found.append(
            (told_media(_KINDS.get(str(kind), "file"), told), named if isinstance(named, str) else _name(file))
        )
    place = as_dict(message.get("location_information"))
    if place:
        where = f"{place.get('latitude')}, {place.get('longitude')}"
        named = [one for key in ("place_name", "address") if isinstance(one := message.get(key), str)]
        found.append((told_media("place", ", ".join([*named, where])), None))
    contact = as_dict(message.get("contact_information"))
    if contact:
        told = (contact.get(key) for key in ("first_name", "last_name", "phone_number"))
        found.append((told_media("contact", " ".join(one for one in told if isinstance(one, str) and one)), None))
    poll = as_dict(message.get("poll"))
    if poll:
        answers = [_text(as_dict(one)) for one in as_list(poll.get("answers"))]
        question = poll.get("question")
        asked = _text({"text": question})
        found.append((told_media("poll", f"{asked} {' / '.join(answers)}"), None))
    return found


def _name(path: str) -> str | None:
    return None if path.startswith(_NOT_THERE) else PurePosixPath(path).name


def _was_edited(message: dict[str, Any]) -> bool:
    """Old exports give every message a date of editing, the beginning of time where there was none."""
    edited = message.get("edited")
    return isinstance(edited, str) and not edited.startswith("1970-")


def _moment(message: dict[str, Any], key: str, zone: tzinfo) -> datetime:
    seconds = message.get(f"{key}_unixtime")
    if seconds is not None:
        moment = unix_time(int(seconds) if isinstance(seconds, str) and seconds.isdecimal() else seconds)
        if moment is not None:
            return moment
    told = message.get(key)
    try:
        moment = datetime.fromisoformat(told if isinstance(told, str) else "")
    except ValueError:
        raise ValueError(f"{str(told)[:40]!r} is no date such as 2024-05-01T09:00:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)
