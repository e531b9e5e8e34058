"""Lines of text files in UTF-8, or UTF-16 with a byte order mark."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import IO

from zettel.errors import BadRecord
from zettel.model import MAX_CONTENT_BYTES, Source
from zettel.transcripts import Rejected
from zettel.transcripts.records import rejected

from .json_stream import encoding_of

MAX_LINE = MAX_CONTENT_BYTES + 1000
"""Bytes of a line at most: the longest content and some more for a name and a time."""


def lines(stream: IO[bytes], where: str, longest: int = MAX_LINE) -> Iterator[tuple[int, str | Rejected]]:
    """Yield each line without its end, with its number from 1. Undecodable or too long lines are rejected.

    Damaged UTF-16 raises ``BadRecord``.
    """
    first = stream.readline(longest)
    encoding = encoding_of(first)
    if encoding == "utf-16":
        yield from _wide_lines(first, stream, where, longest)
        return
    number, line = 1, first.removeprefix(codecs.BOM_UTF8)
    while line:
        if len(line) >= longest and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = stream.readline(longest)
            yield number, rejected(_source(where, number), f"the line is longer than {longest:,} bytes")
        else:
            try:
                yield number, line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                yield number, rejected(_source(where, number), f"byte {error.start} of the line is not UTF-8")
        number, line = number + 1, stream.readline(longest)


def _source(where: str, number: int) -> Source:
    return Source(file=where, position=str(number))


def _wide_lines(first: bytes, stream: IO[bytes], where: str, longest: int) -> Iterator[tuple[int, str | Rejected]]:
    decode = codecs.getincrementaldecoder("utf-16")().decode
    number, rest, chunk = 1, "", first
    while True:
        try:
            rest += decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            raise BadRecord(f"{where}:{number}: the text is not valid UTF-16 ({error.reason})") from None
        *complete, rest = rest.split("\n")
        for line in complete:
            yield number, line.rstrip("\r")
            number += 1
        if len(rest) > longest:
            raise BadRecord(f"{where}:{number}: the line is longer than {longest:,} characters")
        if not chunk:
            if rest:
                yield number, rest
            return
        chunk = stream.read(longest)


def head_text(head: bytes) -> str:
    """Decode the head of a file for sniffing, with replacement characters for invalid bytes."""
    return head.decode(encoding_of(head), errors="replace")
