"""Records of a JSON array, a single JSON value or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from zettel.model import Source
from zettel.transcripts import Rejected
from zettel.transcripts.archive_tree import File, files
from zettel.transcripts.diagnosis import is_cut
from zettel.transcripts.records import rejected

from .json_stream import MAX_PIECE, JsonStream
from .lines import head_text, lines

_LINES = (".jsonl", ".ndjson")


class JsonRecord(NamedTuple):
    """A record and its source."""

    source: Source
    value: Any


def json_records(path: Path, list_keys: Container[str] = ()) -> Iterator[JsonRecord | Rejected]:
    """Yield the records one at a time; of an object with an array under a key of ``list_keys``, the items of it.

    A damaged line is rejected and the next one read; other damage raises ``BadRecord``.
    """
    for file in files(path):
        if _has_lines(file):
            with file.open() as stream:
                yield from json_lines(stream, file.where)
            continue
        with open_json(file) as reader:
            for place, value in enumerate(_values(reader, list_keys), start=1):
                yield JsonRecord(Source(file=file.where, position=str(place)), value)


@contextmanager
def open_json(file: File) -> Iterator[JsonStream]:
    """Open a JSON file. Raises ``BadRecord`` if something follows the values that the block reads."""
    with file.open() as stream:
        reader = JsonStream(stream, file.where)
        yield reader
        reader.end()


def _values(reader: JsonStream, list_keys: Container[str]) -> Iterator[Any]:
    first = reader.peek()
    if first == "[":
        yield from reader.items()
    elif first == "{" and list_keys:
        rest: dict[str, Any] = {}
        is_list = False
        for key in reader.members():
            if key in list_keys and reader.peek() == "[":
                is_list = True
                yield from reader.items()
            elif not is_list:
                rest[key] = reader.value()
        if not is_list:
            yield rest
    else:
        yield reader.value()


def _has_lines(file: File) -> bool:
    """Return whether a file has JSON lines: by its suffix, or by a first line with a complete object."""
    if file.name.endswith(_LINES):
        return True
    if not head_text(file.head()).lstrip().startswith("{"):
        return False
    with file.open() as stream:
        texts = (line for _, line in lines(stream, file.where, MAX_PIECE) if isinstance(line, Rejected) or line.strip())
        first, second = next(texts, None), next(texts, None)
    if not isinstance(first, str) or second is None:
        return False
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return True


def json_lines(stream: IO[bytes], where: str) -> Iterator[JsonRecord | Rejected]:
    """Yield the record of each line that is not blank; a damaged line is rejected."""
    for number, line in lines(stream, where, MAX_PIECE):
        if isinstance(line, Rejected):
            yield line
        elif line.strip():
            yield _read_line(line, Source(file=where, position=str(number)))


def _read_line(line: str, source: Source) -> JsonRecord | Rejected:
    try:
        return JsonRecord(source, json.loads(line))
    except json.JSONDecodeError as error:
        cut = "; the line is truncated" if is_cut(error) else ""
        return rejected(source, f"invalid JSON: {error.msg.removesuffix(' at')} at character {error.pos}{cut}")
    except RecursionError:
        return rejected(source, "the JSON is nested too deeply")
    except ValueError as error:  # a number of thousands of digits
        return rejected(source, f"the JSON cannot be read: {error}")
