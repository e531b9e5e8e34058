"""How notes stand in a question to a model: one line of JSON each, under a short id that says nothing.

The ids are made from the notes' own and not from their places, so a model that loses an item cannot shift the others,
and one that makes an id up rarely hits another note.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator

from zettel.annotate.written import one_line
from zettel.model import Note

ALPHABET = "bcdfghjkmnpqrstvwxz23456789"
"""No vowels, so that no words come about, and nothing that looks like another sign."""
SHORTEST_ID = 2
"""Characters; an id that is taken grows. Two make 729 ids, and about 20 are in use."""
BYTES_PER_TOKEN = 4
"""UTF-8 bytes of a token on average, near enough for English, and on the safe side for other scripts."""
MAX_REASON = 200
"""Characters of a reason in an answer; a longer one is cut."""
_DAYS = "Mon Tue Wed Thu Fri Sat Sun".split()


def short_ids(notes: Iterable[str]) -> dict[str, str]:
    """A short id for each of these ids, all different."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for note in notes:
        if note in found:
            continue
        digits = _digits(note)
        size = SHORTEST_ID
        while digits[:size] in taken:
            size += 1
        found[note] = digits[:size]
        taken.add(found[note])
    return found


def line(**fields: object) -> str:
    """The fields that say something, as compact JSON on one line: no text can break out of it."""
    return json.dumps({key: value for key, value in fields.items() if value}, ensure_ascii=False, separators=(",", ":"))


def day(moment: datetime | None) -> str:
    """A day with its weekday, such as "2024-05-01 Wed", so that "last Friday" can be counted; "" for None."""
    return f"{moment.date().isoformat()} {_DAYS[moment.weekday()]}" if moment else ""


def date_of(note: Note) -> str:
    """The day of a note, such as "2024-05-01"; "" if it has none."""
    return note.occurred_at.date().isoformat() if note.occurred_at else ""


def told(note: Note, longest: int) -> str:
    """A note by its context where that was written, for then it names who and when; else by its own words."""
    said = f"{note.role}: {note.content}" if note.role else note.content
    return clip(note.context if "context" in note.authored else said, longest)


def card(note: Note, id: str, longest: int, about: str = "") -> str:
    """A note as one line that is chosen from by ``id``: when, whose and what, and until when it held."""
    return line(
        id=id,
        on=date_of(note),
        by=note.role,
        title=note.title,
        note=clip(note.content, longest),
        about=about,
        until=note.valid_to.date().isoformat() if note.valid_to else "",
    )


def about_tokens(text: str) -> int:
    """About how many tokens a text has, in any script and for any model."""
    return len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN + 1


def clip(text: str, longest: int) -> str:
    """``text`` on one line and no longer than ``longest`` characters."""
    text = " ".join(text[: 2 * longest].split())
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "\u2026"


def _reason(value: Any) -> str:
    return clip(one_line(value), MAX_REASON) if isinstance(value, str) else ""


Reason = Annotated[str, BeforeValidator(_reason)]
"""Why a model decided something, in its own words; "" if it does not say."""


def _digits(note: str) -> str:
    number = int.from_bytes(hashlib.blake2b(note.encode("utf-8", "replace"), digest_size=16).digest(), "big")
    digits = []
    while number:
        number, digit = divmod(number, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return "".join(digits) + note
