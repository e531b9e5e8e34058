"""Finds named things in a text: people, places, works, files, handles.

Capitals mark a name, so scripts without capitals yield only quoted names and code. A capitalised word at the start of a
sentence is a name if it has a capital elsewhere in the text, is an acronym, is a name in the background table, or is
not in the table.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from zettel.text.background import is_namelike, zipf
from zettel.text.stopwords import CALENDAR, FILLER
from zettel.text.tokens import clean, phrase_key, token_of

COMMON_WORD_ZIPF = 5.0
"""From this value on, a capitalised word at the start of a sentence is a verb or adjective before the name."""
NEW_WORD_ZIPF = 3.0
"""A rarer word with a capital is a name anywhere in the sentence."""
MAX_NAME_WORDS = 8
"""A longer run of capitalised words is a headline, not a name."""
MAX_NAME_CHARS = 60

_UPPER = "".join(char for char in map(chr, range(0x41, 0x530)) if char.isupper())
_CAPITAL = rf"[{_UPPER}](?:\w|['&.-](?=\w))*"
_LINK = (
    r"(?:\s(?:of(?:\sthe)?|de(?:\sl[ao]s?)?|del|della|di|da|dos?|du|van(?:\sde[rn])?|von(?:\sder)?|der|la|le|el|al|bin"
    r"|ibn|&)\s|\s)"
)
_TITLES = r"(?:(?:Mrs?|Ms|Dr|Prof|St|Mt)\.\s|[A-Z]\.\s?)*"
_RUN = re.compile(rf"(?<![\w@#/]){_TITLES}{_CAPITAL}(?:{_LINK}{_TITLES}{_CAPITAL})*")
_QUOTED = re.compile('["\u201c\u00ab]([^"\u201c\u201d\u00ab\u00bb\n]{2,60})["\u201d\u00bb]')
_BRACKETED = re.compile("[\u300a\u300c\u300e\u3008]([^\u300b\u300d\u300f\u3009\n]{1,30})[\u300b\u300d\u300f\u3009]")
_FILE_ENDS = (
    "py|js|ts|tsx|rs|go|java|rb|c|h|cpp|sh|sql|md|txt|rst|json|ya?ml|toml|csv|tsv|xml|html?|css|pdf|docx?|xlsx?|pptx?"
)
_CODE = re.compile(
    rf"(?<![\w@./-])(?:[\w-]+(?:[/.][\w-]+)*\.(?:{_FILE_ENDS})\b(?![./]\w)|[^\W_]+(?:_[^\W_]+)+|[A-Z][A-Z0-9]+-\d+"
    r"|[a-z]+[A-Z]\w*|@\w(?:[\w.-]*\w)?)"
)
_HAS_CODE = re.compile(r"[A-Z_@.-](?:(?<=[_@])|(?<=[a-z][A-Z])|(?<=\.)(?=[a-z])|(?<=-)(?=\d))")
_POSSESSIVE = re.compile(r"'s\b")
_SENTENCE_ENDS = frozenset(".!?\u2026:;\n\u3002\uff01\uff1f\u061f*>\u2022")
_OPENERS = " \t\"'\u201c\u2018\u00ab([-\u2013\u2014"
_QUOTES = frozenset('"\u201c\u00ab([')
# Adjectives and titles that begin names: part of the name at the start of a sentence if a capital follows.
_NAME_OPENERS = frozenset(
    "new san santa los las saint st mount mt lake north south east west united great royal grand big red black white"
    " blue green golden central national international university king queen prince princess pope president".split()
)
_ARTICLES = frozenset("le la les el los las il lo der die das de del di da du van von".split())
_NO_NAMES = FILLER | CALENDAR | _ARTICLES


class Name(NamedTuple):
    """A named thing: its normal form, its first spelling, and its number of occurrences."""

    key: str
    text: str
    uses: int


def find_names(text: str) -> tuple[Name, ...]:
    """Return the names in ``text`` in order of first occurrence."""
    names: dict[str, tuple[str, int]] = {}

    def add(name: str) -> None:
        if (key := phrase_key(name)) and len(name) <= MAX_NAME_CHARS:
            shown, count = names.get(key, (name, 0))
            names[key] = (shown, count + 1)

    if _HAS_CODE.search(text):
        for code in _CODE.findall(text):
            add(code)
        text = _CODE.sub(" ", text)
    text = clean(text)
    for title in _quoted(text):
        add(title)
        text = text.replace(title, " ", 1)
    if not text.isupper():  # capitals mark no names in a text of capitals
        runs = [(match.group(), _opens_sentence(text, match.start())) for match in _RUN.finditer(text)]
        for name in _from_runs(runs):
            add(name)
    return tuple(Name(key, shown, count) for key, (shown, count) in names.items())


def _quoted(text: str) -> list[str]:
    titles = []
    if '"' in text or "\u201c" in text or "\u00ab" in text:
        for quote in _QUOTED.findall(text):
            title = quote.strip()
            if title and title[0].isupper() and title[-1] not in ".,!?" and title.count(" ") < MAX_NAME_WORDS:
                titles.append(title)
    if not text.isascii():
        titles += _BRACKETED.findall(text)
    return titles


def _opens_sentence(text: str, start: int) -> bool:
    if text[start - 1 : start] in _QUOTES:
        return True
    before = text[max(0, start - 8) : start].rstrip(_OPENERS)
    return not before or before[-1] in _SENTENCE_ENDS


def _from_runs(runs: list[tuple[str, bool]]) -> list[str]:
    pieces: list[tuple[list[str], bool]] = []
    proven: set[str] = set()
    for run, opens in runs:
        for place, part in enumerate(_POSSESSIVE.split(run) if "'" in run else (run,)):
            words = part.strip("-&'").split()
            if words:
                unproven = opens and place == 0
                pieces.append((words, unproven))
                proven.update(words[unproven:])
    names = []
    for words, unproven in pieces:
        name = _without_openers(words, unproven, proven)
        if name and len(name) <= MAX_NAME_WORDS:
            names.append(" ".join(name))
    return names


def _without_openers(words: list[str], unproven: bool, proven: set[str]) -> list[str]:
    """Return the words of a run that belong to the name; empty if it is not a name."""
    words = list(words)
    while words:
        first, last = words[0], words[-1]
        folded, token = first.casefold(), token_of(first.partition("-")[0].strip(".'"))
        alone = len(words) == 1
        if not token or (folded in _NO_NAMES and (alone or (folded in FILLER and folded not in _NAME_OPENERS))):
            words.pop(0)
        elif not (last[0].isupper() or last[0].isdigit()):  # a connective left over
            words.pop()
        elif unproven and first not in proven and not _is_name_by_itself(first, token, not alone):
            words.pop(0)
        else:
            break
        unproven = False
    return words


def _is_name_by_itself(word: str, token: str, more_follow: bool) -> bool:
    if word.isupper() and len(word) > 1:
        return True
    common = zipf(token)
    if more_follow:
        return common < COMMON_WORD_ZIPF or is_namelike(token) or word.casefold() in _NAME_OPENERS
    return is_namelike(token) or common < NEW_WORD_ZIPF
