"""Discord's data package: all that its owner ever wrote there, and nothing of the others.

A folder for each channel has ``channel.json`` and ``messages.json`` (``messages.csv`` until 2023), the newest first;
they are read from the oldest on. Whose package it is ``user.json`` tells. Times are in UTC.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from zettel.errors import BadRecord
from zettel.model import Source

from . import Record
from .content_blocks import as_dict, told_media
from .discord_text import readable
from .json_stream import JsonStream, encoding_of
from .moments import iso_time
from .records import record, rejected
from .trees import File, wrapping

_MESSAGES = re.compile(r"(?P<folder>(?:[^/]+/)?c?\d+)/messages\.(?:json|csv)")
_MARK_BYTES = 4
_IN_MEMORY = 1 << 20  # bytes of messages that wait for their turn before a temporary file takes them
_OWNER = "user"  # who speaks, if user.json is missing


def is_package(found: list[File]) -> bool:
    """Whether there are channels' folders with their messages."""
    base = wrapping(found)
    names = {file.name.removeprefix(base) for file in found}
    folders = (told["folder"] for name in names if (told := _MESSAGES.fullmatch(name)))
    return any(f"{folder}/channel.json" in names for folder in folders)


def read(found: list[File]) -> Iterator[Record]:
    """The messages, channel by channel in order of time. Raises ``BadRecord`` where no more can be read."""
    base = wrapping(found)
    by_name = {file.name.removeprefix(base): file for file in found}
    owner = next((name for file in found if (name := _owner(file))), _OWNER)
    names: dict[str, dict[str, Any]] = {}  # of channels by their ids, one list beside all their folders
    for name, file in by_name.items():
        told = _MESSAGES.fullmatch(name)
        if told is None:
            continue
        channel = _whole(by_name.get(f"{told['folder']}/channel.json"))
        folder = str(PurePosixPath(told["folder"]).parent)
        if folder not in names:
            names[folder] = _whole(by_name.get(f"{folder}/index.json"))
        channel.setdefault("name", names[folder].get(str(channel.get("id"))))
        rows = _rows(file) if file.name.endswith(".csv") else _items(file)
        for place, row in _oldest_first(rows):
            yield from _message(row, Source(file=file.where, position=str(place)), owner, channel)


def _owner(file: File) -> str | None:
    if PurePosixPath(file.name).name != "user.json":
        return None
    names: dict[str, Any] = {}
    with file.open() as stream:
        whole = JsonStream(stream, file.where)
        for key in whole.members():
            if key in ("username", "global_name"):
                names[key] = whole.value()
    return next((one for key in ("global_name", "username") if isinstance(one := names.get(key), str) and one), None)


def _whole(file: File | None) -> dict[str, Any]:
    if file is None:
        return {}
    with file.open() as stream:
        return as_dict(JsonStream(stream, file.where).value())


def _items(file: File) -> Iterator[tuple[int, Any]]:
    with file.open() as stream:
        whole = JsonStream(stream, file.where)
        yield from enumerate(whole.items(), start=1)
        whole.end()


def _rows(file: File) -> Iterator[tuple[int, Any]]:
    with file.open() as stream:
        encoding = encoding_of(stream.read(_MARK_BYTES))
    with file.open() as stream, io.TextIOWrapper(stream, encoding, newline="") as text:
        rows = csv.DictReader(text)
        try:
            for row in rows:
                yield rows.line_num, row
        except csv.Error as error:
            raise BadRecord(f"{file.where}:{rows.line_num}: the CSV is damaged here ({error})") from None
        except UnicodeError:
            raise BadRecord(f"{file.where}:{rows.line_num + 1}: the text is neither UTF-8 nor UTF-16") from None


def _oldest_first(rows: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """The rows of a channel in the order of time; until then they wait in a temporary file.

    Raises what ``rows`` raises, at the end.
    """
    index: list[tuple[str, int, int]] = []
    broken: BadRecord | None = None
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as waiting:
        try:
            for place, row in rows:
                index.append((str(as_dict(row).get("Timestamp")), -place, waiting.tell()))
                waiting.write(json.dumps(row).encode() + b"\n")
        except BadRecord as error:  # what was read until here is told nevertheless
            broken = error
        for _, place, offset in sorted(index):
            waiting.seek(offset)
            yield -place, json.loads(waiting.readline())
    if broken is not None:
        raise broken


def _message(row: Any, source: Source, owner: str, channel: dict[str, Any]) -> Iterator[Record]:
    if not isinstance(row, dict):
        yield rejected(source, "expected a message with ID, Timestamp and Contents")
        return
    try:
        occurred_at = iso_time(row.get("Timestamp"))
    except ValueError as error:
        yield rejected(source, f"Timestamp: {error}")
        return
    text, attached = row.get("Contents"), row.get("Attachments")
    addresses = attached.split() if isinstance(attached, str) else []
    names = [name for one in addresses if (name := _file_name(one))]
    said = [readable(text, {}).strip()] if isinstance(text, str) and text.strip() else []
    content = "\n".join([*said, *(told_media("file", name) for name in names)])
    if not content:
        return
    id = row.get("ID")
    where = (as_dict(channel.get("guild")).get("name"), channel.get("name") or channel.get("id"))
    metadata: dict[str, Any] = {"channel": "/".join(str(part) for part in where if part)}
    if names:
        metadata["attachments"] = names
    fields = {
        "content": content,
        "id": str(id) if isinstance(id, (int, str)) and id else None,
        "role": owner,
        "occurred_at": occurred_at,
        "session": str(channel.get("id")) if "THREAD" in str(channel.get("type")) else None,
        "metadata": metadata,
    }
    yield record(fields, source)


def _file_name(address: str) -> str:
    try:
        return PurePosixPath(unquote(urlsplit(address).path)).name
    except ValueError:  # no address after all
        return ""
