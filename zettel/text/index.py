"""Builds the index of a note: searchable text, tokens, terms, title keys, and the text of its vector.

All are pure functions of the note, so a scope's index does not depend on the order of its changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from zettel.model import MAX_NAME, Kind, Note, NoteIndex
from zettel.text.extraction import terms_of
from zettel.text.tokens import bare_title, phrase_key, tokenize

VECTOR_RECIPE = "speaker: title. content authored /1"
"""Identifies the format of :func:`vector_text`; vectors of another recipe are in another set."""
_CACHED_TITLES = 16_384
"""Cached titles."""


def searchable_text(note: Note) -> str:
    """Return the text for text search: title, content, and the fields that a model or a person wrote."""
    return "\n".join(part for part in (note.title or "", note.content, *_authored(note)) if part)


def vector_text(note: Note) -> str:
    """Return the text to embed: the same, after the speaker."""
    text = ". ".join(part for part in (note.title or "", note.content, *_authored(note)) if part)
    return f"{note.speaker}: {text}" if note.speaker else text


def title_keys(title: str | None) -> tuple[str, ...]:
    """Return the normal forms of a title: whole, and without a qualifier such as "(1978 film)"."""
    return tuple(titles_of(title))


@lru_cache(maxsize=_CACHED_TITLES)
def titles_of(title: str | None) -> Mapping[str, frozenset[str]]:
    """Return the normal forms with their tokens, without forms that have none ("The") or are too long."""
    if not title:
        return {}
    forms = {phrase_key(form): frozenset(tokenize(form)) for form in (title, bare_title(title))}
    return {key: tokens for key, tokens in forms.items() if key and tokens and len(key) <= MAX_NAME}


def index_note(note: Note) -> NoteIndex:
    """Return the tokens with their counts, the terms, and (for the head of an event) the title keys.

    An insight has no terms: it repeats those of its notes, and would inflate their frequency.
    """
    return NoteIndex(
        tokens=Counter(tokenize(searchable_text(note))),
        terms=() if note.kind is Kind.INSIGHT else terms_of(note),
        title_keys=title_keys(note.title) if note.part == 0 else (),
    )


def _authored(note: Note) -> tuple[str, ...]:
    written = {
        "context": note.context,
        "keywords": ", ".join(note.keywords),
        "tags": ", ".join(note.tags),
    }
    return tuple(text for name, text in written.items() if name in note.authored)
