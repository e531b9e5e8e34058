"""Text files read line by line: UTF-8, or UTF-16 with a byte order mark."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import IO

from zettel.errors import BadRecord
from zettel.model import MAX_CONTENT_BYTES, Source

from . import Rejected
from .json_stream import encoding_of
from .records import rejected

MAX_LINE = MAX_CONTENT_BYTES + 1000
"""Longest line in bytes: no event takes a longer one, and its name and time want little more."""


def lines(stream: IO[bytes], where: str, longest: int = MAX_LINE) -> Iterator[tuple[int, str | Rejected]]:
    """Each line with its number, counted from 1, without its end; one that is no text, or too long, is rejected.

    A file in UTF-16 that cannot be read on raises ``BadRecord``.
    """
    first = stream.readline(longest)
    encoding = encoding_of(first)
    if encoding == "utf-16":
        yield from _wide_lines(first, stream, where, longest)
        return
    number, line = 1, first.removeprefix(codecs.BOM_UTF8)
    while line:
        source = Source(file=where, position=str(number))
        if len(line) >= longest and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = stream.readline(longest)
            yield number, rejected(source, f"the line is longer than {longest:,} bytes")
        else:
            try:
                yield number, line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                yield number, rejected(source, f"byte {error.start} of the line is not UTF-8")
        number, line = number + 1, stream.readline(longest)


def _wide_lines(first: bytes, stream: IO[bytes], where: str, longest: int) -> Iterator[tuple[int, str | Rejected]]:
    decode = codecs.getincrementaldecoder("utf-16")().decode
    number, rest, chunk = 1, "", first
    while True:
        try:
            rest += decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            raise BadRecord(f"{where}:{number}: the text is not UTF-16 any more ({error.reason})") from None
        *whole, rest = rest.split("\n")
        for line in whole:
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
    """The beginning of a file as text, for sniffing; what is no text becomes replacement characters."""
    return head.decode(encoding_of(head), errors="replace")
