"""What a note is found by: its searchable text, its tokens, its Terms, its title keys, and the text of its vector.

Everything here is a pure function of the note, so the index of a scope depends on its notes alone and not on the
order in which they came or went.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from zettel.annotate.extractive import terms_of
from zettel.annotate.tokens import bare_title, phrase_key, tokenize
from zettel.batch import NoteIndex
from zettel.model import MAX_NAME, Kind, Note

VECTOR_RECIPE = "speaker: title. content authored /1"
"""Names how :func:`vector_text` puts a text together; vectors made by another recipe are another set."""
_CACHED_TITLES = 16_384
"""Titles whose forms are remembered while texts are searched for them."""



def searchable_text(note: Note) -> str:
    """What text search reads: title and content, and the fields that a model or a person wrote."""
    return "\n".join(part for part in (note.title or "", note.content, *_authored(note)) if part)


def vector_text(note: Note) -> str:
    """What is embedded: the same, opened by who speaks."""
    said = ". ".join(part for part in (note.title or "", note.content, *_authored(note)) if part)
    return f"{note.role}: {said}" if note.role else said


def title_keys(title: str | None) -> tuple[str, ...]:
    """Normal forms under which texts name a title: whole, and without a qualifier such as "(1978 film)"."""
    return tuple(titles_of(title))


@lru_cache(maxsize=_CACHED_TITLES)
def titles_of(title: str | None) -> Mapping[str, frozenset[str]]:
    """The same with the tokens of each form. One without any ("The") names nothing, nor does one as long as a page."""
    if not title:
        return {}
    forms = {phrase_key(form): frozenset(tokenize(form)) for form in (title, bare_title(title))}
    return {key: tokens for key, tokens in forms.items() if key and tokens and len(key) <= MAX_NAME}


def index_note(note: Note) -> NoteIndex:
    """Tokens with their counts, Terms, and (for the head of an event) title keys.

    An insight has no Terms: it repeats those of its notes, and would make them seem common.
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
