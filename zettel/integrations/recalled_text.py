"""Recognises text that was recalled from a memory, so that it is not stored again as new."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from zettel.model import Note

MAX_NOTES = 1000
"""Recalled notes that are cached, the most recent ones: more than any conversation contains."""
MIN_WORDS = 3
"""A line with at most this many words counts as recalled only if it is the whole note."""

_WORD = re.compile(r"\w+")


class RecalledNotes:
    """The normalized texts of the notes that a model has read."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, str] = OrderedDict()

    def add(self, note: Note) -> None:
        """Record that a model has read this note."""
        self._texts[note.id] = normalized(note.content)
        self._texts.move_to_end(note.id)
        if len(self._texts) > MAX_NOTES:
            self._texts.popitem(last=False)

    def remove(self, id: str) -> None:
        """Drop a note that was deleted or changed."""
        self._texts.pop(id, None)

    def source_ids(self, text: str) -> list[str]:
        """Return the ids of the notes that contain the lines of a text; [] if any line is new."""
        ids: list[str] = []
        for line in filter(None, map(normalized, text.splitlines())):
            id = next((id for id in reversed(self._texts) if contains_line(self._texts[id], line)), None)
            if id is None:
                return []
            ids.append(id)
        return list(dict.fromkeys(ids))


def contains_line(text: str, line: str) -> bool:
    """Return whether a text contains a line; both must be ``normalized``."""
    return line == text or (line in text and line.count(" ") > MIN_WORDS)


def only_repeats(text: str, answers: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether every line of a text occurs in the answers of memory tools."""
    memories = [memory for answer in answers for memory in [answer, *answer.get("memories", ())]]
    recalled = [normalized(str(memory["text"])) for memory in memories if "text" in memory]
    lines = [line for line in map(normalized, text.splitlines()) if line]
    return bool(lines) and all(any(contains_line(known, line) for known in recalled) for line in lines)


def normalized(text: str) -> str:
    """Return the words of a text in lower case with single spaces before, between and after them; "" if none."""
    words = _WORD.findall(text.casefold())
    return f" {' '.join(words)} " if words else ""
