"""Rows of a table as events: which column says what, by the names that such columns usually have.

============= ==================================================================================================
``content``   content, text, message, body
``role``      author, speaker, sender, from, role, user, name
``occurred_at`` timestamp, time, date, created_at and the like; a day and a clock in two columns belong together
``session``   session, thread, conversation, chat, channel, room, topic; also with ``_id``
``id``        id, message_id, uuid, guid
``title``     title, subject
============= ==================================================================================================

Capitals, blanks and signs do not count. The first of several columns that says something in a row is taken, and the
others go to the metadata, with all that is left: short values as they are, long or nested ones to the payload.

A row's id is unique in the world if it is long (16 characters and more). A shorter one counts the rows of some table,
so it is kept together with the row's time, or without one with the session, or with the file's name and, in what is
walked, its folder.
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

from . import Record
from .records import ContentKeys, record, rejected
from .written_times import moment

FIELDS: Mapping[str, tuple[str, ...]] = {
    "content": ("content", "text", "message", "body", "messagetext", "messagebody", "messagecontent", "utterance"),
    "role": (
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
"""The usual names of the columns for each field of an event, the most telling first."""

LONG_ID = 16
"""From so many characters on an id counts nothing: it is made so that there is no second one."""
MAX_VALUE = 300
"""Longest text that becomes metadata, in characters."""

_CLOCK = re.compile(r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?:\s?[ap]\.?m\.?)?", re.IGNORECASE)
_SIGNS = re.compile(r"[\W_]+")


def folded(name: str) -> str:
    """A column's name as names are compared."""
    return _SIGNS.sub("", name).casefold()


def looks_like_messages(columns: Sequence[str]) -> bool:
    """Whether a table with these columns holds what somebody said: its words, and who said them or when."""
    found = {field for field, names in FIELDS.items() if not {folded(column) for column in columns}.isdisjoint(names)}
    return len(columns) > 1 and "content" in found and not found.isdisjoint({"role", "occurred_at"})


class Columns:
    """Which column says what in a table."""

    def __init__(
        self, path: Path, columns: Sequence[str], given: Mapping[str, str] | None = None, called: str | None = None
    ) -> None:
        """``given`` names the column of a field where the usual names do not, ``called`` the table. Raises
        ``InvalidInput``.

        That is for a field that no event has, for a column that the table has not, and for a table without content.
        """
        self._called = called or path.stem
        self._by_field = {field: [given[field]] for field in given} if given else {}
        told = ", ".join(columns) or "none"
        for field, column in (given or {}).items():
            if field not in FIELDS:
                raise InvalidInput(f"columns={field}: there is no such field; there are {', '.join(FIELDS)}")
            if column not in columns:
                raise InvalidInput(f"{path}: there is no column {column!r} for {field}; there are {told}")
        free = {folded(column): column for column in reversed(columns) if column not in (given or {}).values()}
        for field, names in FIELDS.items():
            if field not in self._by_field:
                self._by_field[field] = [free[name] for name in names if name in free]
        if not self._by_field["content"]:
            raise InvalidInput(f"{path}: no column holds the content: name one (content=COLUMN); there are {told}")

    def event(self, row: Mapping[str, Any], source: Source, zone: tzinfo, keys: ContentKeys) -> Record:
        """A row as an event; ``keys`` are those of the file."""
        fields: dict[str, Any] = {}
        used = set()
        for field, columns in self._by_field.items():
            column = next((column for column in columns if _says(row.get(column))), None)
            if column is not None:
                fields[field] = row[column]
                used.add(column)
        times = {column: row[column] for column in self._by_field["occurred_at"] if _says(row.get(column))}
        when, told = _when(times, zone)
        used.update(told)
        if times and when is None:
            told_time = str(next(iter(times.values())))[:40]
            return rejected(source, f"{told_time!r} is no time: ISO 8601 is read, and seconds since 1970")
        said = {field: str(value).strip() for field, value in fields.items() if field != "occurred_at"}
        content = said.pop("content", "")
        if not content:
            return rejected(source, "the row has no content")
        if "id" in said:
            said["id"] = _id(said["id"], when, said.get("session") or self._called)
        rest = {column: value for column, value in row.items() if column and column not in used and _says(value)}
        metadata = {column: _plain(value) for column, value in rest.items() if _is_short(value)}
        payload = {column: _plain(value) for column, value in rest.items() if column not in metadata}
        fields = {**said, "content": content, "occurred_at": when, "metadata": metadata, "payload": payload or None}
        return record(fields, source, keys)


def _when(times: Mapping[str, Any], zone: tzinfo) -> tuple[datetime | None, list[str]]:
    """The first moment that the columns tell, and the columns that told it."""
    clocks = [column for column, value in times.items() if _CLOCK.fullmatch(str(value).strip())]
    days = [column for column in times if column not in clocks]
    for day in days:
        for clock in clocks:
            if when := moment(f"{str(times[day]).strip()} {str(times[clock]).strip()}", zone):
                return when, [day, clock]
        if when := moment(times[day], zone):
            return when, [day]
    return None, []


def _id(id: str, when: datetime | None, within: str) -> str:
    if len(id) >= LONG_ID:
        return id
    return f"{id}@{when.isoformat()}" if when else f"{within}/{id}"


def _says(value: Any) -> bool:
    """Whether a cell holds something; NaN is what some programs write for nothing."""
    return value is not None and value == value and (not isinstance(value, str) or bool(value.strip()))


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_VALUE
    return not isinstance(value, (bytes, dict, list))


def _plain(value: Any) -> Any:
    """A value that JSON has; of others what they are called."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        return f"({len(value):,} bytes)"
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, bool, int)) else str(value)
