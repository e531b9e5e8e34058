"""Renders notes as prompt lines: one line of JSON each, with a short random-looking id.

The ids depend on the note ids and not on positions. So a model that loses an item cannot shift the others, and an
invented id rarely matches another note.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator

from zettel.llm.note_fields import one_line
from zettel.model import Note

ALPHABET = "bcdfghjkmnpqrstvwxz23456789"
"""No vowels, so that no words appear, and no characters that look alike."""
SHORTEST_ID = 2
"""Characters; an id that is taken gets longer. Two make 729 ids, and about 20 are in use."""
BYTES_PER_TOKEN = 4
"""UTF-8 bytes per token: about right for English, and too few for other scripts, which overestimates them."""
MAX_REASON = 200
"""Characters of a reason; longer ones are cut."""
_DAYS = "Mon Tue Wed Thu Fri Sat Sun".split()


def short_ids(notes: Iterable[str]) -> dict[str, str]:
    """Return a different short id for each of these ids."""
    short: dict[str, str] = {}
    taken: set[str] = set()
    for note in notes:
        if note in short:
            continue
        digits = _digits(note)
        size = SHORTEST_ID
        while digits[:size] in taken:
            size += 1
        short[note] = digits[:size]
        taken.add(short[note])
    return short


def line(**fields: object) -> str:
    """Return the non-empty fields as compact JSON on one line, which no text can break out of."""
    return json.dumps({key: value for key, value in fields.items() if value}, ensure_ascii=False, separators=(",", ":"))


def day(moment: datetime | None) -> str:
    """Return a day with its weekday ("2024-05-01 Wed"), so that a model can resolve "last Friday"; "" for None."""
    return f"{moment.date().isoformat()} {_DAYS[moment.weekday()]}" if moment else ""


def date_of(note: Note) -> str:
    """Return the day of a note, such as "2024-05-01"; "" if it has none."""
    return note.occurred_at.date().isoformat() if note.occurred_at else ""


def summary(note: Note, longest: int) -> str:
    """Return the context of a note if a model or person wrote it, because it names who and when; else its content."""
    content = f"{note.speaker}: {note.content}" if note.speaker else note.content
    return clip(note.context if "context" in note.authored else content, longest)


def card(note: Note, id: str, longest: int, about: str = "") -> str:
    """Return a note as one line with an ``id`` to choose it by: date, speaker, content, and when it became invalid."""
    return line(
        id=id,
        on=date_of(note),
        by=note.speaker,
        title=note.title,
        note=clip(note.content, longest),
        about=about,
        until=note.valid_to.date().isoformat() if note.valid_to else "",
    )


def about_tokens(text: str) -> int:
    """Return about how many tokens a text has, in any script and for any model."""
    return len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN + 1


def clip(text: str, longest: int) -> str:
    """Return ``text`` on one line, cut to ``longest`` characters."""
    text = " ".join(text[: 2 * longest].split())
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "\u2026"


def _reason(value: Any) -> str:
    return clip(one_line(value), MAX_REASON) if isinstance(value, str) else ""


Reason = Annotated[str, BeforeValidator(_reason)]
"""The reason for a decision, in the model's words; "" if it gave none."""


def _digits(note: str) -> str:
    number = int.from_bytes(hashlib.blake2b(note.encode("utf-8", "replace"), digest_size=16).digest(), "big")
    digits = []
    while number:
        number, digit = divmod(number, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return "".join(digits) + note
