"""What a note is found by: tokens, terms and title keys; and the time ranges that texts name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


class TimeRange(NamedTuple):
    """A stretch of time named by a text: UTC, ``end`` not included."""

    start: datetime
    end: datetime
    text: str


class TermUse(NamedTuple):
    """How often a note uses a Term: ``key`` is the normal form, ``kind`` one of keyword, tag, name, speaker."""

    key: str
    text: str
    kind: str
    count: int  # type: ignore[assignment]  # a field, not the method of tuple


@dataclass(frozen=True, slots=True)
class NoteIndex:
    """What a note is found by; always a pure function of the note (see ``zettel.text.index``).

    ``tokens`` are the tokens of its searchable text with their counts, ``terms`` its Terms, ``title_keys`` the normal
    forms under which other texts name it (empty without a title; only the head of an event has them).
    """

    tokens: Mapping[str, int]
    terms: tuple[TermUse, ...]
    title_keys: tuple[str, ...]

    @property
    def length(self) -> int:
        """Number of tokens, repetitions counted."""
        return sum(self.tokens.values())
