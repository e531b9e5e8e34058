"""Finds duplicates: notes with the same statement.

Two notes are duplicates if their keys are equal. So the groups do not depend on the order of arrival, and every store
finds the same groups. A cosine would depend on both, and it hardly distinguishes numbers, names or a "not".

The key contains the wording (:mod:`zettel.text.wording`), speaker, role, trust, kind, title and metadata. It contains
day and session, because an event that somebody reports again happened again. Only a lasting state ("I'm vegan.", see
:mod:`zettel.text.states`) is the same fact on every day and in every session; without a speaker, each session may be
another person.

Small talk ("thanks") and bare answers ("In Oslo.") are never duplicates, because their meaning depends on the turn
before. The same applies to questions, which explain the answer after them, parts of a long event, replaced facts, and
notes that expire.
"""

from __future__ import annotations

import json
from hashlib import blake2b

from zettel.core.authority import trust
from zettel.model import Kind, Note
from zettel.text.extraction import is_question
from zettel.text.filler import is_filler
from zettel.text.states import is_state
from zettel.text.tokens import words
from zettel.text.wording import normalized

MIN_WORDS = 4
"""Shorter statements depend on earlier turns, except for states."""
MIN_CONTENT_WORDS = 2
"""The fewest different content words."""
STATED_BY = frozenset({None, "user", "assistant"})
"""Roles whose states last. A tool reports the state of a moment, and a document may be a new version."""
MERGEABLE = frozenset({Kind.EPISODIC, Kind.SEMANTIC, Kind.PROCEDURAL})
"""Kinds of notes that are merged. Insights are not, because the reflect job writes them again from their sources."""


def duplicate_key(note: Note) -> bytes | None:
    """Return the 16-byte key that duplicates share; None for a note that is never merged."""
    if note.archived or note.parts > 1 or note.valid_to is not None or note.kind not in MERGEABLE:
        return None
    if note.expires_at is not None:
        return None
    if is_question(note.content) or is_filler(note.content, note.role):
        return None
    wording = normalized(note.content)
    lasts = note.role in STATED_BY and is_state(note.content)
    content_words = {word.token for word in words(note.content) if word.token}
    if not lasts and (len(wording) < MIN_WORDS or len(content_words) < MIN_CONTENT_WORDS):
        return None
    session = None if lasts and note.speaker else note.session
    day = note.occurred_at.date().isoformat() if note.occurred_at and not lasts else None
    fields = [
        note.kind.value, (note.speaker or "").casefold(), note.role, normalized(note.title or ""), session, lasts, day,
        wording, json.dumps(note.metadata, sort_keys=True), trust(note), note.ceiling,
    ]  # fmt: skip
    return blake2b(json.dumps(fields).encode(), digest_size=16).digest()
