"""Records from a file that is a JSON array of them, or one, or has one on each line: programs write either."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from zettel.model import Source

from . import HEAD_BYTES, Rejected
from .guessing import is_cut
from .json_stream import MAX_PIECE, JsonStream
from .lines import head_text, lines
from .records import rejected
from .trees import File, files

_LINES = (".jsonl", ".ndjson")


class JsonRecord(NamedTuple):
    """A record and where it stands."""

    source: Source
    value: Any


def json_records(path: Path, within: Container[str] = ()) -> Iterator[JsonRecord | Rejected]:
    """The records in order, one at a time in memory; of an object with an array called as in ``within``, those in it.

    A line that is no JSON is rejected and the next one read; other damage raises ``BadRecord``.
    """
    for file in files(path):
        if _has_lines(file):
            with file.open() as stream:
                yield from json_lines(stream, file.where)
            continue
        with file.open() as stream:
            whole = JsonStream(stream, file.where)
            for place, value in enumerate(_values(whole, within), start=1):
                yield JsonRecord(Source(file=file.where, position=str(place)), value)
            whole.end()


def _values(whole: JsonStream, within: Container[str]) -> Iterator[Any]:
    first = whole.peek()
    if first == "[":
        yield from whole.items()
    elif first == "{" and within:
        others: dict[str, Any] = {}
        is_list = False
        for key in whole.members():
            if key in within and whole.peek() == "[":
                is_list = True
                yield from whole.items()
            elif not is_list:
                others[key] = whole.value()
        if not is_list:
            yield others
    else:
        yield whole.value()


def _has_lines(file: File) -> bool:
    """Whether each line is a record: its name says so, or the first line is a whole object and something follows."""
    if file.name.endswith(_LINES):
        return True
    with file.open() as stream:
        if not head_text(stream.read(HEAD_BYTES)).lstrip().startswith("{"):
            return False
    with file.open() as stream:
        told = (line for _, line in lines(stream, file.where, MAX_PIECE) if isinstance(line, Rejected) or line.strip())
        first, second = next(told, None), next(told, None)
    if not isinstance(first, str) or second is None:
        return False
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return True


def json_lines(stream: IO[bytes], where: str) -> Iterator[JsonRecord | Rejected]:
    """The record on each line that is not blank; a line that is no JSON is rejected and the next one read."""
    for number, line in lines(stream, where, MAX_PIECE):
        if isinstance(line, Rejected):
            yield line
        elif line.strip():
            yield _read_line(line, Source(file=where, position=str(number)))


def _read_line(line: str, source: Source) -> JsonRecord | Rejected:
    try:
        return JsonRecord(source, json.loads(line))
    except json.JSONDecodeError as error:
        cut = "; the line breaks off there" if is_cut(error) else ""
        return rejected(source, f"no JSON: {error.msg.removesuffix(' at')} at character {error.pos}{cut}")
    except RecursionError:
        return rejected(source, "its JSON is nested too deeply")
    except ValueError as error:  # a number of thousands of digits
        return rejected(source, f"no JSON that can be read: {error}")
