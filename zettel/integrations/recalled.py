"""What was recalled from a memory, so that it is not stored there once more as if it were new."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from zettel.model import Note

MOST = 1000
"""Notes kept in mind, those that were shown last: more than any conversation holds."""
FEWEST_WORDS = 3
"""Of a line that is told from others by its words alone; a shorter one has to be all that a note says."""

_WORD = re.compile(r"\w+")


class Recalled:
    """The words of the notes that were shown."""

    def __init__(self) -> None:
        self._shown: OrderedDict[str, str] = OrderedDict()

    def show(self, note: Note) -> None:
        """Keep in mind that a model read this note."""
        self._shown[note.id] = spaced(note.content)
        self._shown.move_to_end(note.id)
        if len(self._shown) > MOST:
            self._shown.popitem(last=False)

    def forget(self, id: str) -> None:
        """It is not there any more, or says something else."""
        self._shown.pop(id, None)

    def holders(self, text: str) -> list[str]:
        """The ids of the notes that hold the lines of a text, the one shown last for each; [] if any line is new."""
        holders: list[str] = []
        for line in filter(None, map(spaced, text.splitlines())):
            holder = next((id for id in reversed(self._shown) if holds(self._shown[id], line)), None)
            if holder is None:
                return []
            holders.append(holder)
        return list(dict.fromkeys(holders))


def holds(shown: str, line: str) -> bool:
    """Whether a note of these words says a line of those, both as ``spaced`` makes them."""
    return line == shown or (line in shown and line.count(" ") > FEWEST_WORDS)


def repeats(text: str, answers: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a text says nothing but what stands in answers of the tools that read a memory."""
    told = [one for answer in answers for one in [answer, *answer.get("memories", ())]]
    shown = [spaced(str(one["text"])) for one in told if "text" in one]
    lines = [line for line in map(spaced, text.splitlines()) if line]
    return bool(lines) and all(any(holds(words, line) for words in shown) for line in lines)


def spaced(text: str) -> str:
    """The words of a text in lower case, a space before, between and after them; "" for none."""
    words = _WORD.findall(text.casefold())
    return f" {' '.join(words)} " if words else ""
