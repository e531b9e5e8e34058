"""Finds when a statement ends by its own words: "I'm on holiday until 20 May", "the voucher expires on 1 July"."""

from __future__ import annotations

from datetime import datetime

from zettel.model import Note
from zettel.text.asserted import asserted
from zettel.text.dates import placed_dates
from zettel.text.days import has_past
from zettel.text.facts import facts_are_read, in_english

MAX_CHARS = 300
"""The most characters of a note that ends. A longer one contains more than the statement that ends."""
NEAR = 12
"""The most characters between "until" and its day."""


def expiry(note: Note) -> datetime | None:
    """Return the time from which a note is past, because it names its end; None if it names none.

    The day must be in the future of the statement. Example: for "The offer is valid until 31 May.", written in May
    2024, 1 June 2024.
    """
    if note.occurred_at is None or len(note.content) > MAX_CHARS or not facts_are_read(note):
        return None
    language, _, sentences = asserted(note.content)
    if language is None or language.ends is None:
        return None
    for sentence in sentences:
        if has_past(sentence.lower()):
            continue
        for match in language.ends.finditer(sentence):
            rest = in_english(sentence[match.end() :], language)
            for place, day in placed_dates(rest, note.occurred_at, direction=1):
                if place <= NEAR and day.end > note.occurred_at:
                    return day.end
    return None
