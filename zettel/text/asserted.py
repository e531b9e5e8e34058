"""The sentences that the writer of a text states, in full words.

Code, quotations, lists, tables, drafts of letters, questions and what others are reported to say are left out.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from zettel.text.extraction import asks, sentences
from zettel.text.frames import Language
from zettel.text.language_files import language_of
from zettel.text.letter_case import with_apostrophes, with_capitals
from zettel.text.markdown import FENCED
from zettel.text.shorthand import written_out

MAX_CHARS = 4000
"""Longer texts are documents."""
MAX_SENTENCE = 300
"""Longer sentences are lists or badly punctuated; their clauses depend on each other."""
CACHED = 8192
"""Texts whose sentences are cached, because jobs soon compare other notes with them."""

_QUOTED = re.compile("[\"\u201c\u00ab\u201e][^\"\u201d\u00bb\u201c]*[\"\u201d\u00bb\u201c]|(?<!\\w)'[^']{8,}'(?!\\w)")
_BLOCK = re.compile(r"^\s*(?:>|\||[-*+]\s|\d+[.)]\s|#).*$|^\s{4,}\S.*$", re.MULTILINE)
"""Quoted lines, tables, lists, headings and indented code."""


class Asserted(NamedTuple):
    """The language of a text, its own words spelled out, and the sentences among them that its writer states.

    The language is None, and there are no sentences, if it has no frames.
    """

    language: Language | None = None
    words: str = ""
    sentences: tuple[str, ...] = ()


@lru_cache(maxsize=CACHED)
def asserted(content: str) -> Asserted:
    """Return what the writer of a text states.

    Example: for "We moved to Braga. Where is the market?" the sentence "We moved to Braga."
    """
    if len(content) > MAX_CHARS or content.isupper():
        return Asserted()
    language = language_of(content)
    if language is None or language.quotes.search(content.replace("\u2019", "'")):
        return Asserted()
    words = spelled_out(own_words(content, language), language)
    spoken = (sentence for sentence in sentences(expanded(words, language)) if len(sentence) <= MAX_SENTENCE)
    stated = (_before_question(sentence, language) for sentence in spoken)
    own = tuple(sentence for sentence in stated if sentence and not language.reported.search(sentence))
    return Asserted(language, words, own)


def _before_question(sentence: str, language: Language) -> str:
    """Return a sentence that does not ask, or what the speaker states before one: "I'm vegan, any ideas?"."""
    if not asks(sentence):
        return sentence
    opening = language.opening.match(sentence)
    words = sentence[opening.end() if opening else 0 :].split(maxsplit=1)
    if not words or words[0].lower() not in language.first | language.mine:
        return ""
    *_, last = [None, *language.breaks.finditer(sentence)]
    return sentence[: last.start()] if last else ""


def own_words(content: str, language: Language) -> str:
    """Return a text without code, quotations, lists, tables and drafts of letters."""
    text = content.replace("\u2019", "'")
    for hidden in (FENCED, language.letter, _BLOCK, _QUOTED):
        text = hidden.sub(" ", text)
    return text


def spelled_out(text: str, language: Language) -> str:
    """Return a text without shorthand and with capitals for names: "I'm moving to Porto" for "im moving to porto"."""
    return written_out(with_capitals(with_apostrophes(text), language))


def expanded(text: str, language: Language) -> str:
    """Return a text with its contractions in full: "I am" for "I'm"."""
    for contraction, words in language.contractions:
        text = contraction.sub(words, text)
    return text
