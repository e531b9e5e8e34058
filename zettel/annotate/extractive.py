"""The annotator that needs no model: fields from the text itself, in a fraction of a millisecond.

Caption, context and keywords are for people and prompts. What a note is found by (:func:`terms_of`) is a pure function
of the note: of its text and the background table, never of the scope's statistics.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from zettel.annotate.dates import find_dates
from zettel.annotate.keywords import Reading, best_keywords, read
from zettel.annotate.tokens import bare_title, phrase_key, tokenize
from zettel.model import MAX_NAME
from zettel.ports import Annotation, Passage, TermStats, TermUse, TimeRange

if TYPE_CHECKING:
    from zettel.model import Note

CAPTION_CHARS = 60
"""A caption fits on a node of a drawn graph."""
GIST_CHARS = 160
"""Longest piece of the text that a context quotes."""
MAX_DATES_TOLD = 2
MAX_TOPICS = 4
TERM_RARITY = 0.35
"""Words commoner than this (Zipf 5.2, such as "dinner") bind nothing together, and are no Terms."""
MAX_KEYWORD_TERMS = 24
"""Keyword Terms of one note, rarest first: more than a note of 1,500 characters usually has to offer."""
MAX_TITLE_TERM_WORDS = 8
GENERIC_ROLES = frozenset("user assistant system tool function developer human ai bot model agent".split())
"""Roles that say nothing about who speaks, and so are no Terms."""

# The space after a mark, or line ends. What has to be a space first is found several times faster.
_SENTENCE_END = re.compile(
    r"\s(?:(?<=[.!?\u2026\u061f]\s)(?<!\b[A-Z]\.\s)(?<!\b[DMS][rst]\.\s)(?<!\bMrs\.\s)\s*|(?<=\n)\n*)"
)
_IDEOGRAPHIC_END = re.compile("(?<=[\u3002\uff01\uff1f])")
_HASHTAG = re.compile(r"(?<![\w&#/])#(\w*[^\W\d_]\w*)")
_QUESTION = re.compile("[?\uff1f\u061f]\\W*(?:$|\\s)")
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


class ExtractiveAnnotator:
    """Note fields from the text, the scope's statistics and a background table of word frequencies."""

    name = "extractive"
    remote = False

    async def annotate(self, passages: Sequence[Passage], stats: TermStats) -> list[Annotation]:
        """One Annotation for each passage, in order. Never waits: it is fit to stand before a commit."""
        return [annotate(passage, stats) for passage in passages]


def annotate(passage: Passage, stats: TermStats) -> Annotation:
    """Caption, context, keywords and tags of one passage."""
    text = passage.content
    reading = read(text)
    dates = find_dates(text, passage.occurred_at)
    gist = _gist(text, reading)
    return Annotation(
        caption=_clip(passage.title or gist or text.strip(), CAPTION_CHARS),
        context=_context(passage, gist, reading, dates),
        keywords=best_keywords(reading, stats, len(text)),
        tags=tags_of(text, bool(dates)),
    )


def is_question(text: str) -> bool:
    """Whether a sentence of ``text`` ends in a question mark."""
    return ("?" in text or not text.isascii()) and bool(_QUESTION.search(text))


def tags_of(text: str, has_date: bool) -> tuple[str, ...]:
    """Hashtags, then what the text is: a question, dated, linking, with an image, in another script than Latin."""
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
    """The Terms of a note with their counts, by key: who speaks, what is named, its tags and its rarer words.

    Keys are :func:`phrase_key` for speakers, names and tags, and tokens joined by a space for keywords. Keywords that
    a model or a person wrote join those of the text; extracted ones do not, for the scope had a say in them.
    """
    reading = read(note.content)
    terms: dict[str, TermUse] = {}

    def add(key: str, text: str, kind: str, count: int) -> None:
        if key and len(key) <= MAX_NAME:
            known = terms.get(key)
            terms[key] = known._replace(count=known.count + count) if known else TermUse(key, text, kind, count)

    if note.role and note.role.casefold() not in GENERIC_ROLES:
        add(phrase_key(note.role), note.role, "speaker", 1)
    if note.title and note.title.count(" ") < MAX_TITLE_TERM_WORDS:
        title = bare_title(note.title)
        add(phrase_key(title), title, "name", 1)
    for name in reading.names:
        add(name.key, name.text, "name", name.uses)
    for tag in note.tags:
        add(phrase_key(tag), tag, "tag", 1)
    if "keywords" in note.authored:
        for written in note.keywords:
            add(" ".join(tokenize(written)), written, "keyword", 1)
    rarest = sorted(
        (word for word in (*reading.words, *reading.phrases) if word.rarity >= TERM_RARITY),
        key=lambda word: (-word.rarity, word.start, word.key),
    )
    for word in rarest[:MAX_KEYWORD_TERMS]:
        add(word.key, word.text, "keyword", word.uses)
    return tuple(terms[key] for key in sorted(terms))


# ------------------------------------------------------------------------------------------------------------ sentences


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, in order, without the space around them."""
    parts = _SENTENCE_END.split(text)
    if not text.isascii():
        parts = [piece for part in parts for piece in _IDEOGRAPHIC_END.split(part)]
    return [part.strip() for part in parts if part and not part.isspace()]


def _gist(text: str, reading: Reading) -> str:
    """The sentence with most in it: names and telling words, each by its rarity; the first of equals."""
    found = sentences(text)
    if len(found) <= 1:
        return found[0] if found else ""
    names = [name.text for name in reading.names]
    words = [(word.text, word.rarity) for word in reading.words]  # in lower case, all of them

    def said(sentence: str) -> float:
        lowered = sentence.lower()
        named = sum([1.0 for name in names if name in sentence or name in lowered])
        return sum([rarity for word, rarity in words if word in lowered], named)

    return max(found, key=said)


def _context(passage: Passage, gist: str, reading: Reading, dates: Sequence[TimeRange]) -> str:
    """Who said when about what, as one sentence."""
    when = _day(passage.occurred_at) if passage.occurred_at else None
    head = ", ".join(part for part in (passage.role, when) if part)
    quoted = _clip(gist, GIST_CHARS).rstrip(" .")
    if passage.title and not quoted.startswith(passage.title):
        quoted = f"{passage.title}: {quoted}" if quoted else passage.title
    others = [name.text for name in reading.names if name.text not in quoted][:MAX_TOPICS]
    named = [date._replace(text=date.text.rstrip(".,;")) for date in dates]
    told = [f"{date.text} is {_stretch(date)}" for date in named if not date.text[-4:].isdecimal()][:MAX_DATES_TOLD]
    asides = [*told, f"also {', '.join(others)}"] if others else told
    body = f"{quoted} ({'; '.join(asides)})" if asides else quoted
    return f"{head}: {body}" if head and body else head or body


def _stretch(date: TimeRange) -> str:
    first, last = date.start, date.end - timedelta(days=1)
    if last <= first:
        return _day(first)
    same_month = (first.year, first.month) == (last.year, last.month)
    return f"{first.day if same_month else _day(first)} to {_day(last)}"


_MONTHS = ("January February March April May June July August September October November December").split()


def _day(moment: datetime) -> str:
    moment = moment.astimezone(timezone.utc) if moment.tzinfo else moment
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


def _clip(text: str, longest: int) -> str:
    """``text`` on one line and no longer than ``longest`` characters, cut between words."""
    line = " ".join(text[: 2 * longest + 40].split())
    if len(line) <= longest:
        return line
    cut = line[: longest - 1]
    at = cut.rfind(" ")
    return (cut[:at] if at > longest // 2 else cut).rstrip(" ,;:-") + "\u2026"
