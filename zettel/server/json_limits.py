"""Limits of a JSON body, checked on its bytes while they arrive: no object is built for a body beyond them."""

from __future__ import annotations

import re

from zettel.errors import TooLarge
from zettel.model import MAX_NESTING

MAX_DEPTH = MAX_NESTING + 10
"""Open brackets: a payload of ``MAX_NESTING`` levels, and those of the request around it."""

_OUTSIDE = re.compile(rb'["\[\]{},]')
_INSIDE = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
"""The rest of a string, up to its closing quote or to an escape that the next part continues."""


class JsonLimits:
    """Counts the values and the open brackets of a body that arrives in parts.

    Strings, names of fields included, lists, objects and commas count as values, so that it counts at least as many as
    a parser would build.
    """

    def __init__(self, values: int) -> None:
        self._most = values
        self.values = 0
        """The number of values so far."""
        self._depth = 0
        self._is_string = False
        self._is_escaped = False

    def feed(self, part: bytes) -> None:
        """Count a part. Raises ``TooLarge``."""
        place = 1 if self._is_escaped and part else 0
        self._is_escaped = self._is_escaped and not part
        while place < len(part):
            if self._is_string:
                match = _INSIDE.match(part, place)
                place = place if match is None else match.end()
                if place < len(part):
                    self._is_escaped = part[place] != ord('"')
                    self._is_string = self._is_escaped
                    place += 1
                continue
            sign = _OUTSIDE.search(part, place)
            if sign is None:
                return
            place = sign.end()
            self._count(sign.group())

    def _count(self, sign: bytes) -> None:
        if sign in b"]}":
            self._depth -= 1
            return
        self.values += 1
        if sign in b"[{":
            self._depth += 1
        self._is_string = sign == b'"'
        if self._depth > MAX_DEPTH:
            raise TooLarge(f"the body is nested more than {MAX_DEPTH} levels deep: send a flatter one")
        if self.values > self._most:
            raise TooLarge(f"the body has more than {self._most:,} JSON values: send less at once")
