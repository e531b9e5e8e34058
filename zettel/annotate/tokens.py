"""From text to the tokens that notes are indexed by and questions are asked with: one way for both.

Unicode is brought to one form (NFKC, case folded), words are stemmed by their script (Latin with the English Porter2
stemmer, Cyrillic with the Russian, Arabic with the Arabic one), scripts that write no spaces become overlapping
pairs of characters, numbers stay whole, and function words are left out.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

import Stemmer

from zettel.annotate.stopwords import ARABIC, ENGLISH, RUSSIAN

TOKENS_VERSION = 1
"""Goes up whenever the same text would give other tokens; a store filled with another version must be indexed anew."""

MAX_TOKEN = 64
"""Longest token, in characters: what is longer is a blob, and its beginning is enough to find it."""

_CACHED_WORDS = 32_768
"""Surface words whose token is remembered: more than a busy scope uses, about 6 MB."""
_CACHED_TEXTS = 1024
"""Texts whose tokens are remembered: a batch is read for its statistics and again for its index."""
_CACHED_PHRASES = 32_768

# Scripts that put no spaces between words: Han, Kana, Hangul, and Thai, Lao, Myanmar, Khmer.
UNSPACED = (
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff\u1100-\u11ff\u3131-\u318e\uac00-\ud7af"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u1049\u1780-\u17d3"
)
# Signs that belong to the letter before them and that ``\w`` does not know: accents, vowel points and vowel signs.
_SIGNS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0963\u0981-\u0983\u09bc-\u09e3\u0a01-\u0a4d"
    "\u0a70-\u0acd\u0b01-\u0b57\u0b82-\u0bd7\u0c00-\u0c63\u0c81-\u0ce3\u0d00-\u0d63\u0f71-\u0f84"
)
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)|[vV]?\d+(?:\.\d+)+(?!\w)"
_WORD = rf"[^\W_][\w{_SIGNS}]*(?:'[^\W_][\w{_SIGNS}]*)*"
_WORDS = re.compile(rf"{_NUMBER}|{_WORD}")
# The same in a text of ASCII alone, at half the cost: most words begin with a letter that no number begins with.
_ASCII_WORD = rf"[A-UW-Za-uw-z][A-Za-z0-9]*(?:'[A-Za-z0-9]+)*|{_NUMBER}|[A-Za-z0-9]+(?:'[A-Za-z0-9]+)*"
_ASCII_WORDS = re.compile(_ASCII_WORD, re.ASCII)
_ASCII_WORDS_AND_GAPS = re.compile(rf"({_ASCII_WORD})([^A-Za-z0-9]*)", re.ASCII)
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_HAS_UNSPACED = re.compile(f"[{UNSPACED}]")
_SPACED = rf"(?![{UNSPACED}])[\w{_SIGNS}]"
_MIXED = re.compile(rf"([{UNSPACED}]+)|{_NUMBER}|(?![{UNSPACED}])[^\W_](?:{_SPACED})*(?:'(?:{_SPACED})+)*")

# Apostrophes to one, invisible characters (soft hyphen, joiners, byte order mark) and Arabic elongation away,
# Arabic and Persian digits to ours, "_" to the space it stands for.
_CLEAN: dict[int, int | str | None] = {
    **dict.fromkeys(map(ord, "\u2018\u2019\u02bc\u02b9"), "'"),
    **dict.fromkeys([0x00AD, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF, 0x0640]),
    **{0x0660 + digit: str(digit) for digit in range(10)},
    **{0x06F0 + digit: str(digit) for digit in range(10)},
    ord("_"): " ",
}
_UNCLEAN = re.compile("[" + "".join(map(chr, _CLEAN)) + "]")
_ENGLISH_TAIL = re.compile(r"'(?:s|d|m|ll|re|ve)$|n't$")
_ELISION = re.compile(r"^(?:[cdjlmnst]|qu|dell|nell|all|sull|un)'(?=\w{3})")
_POSSESSIVE = re.compile(r"(?<=\w)'s(?!\w)")
_QUALIFIER = re.compile(r"(?<!\s)\s*\([^()]*\)\s*$")
_PHRASE_GAP = re.compile(rf"[^\w{_SIGNS}]+|_+")


class Word(NamedTuple):
    """A word as it stands in the cleaned text, with its place there and its token ("" for a function word)."""

    text: str
    start: int
    end: int
    token: str


_start = attrgetter("start")


class _Stemmers(threading.local):
    """PyStemmer's objects keep state while they work, so each thread has its own."""

    def __init__(self) -> None:
        self.english = Stemmer.Stemmer("english", 0)  # 0: the cache is ours, bounded and shared
        self.russian = Stemmer.Stemmer("russian", 0)
        self.arabic = Stemmer.Stemmer("arabic", 0)


_stemmers = _Stemmers()


def clean(text: str) -> str:
    """``text`` in Unicode's NFKC form, with one kind of apostrophe and without invisible characters; case is kept."""
    if text.isascii():
        return text.replace("_", " ")
    text = unicodedata.normalize("NFKC", text)
    return unicodedata.normalize("NFKC", text.translate(_CLEAN)) if _UNCLEAN.search(text) else text


def tokenize(text: str) -> list[str]:
    """The tokens of ``text`` in order, with repetitions: what postings hold and BM25 counts."""
    return list(_tokens(text))


@lru_cache(maxsize=_CACHED_TEXTS)
def _tokens(text: str) -> tuple[str, ...]:
    text = clean(text)
    if text.isascii() or not _HAS_UNSPACED.search(text):
        found = (_ASCII_WORDS if text.isascii() else _WORDS).findall(text)
        return tuple([token for word in found if (token := token_of(word[:MAX_TOKEN]))])
    tokens: list[str] = []
    for match in _MIXED.finditer(text):
        if match.group(1):
            tokens.extend(_pairs(match.group()))
        elif token := token_of(match.group()[:MAX_TOKEN]):
            tokens.append(token)
    return tuple(tokens)


def words(text: str) -> list[Word]:
    """The words of ``clean(text)`` with their spans; a run without spaces comes as its overlapping pairs."""
    found = []
    for word, start, end in spaced_words(text):
        found.append(Word(word, start, end, token_of(word[:MAX_TOKEN])))
    text = clean(text)
    if not text.isascii():
        for match in _UNSPACED_RUN.finditer(text):
            for place, pair in enumerate(_pairs(match.group()), match.start()):
                found.append(Word(pair, place, place + len(pair), pair))
        found.sort(key=_start)
    return found


def spaced_words(text: str) -> list[tuple[str, int, int]]:
    """(word, start, end) of the words of ``clean(text)`` in scripts that part them by spaces."""
    text = clean(text)
    if text.isascii():
        found = []
        first = _ASCII_WORDS.search(text)
        start = first.start() if first else 0
        for word, gap in _ASCII_WORDS_AND_GAPS.findall(text):
            end = start + len(word)
            found.append((word, start, end))
            start = end + len(gap)
        return found
    if not _HAS_UNSPACED.search(text):
        return [(match.group(), *match.span()) for match in _WORDS.finditer(text)]
    return [(match.group(), *match.span()) for match in _MIXED.finditer(text) if not match.group(1)]


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] if len(run) > 1 else [run]


@lru_cache(maxsize=_CACHED_WORDS)
def token_of(word: str) -> str:
    """The token of one word as :func:`clean` leaves it, or "" for a function word. Remembered for frequent words."""
    folded = word.casefold()
    if folded[:1].isdecimal():
        return folded.replace(",", "") if "," in folded else folded
    if "." in folded:  # only a number has one: v3.11.2 is asked for as 3.11.2
        return folded[1:]
    if "'" in folded:
        if folded.replace("'", "") in ENGLISH:
            return ""
        folded = _ELISION.sub("", _ENGLISH_TAIL.sub("", folded)).replace("'", "")
    if folded.isascii():
        return "" if folded in ENGLISH or not folded else _stemmers.english.stemWord(folded)
    first = folded[0]
    if "\u0400" <= first <= "\u052f":
        return "" if folded in RUSSIAN else _stemmers.russian.stemWord(folded)
    if "\u0600" <= first <= "\u06ff":
        return "" if folded in ARABIC else _stemmers.arabic.stemWord(folded)
    if first <= "\u024f" or "\u1e00" <= first <= "\u1eff":
        bare = _without_accents(folded)
        return "" if bare in ENGLISH or not bare else _stemmers.english.stemWord(bare)
    return unicodedata.normalize("NFKC", folded)


def _without_accents(word: str) -> str:
    """Latin letters alone: people write Zurich for Zürich and Jose for José."""
    parts = unicodedata.normalize("NFKD", word)
    return unicodedata.normalize("NFKC", "".join(c for c in parts if not unicodedata.combining(c)))


@lru_cache(maxsize=_CACHED_PHRASES)
def phrase_key(text: str) -> str:
    """The form in which names and titles are compared: folded, words parted by one space, nothing stemmed.

    A possessive ending goes, other apostrophes close up: ``phrase_key("Ann's  O'Neill-Report")`` is
    ``"ann oneill report"``.
    """
    folded = unicodedata.normalize("NFKC", clean(text).casefold())
    if "'" in folded:
        folded = _POSSESSIVE.sub("", folded).replace("'", "")
    return _PHRASE_GAP.sub(" ", folded).strip()


def bare_title(title: str) -> str:
    """A title without a qualifier behind it, such as "(1978 film)"."""
    return _QUALIFIER.sub("", title)


def is_unspaced(token: str) -> bool:
    """Whether it comes from a script that writes no spaces, and so is a pair of characters, or one alone."""
    return bool(_HAS_UNSPACED.match(token))
