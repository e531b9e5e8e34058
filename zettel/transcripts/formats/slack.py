"""A Slack workspace's export as a zip or folder: a folder for each channel, with a file for each day.

The id of a message consists of its channel's id and its ``ts``. The speaker has the real name of ``users.json``. A
thread is a session, named after its first message (``C01/1700000000.123456``) because channels are renamed; other
messages have no session. The metadata contains the channel's name, or the members of a direct message. Mentions and
links become plain text, and files become ``[file: plan.pdf]``. An edited message has its last text, and ``edited`` in
the metadata. Service messages (joins, topics, pins, calls) and deleted messages are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from zettel.errors import BadRecord
from zettel.model import Source
from zettel.transcripts import Record
from zettel.transcripts.archive_tree import File, files_inside, is_tree
from zettel.transcripts.parsing.content_blocks import with_files
from zettel.transcripts.parsing.json_records import open_json
from zettel.transcripts.parsing.json_stream import JsonStream
from zettel.transcripts.parsing.json_values import as_dict, as_list, dicts_in, first_text, present, text_at
from zettel.transcripts.parsing.timestamps import unix_time
from zettel.transcripts.records import record, rejected

from .slack_text import readable, text_of

name = "slack"
folders = True
gaps = True

SUBTYPES = frozenset({"", "bot_message", "file_comment", "file_share", "me_message", "thread_broadcast"})
"""Subtypes of messages that people or bots wrote; all others are service messages."""

_CHANGED, _DELETED = "message_changed", "message_deleted"  # only some exports contain these
_CHANGE_MARKS = (_CHANGED.encode(), _DELETED.encode())
_DAY = re.compile(r"(?P<folder>[^/]+)/\d{4}-\d\d-\d\d\.json")
_CHANNEL_LISTS = ("channels.json", "groups.json", "dms.json", "mpims.json")
_USER_LISTS = ("users.json", "org_users.json")
_LISTS = (*_CHANNEL_LISTS, *_USER_LISTS)

_Export: TypeAlias = list[tuple[str, File]]
"""Files with their paths in the export."""

_Changes: TypeAlias = dict[str, dict[str, Any] | None]
"""Last versions of a channel's messages by ``ts``; None for deleted messages."""


class _Workspace(NamedTuple):
    """Names of people and channels by id, and ids of channels by folder."""

    people: dict[str, str]
    channels: dict[str, str]
    ids: dict[str, str]


def sniff(path: Path, head: bytes) -> bool:
    """Recognise a zip or folder with lists of users or channels and files of days."""
    return is_tree(path) and bool(_days(files_inside(path)))


def read(path: Path) -> Iterator[Record]:
    """Yield the messages of each channel by time. A damaged file is rejected from the damage on."""
    export = files_inside(path)
    workspace = _workspace(export)
    for folder, days in groupby(_days(export), key=itemgetter(0)):
        day_files = [file for _, file in days]
        changes: _Changes = {}
        for file in day_files:
            changes |= _changes_in(file)
        for file in day_files:
            yield from _day(file, folder, workspace, changes)


def extra_files(path: Path) -> Iterator[File]:
    """Yield the files that are neither lists of the export nor in a channel's folder."""
    export = files_inside(path)
    channels = {folder for folder, _ in _days(export)}
    for name, file in export:
        folder, deeper, _ = name.partition("/")
        if folder not in (channels if deeper else _LISTS):
            yield file


def _days(export: _Export) -> list[tuple[str, File]]:
    """Return the files of days with their channels' folders; an empty list without lists of users or channels."""
    if not any(name in _LISTS for name, _ in export):
        return []
    return [(day["folder"], file) for name, file in export if (day := _DAY.fullmatch(name))]


def _workspace(export: _Export) -> _Workspace:
    workspace = _Workspace({"USLACKBOT": "Slackbot"}, {}, {})
    people, channels, ids = workspace
    for kind, file in export:
        if kind in _USER_LISTS:
            people.update((person["id"], _name(person)) for person in _list_items(file))
    for kind, file in export:
        for item in _list_items(file) if kind in _CHANNEL_LISTS else ():
            members = [people.get(member, member) for member in as_list(item.get("members")) if isinstance(member, str)]
            channel_name = text_at(item, "name", blank=True) or item["id"]
            ids[channel_name] = item["id"]
            is_direct = kind in ("dms.json", "mpims.json") and members
            channels[item["id"]] = ", ".join(members) if is_direct else channel_name
    return workspace


def _list_items(file: File) -> Iterator[dict[str, Any]]:
    with file.open() as stream:
        for item in JsonStream(stream, file.where).items():
            if isinstance(item, dict) and isinstance(item.get("id"), str):
                yield item


def _name(person: dict[str, Any]) -> str:
    profile = as_dict(person.get("profile"))
    names = (profile.get("real_name"), person.get("real_name"), profile.get("display_name"), person.get("name"))
    name = first_text(*names)
    return str(person["id"]) if name is None else name.strip()


def _day(file: File, folder: str, workspace: _Workspace, changes: _Changes) -> Iterator[Record]:
    messages, damage = _messages(file)
    for place, message in enumerate(messages, start=1):
        source = Source(file=file.where, position=str(place))
        if not isinstance(message, dict):
            yield rejected(source, "expected an object with a message")
        elif _is_written(message):
            ts = message.get("ts")
            current = changes.get(ts, message) if isinstance(ts, str) else message
            if current is not None and _is_written(current):
                yield from _message(current, source, folder, workspace)
    if damage is not None:
        yield rejected(Source(file=file.where), str(damage))


def _messages(file: File) -> tuple[list[Any], BadRecord | None]:
    """Return the messages of a day up to the first damage, and the damage."""
    messages: list[Any] = []
    try:
        with open_json(file) as json:
            messages.extend(json.items())
    except BadRecord as error:
        return messages, error
    return messages, None


def _is_written(message: dict[str, Any]) -> bool:
    subtype = message.get("subtype") or ""
    return message.get("type", "message") == "message" and isinstance(subtype, str) and subtype in SUBTYPES


def _changes_in(file: File) -> _Changes:
    with suppress(BadRecord), file.open() as stream:  # damage is reported when the day is read
        if not any(mark in line for line in stream for mark in _CHANGE_MARKS):  # as in most exports
            return {}
    changes: _Changes = {}
    for message in dicts_in(_messages(file)[0]):
        inner = as_dict(message.get("message"))
        if message.get("subtype") == _CHANGED and isinstance(inner.get("ts"), str):
            changes[inner["ts"]] = inner
        elif message.get("subtype") == _DELETED and isinstance(message.get("deleted_ts"), str):
            changes[message["deleted_ts"]] = None
    return changes


def _message(message: dict[str, Any], source: Source, folder: str, workspace: _Workspace) -> Iterator[Record]:
    ts = message.get("ts")
    try:
        occurred_at = unix_time(float(ts) if isinstance(ts, str) else ts)
    except ValueError:
        occurred_at = None
    if occurred_at is None or not isinstance(ts, str):
        yield rejected(source, f"ts: {str(ts)[:40]!r} is not a time in seconds since 1970")
        return
    attached = dicts_in(as_list(message.get("files")) or [message.get("file")])
    names = [name for item in attached if item.get("mode") != "tombstone" and (name := text_at(item, "title", "name"))]
    content = with_files(readable(text_of(message), workspace.people, workspace.channels).strip(), names)
    if not content:
        return
    id = workspace.ids.get(folder, folder)
    thread = message.get("thread_ts")
    metadata = {"attachments": names, "edited": bool(message.get("edited"))}
    fields = {
        "content": content,
        "id": f"{id}/{ts}",
        "speaker": _speaker(message, workspace),
        "occurred_at": occurred_at,
        "session": f"{id}/{thread}" if isinstance(thread, str) else None,
        "metadata": {"channel": workspace.channels.get(id, folder), **present(metadata)},
    }
    yield record(fields, source)


def _speaker(message: dict[str, Any], workspace: _Workspace) -> str | None:
    user = message.get("user")
    if isinstance(user, str) and user in workspace.people:
        return workspace.people[user]
    profile, bot = as_dict(message.get("user_profile")), as_dict(message.get("bot_profile"))
    names = (message.get("username"), bot.get("name"), profile.get("real_name"), profile.get("display_name"), user,
             message.get("bot_id"))  # fmt: skip
    name = first_text(*names)
    return None if name is None else name.strip()
