"""JSON files of any size, read piece by piece.

::

    with file.open() as stream:
        json = JsonStream(stream, file.where)
        for key in json.members():
            if key == "messages":
                for place, message in enumerate(json.items(), start=1): ...

What is asked for is decoded, the rest is stepped over; only one piece is in memory at a time. Whoever is given a key
may take its value or leave it. Everything that is wrong with a file raises ``BadRecord`` with line and column.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]  # the decoder's own, in C
from typing import IO, Any

from zettel.errors import BadRecord

MAX_PIECE = 64_000_000
"""Longest value that is decoded at once, in characters: a long conversation in one object has a few million."""

_CHUNK_BYTES = 1 << 18
_LONGEST_WORD = 12  # characters of an escape, a literal or a sign that the end of what was read may have cut
_LONGEST_TAIL = 2  # of a number: a sign after an "e"
# No JSON, but what Telegram Desktop writes for control characters; before it only backslashes that are escaped.
_HEX_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\x([01][\dA-F])")
_BLANK = " \t\r\n"
_CLOSING = {"{": "}", "[": "]"}


class JsonStream:
    """A place in a JSON file, which moves on with everything that is read."""

    def __init__(self, stream: IO[bytes], where: str) -> None:
        """Begin a file: UTF-8, or UTF-16 with a byte order mark. ``where`` is what errors call it."""
        self._stream = stream
        self._where = where
        # Not strict: a control character inside a text is a matter of that record and no damage of the file.
        self._json = json.JSONDecoder(strict=False)
        self._text = ""
        self._at = 0
        self._ended = False
        self._line, self._column = 1, 1  # of the beginning of _text
        self._value = 0  # counts values, so that one that nobody took is stepped over
        head = stream.read(_CHUNK_BYTES)
        self._decode = codecs.getincrementaldecoder(encoding_of(head))().decode
        self._take(head)

    def peek(self) -> str:
        """The next character that is not blank; "" at the end of the file."""
        while True:
            for at in range(self._at, len(self._text)):
                if self._text[at] not in _BLANK:
                    self._at = at
                    return self._text[at]
            self._at = len(self._text)
            if not self._more():
                return ""

    def value(self) -> Any:
        """The next value, whole."""
        self.peek()
        wanted = 0
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.pos >= len(self._text) - _LONGEST_WORD or error.msg.startswith("Unterminated string")
                if _HEX_ESCAPE.match(rest := self._text[error.pos :]):
                    self._text = self._text[: error.pos] + _HEX_ESCAPE.sub(r"\1\\u00\2", rest)
                elif not cut or not self._grow(wanted):
                    raise self._wrong(error.msg.removesuffix(" at"), error.pos) from None
            except RecursionError:
                raise self._wrong("is nested too deeply") from None
            except ValueError as error:  # a number of thousands of digits
                raise self._wrong(str(error).partition(";")[0]) from None
            else:
                # A number may go on where the text ends, and not yet look as if: "1.5e+" breaks off after the 5.
                if end < len(self._text) - _LONGEST_TAIL or not self._grow(wanted):
                    self._at = end
                    self._value += 1
                    return value
            wanted = 2 * (len(self._text) - self._at)

    def members(self) -> Iterator[str]:
        """The keys of the members of the object that comes next; after each its value may be taken, or not."""
        for _ in self._entries("{"):
            key = self._key()
            if self.peek() != ":":
                raise self._wrong("a colon is missing")
            self._at += 1
            taken = self._value
            yield key
            if self._value == taken:
                self.skip()

    def items(self) -> Iterator[Any]:
        """The values of the array that comes next."""
        for _ in self._entries("["):
            yield self.value()

    def steps(self) -> Iterator[None]:
        """As ``items``, but whoever is told of an item may take it, or its keys or items, or leave it."""
        for _ in self._entries("["):
            taken = self._value
            yield
            if self._value == taken:
                self.skip()

    def skip(self) -> None:
        """Step over the next value, however long it is."""
        depth = 0
        while True:
            sign = self.peek()
            if sign in _CLOSING:
                depth += 1
                self._at += 1
            elif sign in ("}", "]") and depth:
                depth -= 1
                self._at += 1
            elif sign in (",", ":") and depth:
                self._at += 1
                continue
            else:
                self.value()
            if not depth:
                self._value += 1
                return

    def end(self) -> None:
        """Make sure that nothing follows."""
        if self.peek():
            raise self._wrong("something follows after the end")

    def _entries(self, opening: str) -> Iterator[None]:
        if self.peek() != opening:
            raise self._wrong(f"expected {'an object' if opening == '{' else 'an array'}")
        self._at += 1
        closing = _CLOSING[opening]
        if self.peek() != closing:
            while True:
                yield
                sign = self.peek()
                if sign == closing:
                    break
                if sign != ",":
                    raise self._wrong("a comma is missing")
                self._at += 1
        self._at += 1
        self._value += 1

    def _key(self) -> str:
        if self.peek() != '"':
            raise self._wrong("a key is missing")
        wanted = 0
        while True:
            try:
                key, self._at = scanstring(self._text, self._at + 1, False)
            except json.JSONDecodeError as error:
                cut = error.pos >= len(self._text) - _LONGEST_WORD or error.msg.startswith("Unterminated string")
                if not cut or not self._grow(wanted):
                    raise self._wrong(error.msg.removesuffix(" at"), error.pos) from None
                wanted = 2 * (len(self._text) - self._at)
            else:
                return str(key)

    def _grow(self, wanted: int) -> bool:
        """Read on until ``wanted`` characters are there, which doubles with each try; False at the end."""
        grown = self._more()
        while grown and len(self._text) - self._at < wanted and self._more():
            pass
        if len(self._text) - self._at > MAX_PIECE:
            raise self._wrong(f"one value is longer than {MAX_PIECE:,} characters")
        return grown

    def _more(self) -> bool:
        """Read a chunk more; what was passed is forgotten. False at the end of the file."""
        if self._ended:
            return False
        passed = self._text[: self._at]
        self._line, self._column = self._place(len(passed))
        self._text = self._text[self._at :]
        self._at = 0
        self._take(self._stream.read(_CHUNK_BYTES))
        return True

    def _take(self, chunk: bytes) -> None:
        self._ended = not chunk
        try:
            self._text += self._decode(chunk, final=self._ended)
        except UnicodeDecodeError as error:
            line, _ = self._place(len(self._text))
            raise BadRecord(f"{self._where}:{line}: the text is neither UTF-8 nor UTF-16 ({error.reason})") from None

    def _place(self, at: int) -> tuple[int, int]:
        """Line and column, counted from 1, of a character of the text."""
        lines = self._text.count("\n", 0, at)
        if lines:
            return self._line + lines, at - self._text.rfind("\n", 0, at)
        return self._line, self._column + at

    def _wrong(self, reason: str, at: int | None = None) -> BadRecord:
        line, column = self._place(self._at if at is None else at)
        where = f"{self._where}:{line}:{column}"
        at_end = (self._at if at is None else at) >= len(self._text.rstrip())
        if self._ended and (at_end or reason.startswith("Unterminated string")):
            return BadRecord(f"{where}: the JSON breaks off here: the file is cut; copy or export it again")
        return BadRecord(f"{where}: the JSON is damaged here ({reason})")


def encoding_of(head: bytes) -> str:
    """The encoding of a text that begins with ``head``: UTF-16 by its byte order mark, else UTF-8."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8"
