"""The index entries of a note (tokens, terms and title keys), and time ranges named in texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


class TimeRange(NamedTuple):
    """A time range that a text names, such as "last week": in UTC, without ``end``. ``text`` is the wording."""

    start: datetime
    end: datetime
    text: str


class TermUse(NamedTuple):
    """The number of times that a note uses a term. ``key`` is its normal form, ``text`` the wording in the note.

    ``kind`` is "keyword", "tag", "name" or "speaker".
    """

    key: str
    text: str
    kind: str
    count: int  # type: ignore[assignment]  # a field, not the method of tuple


@dataclass(frozen=True, slots=True)
class NoteIndex:
    """The index entries of one note; ``zettel.text.index`` computes them from the note alone.

    ``tokens`` maps each token of the searchable text to its count. ``title_keys`` are the normal forms by which other
    texts mention the note's title; only the first note of an event with a title has them.
    """

    tokens: Mapping[str, int]
    terms: tuple[TermUse, ...]
    title_keys: tuple[str, ...]

    @property
    def length(self) -> int:
        """The number of tokens, including repetitions."""
        return sum(self.tokens.values())
