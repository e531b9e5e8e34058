"""A Slack workspace's export, zip or folder: a folder for each channel in which each day has a file.

A message's id is its channel's and Slack's own for it, its time. Who spoke has the real name of ``users.json``. A
thread is a session, called as its first message (``C01/1700000000.123456``), for channels are renamed; other messages
have none. The channel's name, or of a direct message the members' names, is in the metadata. Mentions and links are
made readable, and files told as ``[file: plan.pdf]``. Edited messages say so in the metadata and count as they stand
at last. Left out is what nobody said (who joined, new topics, pins, calls) and what was deleted.
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

from . import Record
from .content_blocks import as_dict, as_list, told_media
from .json_stream import JsonStream
from .moments import unix_time
from .records import record, rejected
from .slack_text import readable, text_of
from .trees import File, files, is_tree, wrapping

name = "slack"
folders = True
gaps = True

SAID = frozenset({"", "bot_message", "file_comment", "file_share", "me_message", "thread_broadcast"})
"""Kinds of messages that somebody said; all others tell of the channel, or what Slack did."""

_CHANGED, _DELETED = "message_changed", "message_deleted"  # kept beside the message by some workspaces
_CHANGES = (_CHANGED.encode(), _DELETED.encode())
_DAY = re.compile(r"(?P<folder>[^/]+)/\d{4}-\d\d-\d\d\.json")
_LISTS = ("channels.json", "groups.json", "dms.json", "mpims.json")
_PEOPLE = ("users.json", "org_users.json")


_Changes: TypeAlias = dict[str, dict[str, Any] | None]
"""How messages of a channel stand at last, by their ids; None: deleted."""


class _Workspace(NamedTuple):
    people: dict[str, str]
    """Names by id."""
    channels: dict[str, str]
    """Names by id."""
    ids: dict[str, str]
    """Ids of channels by the name of their folder."""


def sniff(path: Path, head: bytes) -> bool:
    """A zip or folder with lists of users or channels, and files of days beside them."""
    if not is_tree(path):
        return False
    return bool(_days(list(files(path))))


def read(path: Path) -> Iterator[Record]:
    """The messages, channel by channel in order of time; a file of a day that is damaged is rejected from there on."""
    found = list(files(path))
    workspace = _workspace(found)
    for folder, days in groupby(_days(found), key=itemgetter(1)):
        channel = [file for file, _ in days]
        changed: _Changes = {}
        for file in channel:
            changed |= _changed(file)
        for file in channel:
            yield from _day(file, folder, workspace, changed)


def beside(path: Path) -> Iterator[File]:
    """Files in an export's folder or zip that are neither its lists nor in a channel's folder."""
    found = list(files(path))
    channels = {folder for _, folder in _days(found)}
    own = (*_LISTS, *_PEOPLE)
    base = wrapping(found)
    for file in found:
        folder, deeper, _ = file.name.removeprefix(base).partition("/")
        if folder not in (channels if deeper else own):
            yield file


def _days(found: list[File]) -> list[tuple[File, str]]:
    """The files of days with their channels' folders; none unless lists of users or channels are beside them."""
    base = wrapping(found)
    names = {file.name for file in found}
    if not any(f"{base}{one}" in names for one in (*_LISTS, *_PEOPLE)):
        return []
    days = ((file, _DAY.fullmatch(file.name.removeprefix(base))) for file in found)
    return [(file, day["folder"]) for file, day in days if day is not None]


def _workspace(found: list[File]) -> _Workspace:
    people: dict[str, str] = {"USLACKBOT": "Slackbot"}
    channels: dict[str, str] = {}
    ids: dict[str, str] = {}
    base = wrapping(found)
    for file in found:
        if file.name.removeprefix(base) in _PEOPLE:
            people |= {one["id"]: _name(one) for one in _listed(file)}
    for file in found:
        kind = file.name.removeprefix(base)
        for one in _listed(file) if kind in _LISTS else ():
            members = [people.get(member, member) for member in as_list(one.get("members")) if isinstance(member, str)]
            called = one.get("name") if isinstance(one.get("name"), str) else None
            ids[called or one["id"]] = one["id"]
            of_people = kind in ("dms.json", "mpims.json") and members
            channels[one["id"]] = ", ".join(members) if of_people else called or one["id"]
    return _Workspace(people, channels, ids)


def _listed(file: File) -> Iterator[dict[str, Any]]:
    with file.open() as stream:
        for one in JsonStream(stream, file.where).items():
            if isinstance(one, dict) and isinstance(one.get("id"), str):
                yield one


def _name(person: dict[str, Any]) -> str:
    profile = as_dict(person.get("profile"))
    names = (profile.get("real_name"), person.get("real_name"), profile.get("display_name"), person.get("name"))
    return next((one.strip() for one in names if isinstance(one, str) and one.strip()), str(person.get("id", "")))


def _day(file: File, folder: str, workspace: _Workspace, changed: _Changes) -> Iterator[Record]:
    messages, broken = _messages(file)
    for place, message in enumerate(messages, start=1):
        source = Source(file=file.where, position=str(place))
        if not isinstance(message, dict):
            yield rejected(source, "expected an object with a message")
        elif _is_said(message):
            told = changed.get(message["ts"], message) if isinstance(message.get("ts"), str) else message
            if told is not None and _is_said(told):
                yield from _message(told, source, folder, workspace)
    if broken is not None:
        yield rejected(Source(file=file.where), str(broken))


def _messages(file: File) -> tuple[list[Any], BadRecord | None]:
    """The messages of a day, and why there are no more if it is damaged."""
    messages: list[Any] = []
    try:
        with file.open() as stream:
            json = JsonStream(stream, file.where)
            messages.extend(json.items())
            json.end()
    except BadRecord as error:
        return messages, error
    return messages, None


def _is_said(message: dict[str, Any]) -> bool:
    kind = message.get("subtype") or ""
    return message.get("type", "message") == "message" and isinstance(kind, str) and kind in SAID


def _changed(file: File) -> _Changes:
    """What a day tells of how messages stand since, where the export tells changes beside them."""
    with suppress(BadRecord), file.open() as stream:  # what is damaged is told when the day is read
        if not any(mark in line for line in stream for mark in _CHANGES):  # as in most exports
            return {}
    changed: _Changes = {}
    for message in _messages(file)[0]:
        kind = message.get("subtype") if isinstance(message, dict) else None
        if kind == _CHANGED and isinstance(inner := message.get("message"), dict) and isinstance(inner.get("ts"), str):
            changed[inner["ts"]] = inner
        elif kind == _DELETED and isinstance(message.get("deleted_ts"), str):
            changed[message["deleted_ts"]] = None
    return changed


def _message(message: dict[str, Any], source: Source, folder: str, workspace: _Workspace) -> Iterator[Record]:
    ts = message.get("ts")
    try:
        occurred_at = unix_time(float(ts) if isinstance(ts, str) else ts)
    except ValueError:
        occurred_at = None
    if occurred_at is None or not isinstance(ts, str):
        yield rejected(source, f"ts: {str(ts)[:40]!r} is no time in seconds since 1970")
        return
    files = [one for one in as_list(message.get("files")) or [message.get("file")] if isinstance(one, dict)]
    names = [name for one in files if one.get("mode") != "tombstone" and (name := _file_name(one))]
    text = readable(text_of(message), workspace.people, workspace.channels).strip()
    content = "\n".join([*([text] if text else []), *(told_media("file", name) for name in names)])
    if not content:
        return
    id = workspace.ids.get(folder, folder)
    channel = workspace.channels.get(id, folder)
    thread = message.get("thread_ts")
    metadata: dict[str, Any] = {"channel": channel}
    if names:
        metadata["attachments"] = names
    if message.get("edited"):
        metadata["edited"] = True
    fields = {
        "content": content,
        "id": f"{id}/{ts}",
        "role": _speaker(message, workspace),
        "occurred_at": occurred_at,
        "session": f"{id}/{thread}" if isinstance(thread, str) else None,
        "metadata": metadata,
    }
    yield record(fields, source)


def _speaker(message: dict[str, Any], workspace: _Workspace) -> str | None:
    user = message.get("user")
    if isinstance(user, str) and user in workspace.people:
        return workspace.people[user]
    profile, bot = as_dict(message.get("user_profile")), as_dict(message.get("bot_profile"))
    names = (message.get("username"), bot.get("name"), profile.get("real_name"), profile.get("display_name"), user,
             message.get("bot_id"))  # fmt: skip
    return next((one.strip() for one in names if isinstance(one, str) and one.strip()), None)


def _file_name(file: dict[str, Any]) -> str | None:
    return next((one for key in ("title", "name") if isinstance(one := file.get(key), str) and one.strip()), None)
