"""Extracts terms, tags and sentences from a text and the background table of word frequencies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from zettel.model import MAX_NAME, TermUse, implied_role
from zettel.text.keywords import find_terms
from zettel.text.tokens import bare_title, phrase_key, tokenize

if TYPE_CHECKING:
    from zettel.model import Note

TERM_RARITY = 0.35
"""Lowest rarity of a term: more frequent words (Zipf 5.2, such as "dinner") do not connect notes."""

MAX_KEYWORD_TERMS = 24
"""Keyword terms of one note, rarest first: more than a note of 1,500 characters usually has."""

MAX_TITLE_TERM_WORDS = 8

# The space after a mark, or line ends. A pattern that begins with a space is several times faster.
_SENTENCE_END = re.compile(
    r"\s(?:(?<=[.!?\u2026\u061f]\s)(?<!\b[A-Z]\.\s)(?<!\b[DMS][rst]\.\s)(?<!\bMrs\.\s)\s*|(?<=\n)\n*)"
)

_IDEOGRAPHIC_END = re.compile("(?<=[\u3002\uff01\uff1f])")

_HASHTAG = re.compile(r"(?<![\w&#/])#(\w*[^\W\d_]\w*)")

_QUESTION = re.compile("[?\uff1f\u061f]\\W*(?:$|\\s)")

_UNMARKED_QUESTION = re.compile(
    r"^\W*(?:(?:so|and|but|ok|hey|hi|btw|also|please|pls),? )*(?:(?:what|which|who|where|when|why|how)(?: \w+){0,3}?"
    r" (?:should|can|could|would|do|does|did|shall) (?:i|we|you|they|he|she|it)\b"
    r"|(?:should|shall|do|does|did|is|are|am) (?:i|we|they|he|she)\b|(?:is|does|did) (?:it|this|that|there)\b)",
    re.IGNORECASE,
)

_IMAGE = re.compile(r"!\[|\[(?:image|photo|picture|img)\b", re.IGNORECASE)

_OTHER_LETTER = re.compile("[\u0400-\u052f\u0600-\u06ff\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")

_SCRIPTS = (
    ("cyrillic", "\u052f"),
    ("arabic", "\u06ff"),
    ("kana", "\u30ff"),
    ("han", "\u9fff"),
    ("hangul", "\ud7a3"),
)
"""Scripts that become a tag, with their last letter, in Unicode's order."""


def is_question(text: str) -> bool:
    """Return whether a sentence of ``text`` ends in a question mark."""
    return ("?" in text or not text.isascii()) and bool(_QUESTION.search(text))


def asks(sentence: str) -> bool:
    """Return whether a sentence is a question, also without a mark: "how do i tell my boss".

    A request without a mark ("can you remember that I'm vegan") does not count.
    """
    return is_question(sentence) or _UNMARKED_QUESTION.search(sentence.rstrip(" .!")) is not None


def tags_of(text: str, has_date: bool) -> tuple[str, ...]:
    """Return hashtags, then properties: question, date, link, image, and the first script other than Latin."""
    tags = [tag.casefold() for tag in _HASHTAG.findall(text)] if "#" in text else []
    if is_question(text):
        tags.append("question")
    if has_date:
        tags.append("date")
    if "://" in text:
        tags.append("link")
    if "[" in text and _IMAGE.search(text):
        tags.append("image")
    if not text.isascii() and (letter := _OTHER_LETTER.search(text)):
        tags.append(next(script for script, last in _SCRIPTS if letter.group() <= last))
    return tuple(dict.fromkeys(tags))


def terms_of(note: Note) -> tuple[TermUse, ...]:
    """Return the terms of a note with their counts, by key: speaker, names, tags and rare words.

    Keys are :func:`phrase_key` for speakers, names and tags, and tokens joined by a space for keywords. Keywords by a
    model or a person are included. Extracted ones are not, because they depend on the scope.
    """
    text_terms = find_terms(note.content)
    terms: dict[str, TermUse] = {}

    def add(key: str, text: str, kind: str, count: int) -> None:
        if key and len(key) <= MAX_NAME:
            known = terms.get(key)
            terms[key] = known._replace(count=known.count + count) if known else TermUse(key, text, kind, count)

    if note.speaker and implied_role(note.speaker) is None:
        add(phrase_key(note.speaker), note.speaker, "speaker", 1)
    if note.title and note.title.count(" ") < MAX_TITLE_TERM_WORDS:
        title = bare_title(note.title)
        add(phrase_key(title), title, "name", 1)
    for name in text_terms.names:
        add(name.key, name.text, "name", name.uses)
    for tag in note.tags:
        add(phrase_key(tag), tag, "tag", 1)
    if "keywords" in note.authored:
        for written in note.keywords:
            add(" ".join(tokenize(written)), written, "keyword", 1)
    rarest = sorted(
        (word for word in (*text_terms.words, *text_terms.phrases) if word.rarity >= TERM_RARITY),
        key=lambda word: (-word.rarity, word.start, word.key),
    )
    for word in rarest[:MAX_KEYWORD_TERMS]:
        add(word.key, word.text, "keyword", word.uses)
    return tuple(terms[key] for key in sorted(terms))


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text, in order, stripped."""
    parts = _SENTENCE_END.split(text)
    if not text.isascii():
        parts = [piece for part in parts for piece in _IDEOGRAPHIC_END.split(part)]
    return [part.strip() for part in parts if part and not part.isspace()]
