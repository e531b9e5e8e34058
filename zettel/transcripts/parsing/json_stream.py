"""Pull parser for JSON files of any size.

::

    with file.open() as stream:
        json = JsonStream(stream, file.where)
        for key in json.members():
            if key == "messages":
                for place, message in enumerate(json.items(), start=1): ...

Only requested values are decoded, one at a time; the caller may take the value of a key or skip it. Errors raise
``BadRecord`` with line and column. Unlike ijson, the parser accepts UTF-16, control characters and lone surrogates.
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
"""Characters of one value at most: a long conversation in one object has a few million."""

_CHUNK_BYTES = 1 << 18
_LONGEST_WORD = 12  # characters of an escape or a literal that the end of a chunk may cut
_LONGEST_TAIL = 2  # characters of a cut number: a sign after an "e"
# Telegram Desktop's invalid escapes of control characters, after an even number of backslashes.
_HEX_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\x([01][\dA-F])")
_BLANK = " \t\r\n"
_CLOSING = {"{": "}", "[": "]"}


class JsonStream:
    """A position in a JSON file that advances with each read."""

    def __init__(self, stream: IO[bytes], where: str) -> None:
        """Start reading UTF-8, or UTF-16 with a byte order mark. Errors call the file ``where``."""
        self._stream = stream
        self._where = where
        # Not strict: a control character in a text does not damage the file.
        self._json = json.JSONDecoder(strict=False)
        self._text = ""
        self._at = 0
        self._ended = False
        self._line, self._column = 1, 1  # of the beginning of _text
        self._value = 0  # counts values, so that an unread value is skipped
        head = stream.read(_CHUNK_BYTES)
        self._decode = codecs.getincrementaldecoder(encoding_of(head))().decode
        self._append(head)

    def peek(self) -> str:
        """Return the next character that is not blank; "" at the end of the file."""
        while True:
            for at in range(self._at, len(self._text)):
                if self._text[at] not in _BLANK:
                    self._at = at
                    return self._text[at]
            self._at = len(self._text)
            if not self._read_chunk():
                return ""

    def value(self) -> Any:
        """Decode the next value."""
        self.peek()
        target = 0
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.pos >= len(self._text) - _LONGEST_WORD or error.msg.startswith("Unterminated string")
                if _HEX_ESCAPE.match(rest := self._text[error.pos :]):
                    self._text = self._text[: error.pos] + _HEX_ESCAPE.sub(r"\1\\u00\2", rest)
                elif not cut or not self._grow(target):
                    raise self._error(error.msg.removesuffix(" at"), error.pos) from None
            except RecursionError:
                raise self._error("is nested too deeply") from None
            except ValueError as error:  # a number of thousands of digits
                raise self._error(str(error).partition(";")[0]) from None
            else:
                # A number may continue beyond the text read so far: "1.5e+" decodes as 1.5.
                if end < len(self._text) - _LONGEST_TAIL or not self._grow(target):
                    self._at = end
                    self._value += 1
                    return value
            target = 2 * (len(self._text) - self._at)

    def members(self) -> Iterator[str]:
        """Yield the keys of the next object; the caller may take each value or skip it."""
        for _ in self._entries("{"):
            key = self._key()
            if self.peek() != ":":
                raise self._error("a colon is missing")
            self._at += 1
            values_before = self._value
            yield key
            if self._value == values_before:
                self.skip()

    def items(self) -> Iterator[Any]:
        """Yield the values of the next array."""
        for _ in self._entries("["):
            yield self.value()

    def steps(self) -> Iterator[None]:
        """Iterate over the next array without decoding; the caller may take each item or skip it."""
        for _ in self._entries("["):
            values_before = self._value
            yield
            if self._value == values_before:
                self.skip()

    def skip(self) -> None:
        """Skip the next value, however long it is."""
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
        """Raise ``BadRecord`` unless the file ends here."""
        if self.peek():
            raise self._error("something follows after the end")

    def _entries(self, opening: str) -> Iterator[None]:
        if self.peek() != opening:
            raise self._error(f"expected {'an object' if opening == '{' else 'an array'}")
        self._at += 1
        closing = _CLOSING[opening]
        if self.peek() != closing:
            while True:
                yield
                sign = self.peek()
                if sign == closing:
                    break
                if sign != ",":
                    raise self._error("a comma is missing")
                self._at += 1
        self._at += 1
        self._value += 1

    def _key(self) -> str:
        if self.peek() != '"':
            raise self._error("a key is missing")
        target = 0
        while True:
            try:
                key, self._at = scanstring(self._text, self._at + 1, False)
            except json.JSONDecodeError as error:
                cut = error.pos >= len(self._text) - _LONGEST_WORD or error.msg.startswith("Unterminated string")
                if not cut or not self._grow(target):
                    raise self._error(error.msg.removesuffix(" at"), error.pos) from None
                target = 2 * (len(self._text) - self._at)
            else:
                return str(key)

    def _grow(self, target: int) -> bool:
        """Read until ``target`` characters are buffered; False at the end of the file."""
        grown = self._read_chunk()
        while grown and len(self._text) - self._at < target and self._read_chunk():
            pass
        if len(self._text) - self._at > MAX_PIECE:
            raise self._error(f"one value is longer than {MAX_PIECE:,} characters")
        return grown

    def _read_chunk(self) -> bool:
        """Read another chunk and drop the parsed text; False at the end of the file."""
        if self._ended:
            return False
        passed = self._text[: self._at]
        self._line, self._column = self._position(len(passed))
        self._text = self._text[self._at :]
        self._at = 0
        self._append(self._stream.read(_CHUNK_BYTES))
        return True

    def _append(self, chunk: bytes) -> None:
        self._ended = not chunk
        try:
            self._text += self._decode(chunk, final=self._ended)
        except UnicodeDecodeError as error:
            line, _ = self._position(len(self._text))
            raise BadRecord(f"{self._where}:{line}: the text is neither UTF-8 nor UTF-16 ({error.reason})") from None

    def _position(self, at: int) -> tuple[int, int]:
        """Return line and column, from 1, of a character of the text."""
        lines = self._text.count("\n", 0, at)
        if lines:
            return self._line + lines, at - self._text.rfind("\n", 0, at)
        return self._line, self._column + at

    def _error(self, reason: str, at: int | None = None) -> BadRecord:
        line, column = self._position(self._at if at is None else at)
        where = f"{self._where}:{line}:{column}"
        at_end = (self._at if at is None else at) >= len(self._text.rstrip())
        if self._ended and (at_end or reason.startswith("Unterminated string")):
            return BadRecord(f"{where}: the JSON is truncated here: copy or export the file again")
        return BadRecord(f"{where}: the JSON is damaged here ({reason})")


def encoding_of(head: bytes) -> str:
    """Return the encoding of a text that begins with ``head``: UTF-16 by its byte order mark, else UTF-8."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8"
