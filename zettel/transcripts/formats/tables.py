"""Rows of a table as events, by the usual names of columns.

============= ==================================================================================================
``content``   content, text, message, body
``speaker``   author, speaker, sender, from, role, user, name
``occurred_at`` timestamp, time, date, created_at and the like; two columns for date and time of day are combined
``session``   session, thread, conversation, chat, channel, room, topic; also with ``_id``
``id``        id, message_id, uuid, guid
``title``     title, subject
============= ==================================================================================================

Case, white space and punctuation do not count. Among several columns for a field, the first with a value counts. All
other columns are metadata, or payload if their value is long or nested.

A row's id with 16 characters or more is globally unique. A shorter id only counts the rows of a table. So the event's
id also contains the row's time, else the session, else the file's name (in a walked folder with the folder).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from zettel.errors import InvalidInput
from zettel.model import Source
from zettel.transcripts import Record
from zettel.transcripts.parsing.written_times import moment
from zettel.transcripts.records import ContentKeys, record, rejected

FIELDS: Mapping[str, tuple[str, ...]] = {
    "content": ("content", "text", "message", "body", "messagetext", "messagebody", "messagecontent", "utterance"),
    "speaker": (
        "author", "authorname", "speaker", "speakername", "sender", "sendername", "from", "fromname", "role",
        "username", "user", "name",
    ),
    "occurred_at": (
        "occurredat", "timestamp", "datetime", "time", "date", "ts", "createdat", "created", "createdtime", "sentat",
        "senttime", "datesent", "messagedate", "dateutc", "timestamputc", "datetimeutc",
    ),
    "session": (
        "session", "sessionid", "thread", "threadid", "conversation", "conversationid", "chat", "chatid", "channel",
        "channelid", "room", "roomid", "topic",
    ),
    "id": ("id", "messageid", "uuid", "guid", "eventid"),
    "title": ("title", "subject"),
}  # fmt: skip
"""The usual names of the columns for each field of an event, the most specific first."""

LONG_ID = 16
"""Characters from which an id is globally unique."""
MAX_VALUE = 300
"""Longest text that becomes metadata, in characters."""

_CLOCK = re.compile(r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?:\s?[ap]\.?m\.?)?", re.IGNORECASE)
_SIGNS = re.compile(r"[\W_]+")


def folded(name: str) -> str:
    """Return a column's name without case, white space and punctuation."""
    return _SIGNS.sub("", name).casefold()


def looks_like_messages(columns: Sequence[str]) -> bool:
    """Return whether a table has columns for content, and for speaker or time."""
    names = {folded(column) for column in columns}
    known_fields = {field for field, usual in FIELDS.items() if not names.isdisjoint(usual)}
    return len(columns) > 1 and "content" in known_fields and not known_fields.isdisjoint({"speaker", "occurred_at"})


class TableColumns:
    """The columns of a table by event field."""

    def __init__(
        self, path: Path, columns: Sequence[str], renamed: Mapping[str, str] | None = None, called: str | None = None
    ) -> None:
        """``renamed`` maps fields to columns with unusual names; ``called`` replaces the file's name.

        Raises ``InvalidInput`` for an unknown field or column, and for a table without content.
        """
        self._called = called or path.stem
        self._by_field = {field: [renamed[field]] for field in renamed} if renamed else {}
        known = ", ".join(columns) or "none"
        for field, column in (renamed or {}).items():
            if field not in FIELDS:
                raise InvalidInput(f"columns: unknown field {field!r}: use one of {', '.join(FIELDS)}")
            if column not in columns:
                raise InvalidInput(f"{path}: unknown column {column!r} for {field}: use one of {known}")
        free = {folded(column): column for column in reversed(columns) if column not in (renamed or {}).values()}
        for field, names in FIELDS.items():
            if field not in self._by_field:
                self._by_field[field] = [free[name] for name in names if name in free]
        if not self._by_field["content"]:
            raise InvalidInput(f"{path}: no column contains the content: name one (content=COLUMN) of {known}")

    def event(self, row: Mapping[str, Any], source: Source, zone: tzinfo, keys: ContentKeys) -> Record:
        """Return the event of a row; ``keys`` are those of the file."""
        fields: dict[str, Any] = {}
        used = set()
        for field, columns in self._by_field.items():
            column = next((column for column in columns if _has_value(row.get(column))), None)
            if column is not None:
                fields[field] = row[column]
                used.add(column)
        times = {column: row[column] for column in self._by_field["occurred_at"] if _has_value(row.get(column))}
        occurred_at, time_columns = _time(times, zone)
        used.update(time_columns)
        if times and occurred_at is None:
            raw_time = str(next(iter(times.values())))[:40]
            return rejected(source, f"{raw_time!r} is not a time: use ISO 8601 or seconds since 1970")
        texts = {field: str(value).strip() for field, value in fields.items() if field != "occurred_at"}
        if not texts.get("content"):
            return rejected(source, "the row has no content")
        if "id" in texts:
            texts["id"] = _id(texts["id"], occurred_at, texts.get("session") or self._called)
        rest = {column: value for column, value in row.items() if column and column not in used and _has_value(value)}
        metadata = {column: _plain(value) for column, value in rest.items() if _is_short(value)}
        payload = {column: _plain(value) for column, value in rest.items() if column not in metadata}
        event = {**texts, "occurred_at": occurred_at, "metadata": metadata, "payload": payload or None}
        return record(event, source, keys)


def _time(times: Mapping[str, Any], zone: tzinfo) -> tuple[datetime | None, list[str]]:
    """Return the first time that the columns contain, and the columns that it comes from."""
    clocks = [column for column, value in times.items() if _CLOCK.fullmatch(str(value).strip())]
    days = [column for column in times if column not in clocks]
    for day in days:
        for clock in clocks:
            if time := moment(f"{str(times[day]).strip()} {str(times[clock]).strip()}", zone):
                return time, [day, clock]
        if time := moment(times[day], zone):
            return time, [day]
    return None, []


def _id(id: str, occurred_at: datetime | None, container: str) -> str:
    if len(id) >= LONG_ID:
        return id
    return f"{id}@{occurred_at.isoformat()}" if occurred_at else f"{container}/{id}"


def _has_value(value: Any) -> bool:
    """Return whether a cell has a value; some programs write NaN for none."""
    return value is not None and value == value and (not isinstance(value, str) or bool(value.strip()))


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_VALUE
    return not isinstance(value, (bytes, dict, list))


def _plain(value: Any) -> Any:
    """Return a value of JSON; other values as text."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        return f"({len(value):,} bytes)"
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, bool, int)) else str(value)
