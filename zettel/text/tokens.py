"""Tokenizes the texts of notes and questions.

Unicode is normalised (NFKC, case folded), and words are stemmed by script (Latin with the English Porter2 stemmer,
Cyrillic with the Russian, Arabic with the Arabic one). Scripts without spaces become overlapping pairs of characters.
Numbers remain whole, and function words are dropped.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

import Stemmer

from zettel.text.stopwords import ARABIC, ENGLISH, RUSSIAN

TOKENS_VERSION = 1
"""Increases when the tokens of a text change; a store with another version must be indexed again."""

MAX_TOKEN = 64
"""Longest token, in characters: a longer one is a blob, and its beginning is enough to find it."""

_CACHED_WORDS = 32_768
"""Cached words: more than a busy scope uses, about 6 MB."""
_CACHED_TEXTS = 1024
"""Cached texts: statistics and index of a batch use the same tokens."""
_CACHED_PHRASES = 32_768

# Scripts without spaces between words: Han, Kana, Hangul, and Thai, Lao, Myanmar, Khmer.
UNSPACED = (
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff\u1100-\u11ff\u3131-\u318e\uac00-\ud7af"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u1049\u1780-\u17d3"
)
# Signs that belong to the letter before them, but do not match ``\w``: accents, vowel points and vowel signs.
_SIGNS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0963\u0981-\u0983\u09bc-\u09e3\u0a01-\u0a4d"
    "\u0a70-\u0acd\u0b01-\u0b57\u0b82-\u0bd7\u0c00-\u0c63\u0c81-\u0ce3\u0d00-\u0d63\u0f71-\u0f84"
)
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)|[vV]?\d+(?:\.\d+)+(?!\w)"
_WORD = rf"[^\W_][\w{_SIGNS}]*(?:'[^\W_][\w{_SIGNS}]*)*"
_WORDS = re.compile(rf"{_NUMBER}|{_WORD}")
# The same for ASCII texts, at half the cost: most words begin with a letter that no number begins with.
_ASCII_WORD = rf"[A-UW-Za-uw-z][A-Za-z0-9]*(?:'[A-Za-z0-9]+)*|{_NUMBER}|[A-Za-z0-9]+(?:'[A-Za-z0-9]+)*"
_ASCII_WORDS = re.compile(_ASCII_WORD, re.ASCII)
_ASCII_WORDS_AND_GAPS = re.compile(rf"({_ASCII_WORD})([^A-Za-z0-9]*)", re.ASCII)
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_HAS_UNSPACED = re.compile(f"[{UNSPACED}]")
_SPACED = rf"(?![{UNSPACED}])[\w{_SIGNS}]"
_MIXED = re.compile(rf"([{UNSPACED}]+)|{_NUMBER}|(?![{UNSPACED}])[^\W_](?:{_SPACED})*(?:'(?:{_SPACED})+)*")

# One kind of apostrophe, no invisible characters (soft hyphen, joiners, byte order mark) or Arabic elongation,
# ASCII digits for Arabic and Persian ones, and a space for "_".
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
    """A word of the cleaned text, with its span and its token ("" for a function word)."""

    text: str
    start: int
    end: int
    token: str


_start = attrgetter("start")


class _Stemmers(threading.local):
    """PyStemmer's objects are not thread-safe, so each thread has its own."""

    def __init__(self) -> None:
        self.english = Stemmer.Stemmer("english", 0)  # 0: the cache is ours, bounded and shared
        self.russian = Stemmer.Stemmer("russian", 0)
        self.arabic = Stemmer.Stemmer("arabic", 0)


_stemmers = _Stemmers()


def clean(text: str) -> str:
    """Return ``text`` in NFKC form, with one kind of apostrophe and without invisible characters; case is unchanged."""
    if text.isascii():
        return text.replace("_", " ")
    text = unicodedata.normalize("NFKC", text)
    return unicodedata.normalize("NFKC", text.translate(_CLEAN)) if _UNCLEAN.search(text) else text


def tokenize(text: str) -> list[str]:
    """Return the tokens of ``text`` in order, with repetitions, as postings and BM25 count them."""
    return list(_tokens(text))


@lru_cache(maxsize=_CACHED_TEXTS)
def _tokens(text: str) -> tuple[str, ...]:
    text = clean(text)
    if text.isascii() or not _HAS_UNSPACED.search(text):
        raw_words = (_ASCII_WORDS if text.isascii() else _WORDS).findall(text)
        return tuple([token for word in raw_words if (token := token_of(word[:MAX_TOKEN]))])
    tokens: list[str] = []
    for match in _MIXED.finditer(text):
        if match.group(1):
            tokens.extend(_pairs(match.group()))
        elif token := token_of(match.group()[:MAX_TOKEN]):
            tokens.append(token)
    return tuple(tokens)


def words(text: str) -> list[Word]:
    """Return the words of ``clean(text)`` with their spans; scripts without spaces give overlapping pairs."""
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
    """Return (word, start, end) of the words of ``clean(text)`` in scripts with spaces."""
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
    """Return the token of one word of a cleaned text, or "" for a function word."""
    folded = word.casefold()
    if folded[:1].isdecimal():
        return folded.replace(",", "") if "," in folded else folded
    if "." in folded:  # only a number has one: v3.11.2 equals 3.11.2
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
    """Return a Latin word without accents: people write Zurich for Zürich and Jose for José."""
    parts = unicodedata.normalize("NFKD", word)
    return unicodedata.normalize("NFKC", "".join(c for c in parts if not unicodedata.combining(c)))


@lru_cache(maxsize=_CACHED_PHRASES)
def phrase_key(text: str) -> str:
    """Return the form for comparing names and titles: folded, words separated by one space, not stemmed.

    Possessive endings and other apostrophes are removed: ``phrase_key("Ann's  O'Neill-Report")`` is
    ``"ann oneill report"``.
    """
    folded = unicodedata.normalize("NFKC", clean(text).casefold())
    if "'" in folded:
        folded = _POSSESSIVE.sub("", folded).replace("'", "")
    return _PHRASE_GAP.sub(" ", folded).strip()


def bare_title(title: str) -> str:
    """Return a title without a trailing qualifier such as "(1978 film)"."""
    return _QUALIFIER.sub("", title)


def is_unspaced(token: str) -> bool:
    """Return whether a token is of a script without spaces, so a pair of characters or a single one."""
    return bool(_HAS_UNSPACED.match(token))


def readable(text: str) -> str:
    """Return the text with ``?`` for lone surrogates, which tokenizers reject."""
    return text.encode("utf-8", "replace").decode("utf-8")
