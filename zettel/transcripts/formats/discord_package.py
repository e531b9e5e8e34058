"""Discord's data package, which contains the messages of its owner only.

Each channel's folder has ``channel.json`` and ``messages.json`` (``messages.csv`` until 2023). These begin with the
newest message and are read from the oldest on. ``user.json`` names the owner. Times are in UTC.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from zettel.errors import BadRecord
from zettel.model import Source
from zettel.transcripts import Record
from zettel.transcripts.archive_tree import File, files_inside
from zettel.transcripts.parsing.content_blocks import with_files
from zettel.transcripts.parsing.json_records import open_json
from zettel.transcripts.parsing.json_stream import JsonStream, encoding_of
from zettel.transcripts.parsing.json_values import as_dict, present, text_at
from zettel.transcripts.parsing.timestamps import iso_time
from zettel.transcripts.records import record, rejected

from .discord_text import readable

_MESSAGES = re.compile(r"(?P<folder>(?:[^/]+/)?c?\d+)/messages\.(?:json|csv)")
_MARK_BYTES = 4
_IN_MEMORY = 1 << 20  # bytes of messages above which a temporary file is on disk
_OWNER = "user"  # the speaker without user.json


def is_package(path: Path) -> bool:
    """Return whether a folder or zip contains channels' folders with messages."""
    names = {name for name, _ in files_inside(path)}
    folders = (match["folder"] for name in names if (match := _MESSAGES.fullmatch(name)))
    return any(f"{folder}/channel.json" in names for folder in folders)


def read(path: Path) -> Iterator[Record]:
    """Yield the messages of each channel by time. Raises ``BadRecord`` if the rest cannot be read."""
    by_name = dict(files_inside(path))
    owner = next((name for file in by_name.values() if (name := _owner(file))), _OWNER)
    names: dict[str, dict[str, Any]] = {}  # by folder, then by channel id
    for name, file in by_name.items():
        match = _MESSAGES.fullmatch(name)
        if match is None:
            continue
        channel = _object(by_name.get(f"{match['folder']}/channel.json"))
        folder = str(PurePosixPath(match["folder"]).parent)
        if folder not in names:
            names[folder] = _object(by_name.get(f"{folder}/index.json"))
        channel.setdefault("name", names[folder].get(str(channel.get("id"))))
        rows = _csv_rows(file) if file.name.endswith(".csv") else _items(file)
        for place, row in _by_time(rows):
            yield from _message(row, Source(file=file.where, position=str(place)), owner, channel)


def _owner(file: File) -> str | None:
    if PurePosixPath(file.name).name != "user.json":
        return None
    with file.open() as stream:
        reader = JsonStream(stream, file.where)
        names = {key: reader.value() for key in reader.members() if key in ("username", "global_name")}
    return next((name for key in ("global_name", "username") if isinstance(name := names.get(key), str) and name), None)


def _object(file: File | None) -> dict[str, Any]:
    """Return the object in a file, without the rest of the file; {} for a missing file."""
    if file is None:
        return {}
    with file.open() as stream:
        return as_dict(JsonStream(stream, file.where).value())


def _items(file: File) -> Iterator[tuple[int, Any]]:
    with open_json(file) as reader:
        yield from enumerate(reader.items(), start=1)


def _csv_rows(file: File) -> Iterator[tuple[int, Any]]:
    encoding = encoding_of(file.head(_MARK_BYTES))
    with file.open() as stream, io.TextIOWrapper(stream, encoding, newline="") as text:
        rows = csv.DictReader(text)
        try:
            for row in rows:
                yield rows.line_num, row
        except csv.Error as error:
            raise BadRecord(f"{file.where}:{rows.line_num}: the CSV is damaged here ({error})") from None
        except UnicodeError:
            raise BadRecord(f"{file.where}:{rows.line_num + 1}: the text is neither UTF-8 nor UTF-16") from None


def _by_time(rows: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """Sort the rows of a channel by time in a temporary file. Raises errors of ``rows`` at the end."""
    index: list[tuple[str, int, int]] = []
    damage: BadRecord | None = None
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:
        try:
            for place, row in rows:
                index.append((str(as_dict(row).get("Timestamp")), -place, spool.tell()))
                spool.write(json.dumps(row).encode() + b"\n")
        except BadRecord as error:  # the rows before it are valid
            damage = error
        for _, place, offset in sorted(index):
            spool.seek(offset)
            yield -place, json.loads(spool.readline())
    if damage is not None:
        raise damage


def _message(row: Any, source: Source, owner: str, channel: dict[str, Any]) -> Iterator[Record]:
    if not isinstance(row, dict):
        yield rejected(source, "expected a message with ID, Timestamp and Contents")
        return
    try:
        occurred_at = iso_time(row.get("Timestamp"))
    except ValueError as error:
        yield rejected(source, f"Timestamp: {error}")
        return
    attached = row.get("Attachments")
    addresses = attached.split() if isinstance(attached, str) else []
    names = [name for address in addresses if (name := _file_name(address))]
    content = with_files(readable(text_at(row, "Contents") or "", {}).strip(), names)
    if not content:
        return
    id = row.get("ID")
    place = (as_dict(channel.get("guild")).get("name"), channel.get("name") or channel.get("id"))
    fields = {
        "content": content,
        "id": str(id) if isinstance(id, (int, str)) and id else None,
        "speaker": owner,
        "occurred_at": occurred_at,
        "session": str(channel.get("id")) if "THREAD" in str(channel.get("type")) else None,
        "metadata": {"channel": "/".join(str(part) for part in place if part), **present({"attachments": names})},
    }
    yield record(fields, source)


def _file_name(address: str) -> str:
    try:
        return PurePosixPath(unquote(urlsplit(address).path)).name
    except ValueError:  # not an address
        return ""
