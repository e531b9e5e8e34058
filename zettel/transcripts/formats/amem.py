"""Notes of A-MEM: a JSON dump, or the folder of its Chroma database.

The dump is a list of notes, or an object with a note under each id; its notes have A-MEM's own fields (``content``,
``context``, ``keywords``, ``tags``, ``links``, ``timestamp``)::

    json.dump([vars(note) for note in memory.memories.values()], file)

Of the folder only ``chroma.sqlite3`` is read. Each note is an event with its id, time (without a zone) and content.
The fields that A-MEM's model wrote and the links are metadata, and ``was`` is "A-MEM note". The evolution history is
the payload. A note with an unreadable time is undated, and the metadata contains the original time.

Paper: Xu et al. 2025, "A-MEM: Agentic Memory for LLM Agents".
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timezone, tzinfo
from pathlib import Path
from typing import Any

from zettel.errors import BadRecord
from zettel.model import Source
from zettel.transcripts import Record
from zettel.transcripts.archive_tree import File, unmatched_files
from zettel.transcripts.parsing.content_blocks import parsed
from zettel.transcripts.parsing.json_keys import keys_in
from zettel.transcripts.parsing.written_times import moment
from zettel.transcripts.records import ContentKeys, record, rejected

from . import locomo
from .memory_dumps import ORIGIN_KEY, dump_records, flat

name = "amem"
folders = True
"""Reads Chroma's folder too."""
local_times = True
"""Times have no zone."""

CHROMA = "chroma.sqlite3"
"""The database file of a Chroma folder."""

_OF_CHROMA = re.compile(r"chroma\.sqlite3.*|[\da-f]{8}-[\da-f-]{27}/.*")
_SQLITE = b"SQLite format 3\0"
_OWN = ("evolution_history", "retrieval_count", "last_accessed")  # fields of A-MEM only
_METADATA_FIELDS = ("context", "keywords", "tags", "category", "links")
_LISTS = ("keywords", "tags", "links", "evolution_history")
_FIELDS = frozenset({"content", "id", "timestamp", *_METADATA_FIELDS, *_OWN})
_WRAPPERS = frozenset({"memories", "notes", "metadatas"})  # metadatas is the key in the result of Chroma's `get`
_DOCUMENT = "chroma:document"

_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""Errors of a damaged database; UnicodeDecodeError if SQLite's message quotes damaged text."""

# All metadata of each document that has one of A-MEM's own fields.
_METADATA = """
    SELECT embedding.id, embedding.embedding_id, field.key,
        coalesce(field.string_value, field.int_value, field.float_value)
    FROM embeddings AS embedding
    JOIN embedding_metadata AS field ON field.id = embedding.id
    WHERE EXISTS (
        SELECT 1 FROM embedding_metadata AS own
        WHERE own.id = embedding.id AND own.key IN ('evolution_history', 'retrieval_count', 'last_accessed')
    )
    ORDER BY embedding.id
"""


def sniff(path: Path, head: bytes) -> bool:
    """Recognise JSON with a note's own fields, and a Chroma folder with such notes."""
    if path.is_dir() or head.startswith(_SQLITE):
        database = _database(path)
        return database.is_file() and _has_notes(database)
    keys = keys_in(head)
    return keys >= {"content", "keywords", "context"} and not keys.isdisjoint(_OWN)


def extra_files(path: Path) -> Iterator[File]:
    """Yield the files in Chroma's folder that are not its own."""
    return unmatched_files(path, _OF_CHROMA)


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """Yield the notes in order. Raises ``BadRecord`` if the rest cannot be read."""
    keys = ContentKeys()
    notes = _in_chroma(_database(path)) if _is_chroma(path) else _in_json(path)
    for source, key, note in notes:
        if isinstance(note, dict):
            yield _event(note, key, source, zone, keys)
        else:
            yield rejected(source, "expected an object with a note")


def _event(note: dict[str, Any], key: str, source: Source, zone: tzinfo, keys: ContentKeys) -> Record:
    note = note | {field: parsed(note.get(field)) for field in _LISTS}  # Chroma stores lists as JSON
    raw = note.get("timestamp")
    occurred_at = time_of(raw, zone)
    history = note.get("evolution_history")
    id = note.get("id") or key
    content = note.get("content") or note.get(_DOCUMENT)
    if not content:
        return rejected(source, "the note has no content")
    fields = {
        "content": content,
        "id": str(id) if id else None,
        "occurred_at": occurred_at,
        "metadata": {ORIGIN_KEY: "A-MEM note", **flat({field: note.get(field) for field in _METADATA_FIELDS})}
        | (flat({"timestamp": raw}) if occurred_at is None else {}),
        "payload": {"evolution_history": history} if history else None,
    }
    return record(fields, source, keys)


def time_of(raw: Any, zone: tzinfo = timezone.utc) -> datetime | None:
    """Parse a note's time: A-MEM stores any text, and its benchmark stores LoCoMo's dates."""
    if (time := moment(raw, zone)) is not None:
        return time
    try:
        return datetime.strptime(raw, locomo.DATE_FORMAT).replace(tzinfo=zone)
    except (TypeError, ValueError):
        return None


def _in_json(path: Path) -> Iterator[tuple[Source, str, Any]]:
    for source, key, note in dump_records(path, _WRAPPERS, _FIELDS):
        yield source, "" if key in _WRAPPERS else key, note


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
        raise BadRecord(f"{database}: the file does not exist: name a folder of Chroma")
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
    # Invalid UTF-8 damages one note, not the file.
    connection.text_factory = lambda raw_text: raw_text.decode("utf-8", errors="surrogateescape")
    return connection
