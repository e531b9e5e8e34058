"""Notes of A-MEM: a JSON dump of them, or the folder in which Chroma keeps them.

The dump is a list of notes, or an object with a note under each id; its notes have A-MEM's own fields (``content``,
``context``, ``keywords``, ``tags``, ``links``, ``timestamp``)::

    json.dump([vars(note) for note in memory.memories.values()], file)

The folder has a ``chroma.sqlite3``, which is read by itself. Each note is an event with its id, its time (which has
no zone) and its words; what A-MEM's model made of them is metadata, and ``was`` says "A-MEM note". A note's history
is the payload. Its links are named in the metadata; links between notes are made anew. One whose time cannot be read
is undated, with the time as it stands in the metadata.

Paper: Xu et al. 2025, "A-MEM: Agentic Memory for LLM Agents".
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timezone, tzinfo
from pathlib import Path
from typing import Any

from zettel.errors import BadRecord
from zettel.model import Source

from . import Record, locomo
from .dumps import WAS, flat, records
from .json_keys import keys_in
from .json_stream import JsonStream
from .records import ContentKeys, record, rejected
from .trees import File, others
from .written_times import moment

name = "amem"
folders = True
"""It reads Chroma's folder as well."""
local_times = True
"""Its times have no zone."""

CHROMA = "chroma.sqlite3"
"""The file of a Chroma folder that holds its texts."""

_OF_CHROMA = re.compile(r"chroma\.sqlite3.*|[\da-f]{8}-[\da-f-]{27}/.*")
_SQLITE = b"SQLite format 3\0"
_OWN = ("evolution_history", "retrieval_count", "last_accessed")  # fields that nobody else's notes have
_TOLD = ("context", "keywords", "tags", "category", "links")
_LISTS = ("keywords", "tags", "links", "evolution_history")
_FIELDS = frozenset({"content", "id", "timestamp", *_TOLD, *_OWN})
_WRAPPERS = frozenset({"memories", "notes", "metadatas"})  # the last: of what Chroma's own `get` gives
_DOCUMENT = "chroma:document"

_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged database raises; the second where SQLite's own message quotes what is damaged."""

# Of a document all that was told of it, one after the other; those without what A-MEM tells are others'.
_METADATA = """
    SELECT embedding.id, embedding.embedding_id, told.key,
        coalesce(told.string_value, told.int_value, told.float_value)
    FROM embeddings AS embedding
    JOIN embedding_metadata AS told ON told.id = embedding.id
    WHERE EXISTS (
        SELECT 1 FROM embedding_metadata AS own
        WHERE own.id = embedding.id AND own.key IN ('evolution_history', 'retrieval_count', 'last_accessed')
    )
    ORDER BY embedding.id
"""


def sniff(path: Path, head: bytes) -> bool:
    """JSON with a note's own fields, or a Chroma folder with such notes."""
    if path.is_dir() or head.startswith(_SQLITE):
        database = _database(path)
        return database.is_file() and _has_notes(database)
    keys = keys_in(head)
    return keys >= {"content", "keywords", "context"} and not keys.isdisjoint(_OWN)


def beside(path: Path) -> Iterator[File]:
    """Files in Chroma's folder that are none of its own."""
    return others(path, _OF_CHROMA)


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """The notes in their order; one that cannot be read is rejected. ``BadRecord`` where no more can be read."""
    keys = ContentKeys()
    found = _in_chroma(_database(path)) if _is_chroma(path) else _in_json(path)
    for source, key, note in found:
        if isinstance(note, dict):
            yield _event(note, key, source, zone, keys)
        else:
            yield rejected(source, "expected an object with a note")


def _event(note: dict[str, Any], key: str, source: Source, zone: tzinfo, keys: ContentKeys) -> Record:
    note = note | {field: _decoded(note.get(field)) for field in _LISTS}
    told = note.get("timestamp")
    when = time_of(told, zone)
    history = note.get("evolution_history")
    id = note.get("id") or key
    fields = {
        "content": note.get("content") or note.get(_DOCUMENT) or "",
        "id": str(id) if id else None,
        "occurred_at": when,
        "metadata": {WAS: "A-MEM note", **flat({field: note.get(field) for field in _TOLD})}
        | (flat({"timestamp": told}) if when is None else {}),
        "payload": {"evolution_history": history} if history else None,
    }
    if not fields["content"]:
        return rejected(source, "the note has no content")
    return record(fields, source, keys)


def time_of(told: Any, zone: tzinfo = timezone.utc) -> datetime | None:
    """The moment that a note's time names: A-MEM keeps whatever it was given, and its own measurements gave it
    LoCoMo's."""
    if (when := moment(told, zone)) is not None:
        return when
    try:
        return datetime.strptime(told, locomo.DATE_FORMAT).replace(tzinfo=zone)
    except (TypeError, ValueError):
        return None


def _decoded(value: Any) -> Any:
    """Chroma holds no lists: A-MEM keeps them there as JSON."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _in_json(path: Path) -> Iterator[tuple[Source, str, Any]]:
    with path.open("rb") as stream:
        for place, key, note in records(JsonStream(stream, str(path)), _WRAPPERS, _FIELDS):
            yield Source(file=str(path), position=place), "" if key in _WRAPPERS else key, note


# -------------------------------------------------------------------------------------------------------------- Chroma


def _is_chroma(path: Path) -> bool:
    if path.is_dir():
        return True
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _database(path: Path) -> Path:
    return path / CHROMA if path.is_dir() else path


def _in_chroma(database: Path) -> Iterator[tuple[Source, str, Any]]:
    if not database.is_file():
        raise BadRecord(f"{database}: there is no such file: no folder of Chroma's")
    note: dict[str, Any] = {}
    row = key = None
    try:
        with closing(_opened(database)) as connection:
            for number, embedding, field, value in connection.execute(_METADATA):
                if number != row and note:
                    yield Source(file=str(database), position=str(row)), str(key), note
                    note = {}
                row, key = number, embedding
                note[str(field)] = value
    except _UNREADABLE as error:
        raise BadRecord(f"{database}: the database cannot be read: {' '.join(str(error).split())}") from None
    if note:
        yield Source(file=str(database), position=str(row)), str(key), note


def _has_notes(database: Path) -> bool:
    try:
        with closing(_opened(database)) as connection:
            return connection.execute(f"{_METADATA} LIMIT 1").fetchone() is not None
    except _UNREADABLE:
        return False


def _opened(database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)
    # A text that is no UTF-8 spoils its note, not the file.
    connection.text_factory = lambda said: said.decode("utf-8", errors="surrogateescape")
    return connection
